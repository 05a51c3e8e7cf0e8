"""The figures of the certificates: ``python -m benchmarks.certificates [section ...]``.

Sections: ``tightness``, ``validity``, ``power``, ``pipeline`` (all of them unless told).
Populations have known true rates; only the last section reads data too (Adult).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations

import numpy as np
from scipy.special import ndtri

from benchmarks.runner import single_threaded
from omnifair import certify, gap, ratio, sample_size
from omnifair.datasets import make_lending
from omnifair.datasets.lending import Population
from omnifair.intervals import (
    Pair,
    approximate_upper,
    difference_upper,
    evidence,
    lower_bound,
    mean_quotient_upper,
    upper_bound,
)
from omnifair.rates import NAMED

ERROR = 0.05
REPETITIONS = 2_000


# -- tightness -------------------------------------------------------------------------------------


def exact(pair: Pair) -> float:
    """The construction that omnifair uses for two disjoint groups."""
    return difference_upper(pair, ERROR)


def clopper_pearson(pair: Pair) -> float:
    """A bound for each group, the error parted between them."""
    high = upper_bound(pair.hits_a, pair.count_a, ERROR / 2)
    return float(high - lower_bound(pair.hits_b, pair.count_b, ERROR / 2))


def betting(pair: Pair) -> float:
    """A bound for each group's mean by betting, the error parted between them."""

    def upper(hits: int, count: int, sign: float) -> float:
        values = np.array([0.0, sign])
        times = np.array([count - hits, hits], dtype=float)
        return mean_quotient_upper(values, np.ones(2), times, (values, np.ones(2)), ERROR / 2)

    return upper(pair.hits_a, pair.count_a, 1.0) + upper(pair.hits_b, pair.count_b, -1.0)


def bernstein(pair: Pair) -> float:
    """Maurer and Pontil's empirical Bernstein bound of each group, the error parted."""
    log, total = math.log(4 / ERROR), 0.0
    for hits, n, sign in ((pair.hits_a, pair.count_a, 1), (pair.hits_b, pair.count_b, -1)):
        variance = hits * (n - hits) / (n * (n - 1))
        total += sign * hits / n + math.sqrt(2 * variance * log / n) + 7 * log / (3 * (n - 1))
    return total


def newcombe(pair: Pair) -> float:
    """Newcombe's approximate limit: not valid, for comparison."""
    z = -float(ndtri(ERROR))
    return float(approximate_upper(pair.hits_a, pair.hits_b, pair, 1.0, z))


CONSTRUCTIONS: dict[str, Callable[[Pair], float]] = {
    "exact test, inverted": exact,
    "Clopper-Pearson, error parted": clopper_pearson,
    "betting, error parted": betting,
    "empirical Bernstein, parted": bernstein,
    "Newcombe (approximate)": newcombe,
}


def needed(bound: Callable[[Pair], float], low: float, high: float, limit: float, power: float):
    """Rows of each group with which ``high - low`` is shown to be below ``limit``."""

    def enough(n: int) -> bool:
        pair = Pair(round(high * n), n, round(low * n), n)
        spread = math.sqrt((low * (1 - low) + high * (1 - high)) / n)
        seen = pair.hits_a / n - pair.hits_b / n
        return bound(pair) - seen + float(ndtri(power)) * spread <= limit - (high - low)

    least, most = 10, 200_000
    while most - least > least // 400 + 1:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def ideal(low: float, high: float, limit: float, power: float) -> float:
    """The same, were proportions normal and their variances known."""
    z = -float(ndtri(ERROR)) + float(ndtri(power))
    return z**2 * (low * (1 - low) + high * (1 - high)) / (limit - (high - low)) ** 2


def tightness() -> None:
    """Rows of each group to show that a true gap of 0.02 is below 0.05."""
    print("TIGHTNESS: rows of each of two groups to certify a true gap of 0.02 below 0.05, at 95%")
    random = np.random.default_rng(0)
    for power in (0.8, 0.9):
        for low in (0.05, 0.3, 0.5):
            high = low + 0.02
            best = ideal(low, high, 0.05, power)
            print(f"\n  rates {low:.2f} and {high:.2f}, power {power:g}: normal ideal {best:,.0f}")
            for name, bound in CONSTRUCTIONS.items():
                n = needed(bound, low, high, 0.05, power)
                drawn = random.binomial(n, [high, low], size=(REPETITIONS, 2))
                if bound is exact:
                    shown = [_rules_out(Pair(int(a), n, int(b), n), 1.0, 0.05) for a, b in drawn]
                else:
                    shown = [bound(Pair(int(a), n, int(b), n)) <= 0.05 for a, b in drawn[:300]]
                print(
                    f"    {name:<30} {n:>7,} rows   {n / best:5.2f} times the ideal   "
                    f"(simulated power {np.mean(shown):.3f})"
                )
    found = sample_size(gap(NAMED["selection_rate"], by="sex") <= 0.05, rates=[0.28, 0.30])
    print(f"\n  sample_size() says {found.rows} for rates 0.28 and 0.30, power 0.9")


# -- validity --------------------------------------------------------------------------------------


@cache
def _rules_out(pair: Pair, slope: float, shift: float, error: float = ERROR) -> bool:
    return evidence(pair, error, 1.0 if shift else slope).rules_out(slope, shift)


@cache
def _shown(pair: Pair, limit: float, error: float) -> bool:
    return evidence(pair.swapped, error).rules_out(1.0, -limit)


def verdict(kind: str, hits: Sequence[int], counts: Sequence[int], limit: float) -> str:
    """The verdict of certify(), by tests at the limit alone, which are all that it depends on."""
    if min(counts) == 0:
        return "not enough evidence"
    shares = np.asarray(hits) / np.asarray(counts)
    pairs = sorted(permutations(range(len(hits)), 2), key=lambda ab: shares[ab[1]] - shares[ab[0]])
    slope, shift = (1.0, limit) if kind == "gap" else (limit, 0.0)
    rows = [Pair(hits[a], counts[a], hits[b], counts[b]) for a, b in pairs]
    if all(_rules_out(row, slope, shift) for row in rows):
        return "holds"
    worst = [r for r in rows if r.hits_a / r.count_a - r.hits_b / r.count_b > limit]
    if kind == "gap" and any(_shown(row, limit, ERROR / len(rows)) for row in worst):
        return "violated"
    return "not enough evidence"


def counts_of(rate: str, y: np.ndarray, h: np.ndarray, group: np.ndarray, k: int):
    """Hits and rows in the denominator by group: counted here, not by omnifair."""
    hit, below = {
        "selection_rate": (h == 1, np.ones(len(h), dtype=bool)),
        "true_positive_rate": ((h == 1) & (y == 1), y == 1),
        "false_discovery_rate": ((h == 1) & (y == 0), h == 1),
    }[rate]
    return [np.bincount(group[rows], minlength=k).tolist() for rows in (hit, below)]


# name, groups, rows, rate, shares (None: equal)
POPULATIONS = [
    ("2 groups", 2, 1_000, "selection_rate", None),
    ("2 groups, large", 2, 4_000, "selection_rate", None),
    ("2 groups, 1 small", 2, 1_000, "selection_rate", (0.95, 0.05)),
    ("2 groups, tiny", 2, 60, "selection_rate", None),
    ("3 groups", 3, 1_000, "true_positive_rate", None),
    ("4 groups, small", 4, 160, "selection_rate", None),
    ("4 groups", 4, 1_000, "false_discovery_rate", None),
    ("6 groups", 6, 1_200, "selection_rate", None),
    ("6 groups, small", 6, 300, "true_positive_rate", None),
]


def population(k: int, shares: Sequence[float] | None) -> Population:
    """Applicants of ``k`` groups, of which the first and the last are apart.

    The others lie between: one pair alone is at the bound, where false verdicts are likeliest.
    """
    rates = [0.6, *[0.5] * (k - 2), 0.4]
    return make_lending(
        1, 0, groups=k, shares=shares, base_rates=rates, noise_features=0
    ).population


class Rule:
    """A fitted classifier: who scores well, a little by the proxy."""

    classes_ = np.array([0, 1])
    coef, intercept = np.array([1.0, 0.1]), 0.1

    def predict(self, X):
        """Decisions."""
        return (np.asarray(X) @ self.coef + self.intercept >= 0).astype(int)


def validity(repetitions: int = REPETITIONS) -> None:
    """How often a verdict about a population of known rates is false."""
    print(f"\nVALIDITY of certify(), at 95%: {repetitions} repetitions each; false at most 5%")
    print(
        f"  {'population':<20}{'rate':<22}{'kind':<7}{'true':>7}{'bound':>8}"
        f"{'false holds':>18}{'false violated':>18}{'seconds':>9}"
    )
    rule, worst = Rule(), 0.0
    for number, (name, k, n, rate, shares) in enumerate(POPULATIONS):
        people = population(k, shares)
        of = [
            float(people.rates_of_linear(rule.coef, rule.intercept, g)[rate]) for g in people.groups
        ]
        true = {"gap": max(of) - min(of), "ratio": min(of) / max(of)}
        random = np.random.default_rng(number)
        samples = []
        for _ in range(repetitions):
            data = people.sample(n, random)
            group = data.sensitive_features["group"].map(people.groups.index).to_numpy()
            h = rule.predict(data.X)
            samples.append((counts_of(rate, data.y.to_numpy(), h, group, k), data))
        bounds = [("gap", true["gap"] * f) for f in (1.0, 0.9, 0.5)] + [("ratio", true["ratio"])]
        for kind, limit in bounds:
            start = time.perf_counter()
            found = [verdict(kind, *counts, limit) for counts, _ in samples]
            # The short way and certify() itself agree.
            for verdict_, (_, data) in list(zip(found, samples, strict=True))[:3]:
                asked = (
                    gap(NAMED[rate], by="group") <= limit
                    if kind == "gap"
                    else ratio(NAMED[rate], by="group") >= limit
                )
                said = str(
                    certify(
                        rule, asked, data.X, data.y, sensitive_features=data.sensitive_features
                    ).verdict
                )
                assert said == verdict_ or (kind == "ratio" and verdict_ != "holds")
            holds = found.count("holds") / repetitions
            worst = max(worst, holds)
            # "Violated" is false only where the bound is the true value or more.
            violated = found.count("violated") / repetitions
            at = kind == "gap" and limit >= true["gap"]
            print(
                f"  {name:<20}{rate:<22}{kind:<7}{true[kind]:7.3f}{limit:8.3f}"
                f"{_share(holds, repetitions):>18}"
                f"{_share(violated, repetitions) if at else '-':>18}"
                f"{time.perf_counter() - start:9.1f}"
            )
    error = math.sqrt(0.05 * 0.95 / repetitions)
    print(f"  largest share of false holds: {worst:.4f} (5% with a binomial error of {error:.4f})")


def _share(share: float, n: int) -> str:
    return f"{share:.4f} +- {math.sqrt(max(share * (1 - share), 1 / n) / n):.4f}"


# -- power -----------------------------------------------------------------------------------------


def power(repetitions: int = 300) -> None:
    """How often certify() alone shows what is true."""
    print("\nPOWER of certify() alone: share of verdicts, selection rates 0.30 and 0.30 + gap, 95%")
    random = np.random.default_rng(0)
    print(f"  {'true gap':>9}{'bound':>7}{'rows a group':>14}{'holds':>8}{'violated':>10}")
    for true, limit in ((0.0, 0.05), (0.02, 0.05), (0.02, 0.03), (0.08, 0.05)):
        for n in (500, 2_000, 5_000, 20_000):
            drawn = random.binomial(n, [0.3 + true, 0.3], size=(repetitions, 2))
            found = [verdict("gap", row.tolist(), [n, n], limit) for row in drawn]
            print(
                f"  {true:9.2f}{limit:7.2f}{n:14,}{found.count('holds') / repetitions:8.3f}"
                f"{found.count('violated') / repetitions:10.3f}"
            )


# -- the whole pipeline ------------------------------------------------------------------------


def pipeline() -> None:
    """FairClassifier(confidence=0.95): validity with selection, power, accuracy, trainings."""
    from benchmarks.pipeline import adult, validity

    validity()
    adult()


SECTIONS = {"tightness": tightness, "validity": validity, "power": power, "pipeline": pipeline}


def main(names: Sequence[str]) -> None:
    """Print the sections asked for."""
    start = time.perf_counter()
    for name in names or SECTIONS:
        SECTIONS[name]()
    print(f"\n{time.perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    single_threaded()
    main(sys.argv[1:])
