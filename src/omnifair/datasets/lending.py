"""Loan applicants who do not exist, drawn from a population whose every rate is known.

A gap that is measured on real data is an estimate. To tell whether a method meets its bound on
the *population*, the population must be known: here it is Gaussian, and each rate of each linear
classifier in each group is a sum of normal distribution functions.

The model. An applicant belongs to group g with the group's share, repays (label 1) with the
group's base rate, and has independent features of variance 1::

    score    mean  shift_g + (label - 1/2) * separation_g
    proxy    mean  proxy_strength * (place of g among the groups, from -1 to 1)
    noise_k  mean  0

Only the score bears on the label, the proxy tells the group, the noise nothing.

Gaps to order. With equal separations and no shifts every group has the same true and false
positive rates a and b at a threshold, so that selection rates differ by ``(a - b)`` times the
difference of base rates. A true positive rate r at threshold t takes the shift
``t - separation / 2 + NormalDist().inv_cdf(r)``, whatever the base rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from string import ascii_uppercase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnifair.datasets.dataset import Dataset, need

Array = NDArray[np.float64]


def make_lending(
    n: int = 10_000,
    random_state: Any = None,
    *,
    groups: int | Sequence[str] = 2,
    shares: Sequence[float] | None = None,
    base_rates: float | Sequence[float] | None = None,
    shifts: float | Sequence[float] = 0.0,
    separations: float | Sequence[float] = 2.0,
    proxy_strength: float = 1.0,
    noise_features: int = 3,
) -> Lending:
    """Draw loan applicants from a population whose true rates are known.

    Parameters
    ----------
    n : int
        How many applicants.
    random_state : int, RandomState, Generator or None
        The source of randomness; the same seed gives the same applicants.
    groups : int or sequence of str
        How many groups (called A, B, ...), or their names.
    shares : sequence of float, optional
        Each group's share of the population; equal unless told.
    base_rates : float or sequence of float, optional
        How likely a member of each group repays; from 0.6 for the first group evenly down to
        0.3 for the last unless told. One number stands for all groups.
    shifts : float or sequence of float
        What is added to every score of a group, whatever the label.
    separations : float or sequence of float
        How far apart the mean scores of a group's two labels are.
    proxy_strength : float
        How well the feature ``proxy`` tells the group; 0 makes it noise.
    noise_features : int
        How many features tell nothing.

    Returns
    -------
    Lending
        The applicants, and the `population` they come from. The group is the only sensitive
        feature, in the column ``group``; it is not in `X`.

    Examples
    --------
    >>> data = make_lending(1_000, random_state=0)
    >>> round(data.population.true_positive_rate(0.0, "B"), 3)
    0.841
    """
    names = _names(groups)
    k = len(names)
    if base_rates is None:
        base_rates = [float(rate) for rate in np.linspace(0.6, 0.3, k)]
    population = Population(
        groups=names,
        shares=(1.0 / k,) * k if shares is None else _each("shares", shares, k),
        base_rates=_each("base_rates", base_rates, k),
        shifts=_each("shifts", shifts, k),
        separations=_each("separations", separations, k),
        proxy_strength=float(proxy_strength),
        noise_features=noise_features,
    )
    return population.sample(n, random_state)


@dataclass(frozen=True, slots=True)
class Population:
    """The applicants that could be drawn, and the truth about them.

    Methods take the name of a group, or None for the whole population.

    Attributes
    ----------
    groups : tuple of str
    shares, base_rates, shifts, separations : tuple of float
        One number a group; see :func:`make_lending`.
    proxy_strength : float
    noise_features : int
    """

    groups: tuple[str, ...]
    shares: tuple[float, ...]
    base_rates: tuple[float, ...]
    shifts: tuple[float, ...]
    separations: tuple[float, ...]
    proxy_strength: float = 1.0
    noise_features: int = 3

    def __post_init__(self) -> None:
        if not self.groups or len(set(self.groups)) != len(self.groups):
            raise ValueError(f"groups must be one or more different names, not {self.groups}.")
        for name in ("shares", "base_rates", "shifts", "separations"):
            if len(getattr(self, name)) != len(self.groups):
                raise ValueError(f"{name} must hold one number for each of {self.groups}.")
        if min(self.shares) <= 0 or not math.isclose(sum(self.shares), 1.0, abs_tol=1e-9):
            raise ValueError(f"shares must be positive and sum to 1, not {self.shares}.")
        if not all(0 < rate < 1 for rate in self.base_rates):
            raise ValueError(f"base_rates must lie strictly between 0 and 1: {self.base_rates}.")
        if not all(0 < distance < math.inf for distance in self.separations):
            raise ValueError(f"separations must be positive: {self.separations}.")
        if not all(map(math.isfinite, (*self.shifts, self.proxy_strength))):
            raise ValueError("shifts and proxy_strength must be finite.")
        if self.noise_features < 0:
            raise ValueError(f"noise_features must be 0 or more, not {self.noise_features}.")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of `X`, in the order that coefficients are given in."""
        noise = (f"noise_{i + 1}" for i in range(self.noise_features))
        return ("score", "proxy", *noise)

    def mean(self, group: str, label: int) -> Array:
        """Give the mean of each feature among a group's members of one label."""
        g = self._place(group)
        centred = 0.0 if len(self.groups) == 1 else 2 * g / (len(self.groups) - 1) - 1
        score = self.shifts[g] + (label - 0.5) * self.separations[g]
        return np.array([score, self.proxy_strength * centred] + [0.0] * self.noise_features)

    # -- the truth about ``score >= threshold`` ---------------------------------------------------

    def base_rate(self, group: str | None = None) -> float:
        """How likely a member repays."""
        return self._average(lambda g, label: float(label), group)

    def selection_rate(self, threshold: float, group: str | None = None) -> float:
        """How likely a member's score reaches the threshold."""
        return self.rates_of_threshold(threshold, group)["selection_rate"]

    def true_positive_rate(self, threshold: float, group: str | None = None) -> float:
        """How likely the score of a member who repays reaches the threshold."""
        return self.rates_of_threshold(threshold, group)["true_positive_rate"]

    def false_positive_rate(self, threshold: float, group: str | None = None) -> float:
        """How likely the score of a member who does not repay reaches the threshold."""
        return self.rates_of_threshold(threshold, group)["false_positive_rate"]

    def accuracy(self, threshold: float, group: str | None = None) -> float:
        """How likely the threshold is right about a member."""
        return self.rates_of_threshold(threshold, group)["accuracy"]

    def rates_of_threshold(self, threshold: float, group: str | None = None) -> dict[str, float]:
        """All rates of ``score >= threshold``, by name."""
        coef = [1.0, 0.0] + [0.0] * self.noise_features
        return self._rates(self._selected(coef, -threshold), group)

    # -- the truth about any linear classifier ----------------------------------------------------

    def rates_of_linear(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0
    ) -> dict[str, dict[str, float]]:
        """Give the true rates of ``X @ coef + intercept >= 0`` in each group.

        Parameters
        ----------
        coef : array of shape (n_features,) or (1, n_features)
            In the order of `feature_names`, on the features as they are: undo a scaler first.
        intercept : float or array of one number

        Returns
        -------
        dict
            By group, then by rate: ``selection_rate``, ``accuracy``, ``true_positive_rate``,
            ``false_positive_rate``, ``true_negative_rate``, ``false_negative_rate``,
            ``false_discovery_rate`` and ``false_omission_rate``. The last two are NaN where
            nobody, or everybody, is selected.
        """
        selected = self._selected(coef, intercept)
        return {group: self._rates(selected, group) for group in self.groups}

    def overall_rates_of_linear(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0
    ) -> dict[str, float]:
        """Give the same rates over the whole population."""
        return self._rates(self._selected(coef, intercept), None)

    # -- the best that can be done ----------------------------------------------------------------

    def bayes_threshold(self, group: str) -> float:
        """Give the threshold on the score that errs least in one group."""
        g = self._place(group)
        p = self.base_rates[g]
        return self.shifts[g] + math.log((1 - p) / p) / self.separations[g]

    def bayes_accuracy(self, group: str | None = None) -> float:
        """Give the accuracy that no classifier exceeds, even one that is told the group.

        It is that of each group's own :meth:`bayes_threshold`. A classifier that does not see
        the group reaches it only where the groups' thresholds agree.
        """
        if group is not None:
            return self.accuracy(self.bayes_threshold(group), group)
        return sum(
            share * self.bayes_accuracy(name)
            for name, share in zip(self.groups, self.shares, strict=True)
        )

    # -- people -----------------------------------------------------------------------------------

    def sample(self, n: int, random_state: Any = None) -> Lending:
        """Draw `n` applicants; see :func:`make_lending`."""
        if n < 1:
            raise ValueError(f"n must be 1 or more, not {n}.")
        pd = need("pandas")
        draw = _random(random_state)
        group = draw.choice(len(self.groups), size=n, p=np.array(self.shares) / sum(self.shares))
        label = (draw.random(n) < np.array(self.base_rates)[group]).astype(np.int64)
        means = np.array([[self.mean(name, y) for y in (0, 1)] for name in self.groups])
        features = means[group, label] + draw.standard_normal((n, len(self.feature_names)))
        seed = f", random_state={random_state}" if isinstance(random_state, int) else ""
        return Lending(
            name="lending",
            X=pd.DataFrame(features, columns=list(self.feature_names)),
            y=pd.Series(label, name="repaid"),
            sensitive_features=pd.DataFrame({"group": np.array(self.groups, dtype=object)[group]}),
            positive="repaid",
            source=f"synthetic: make_lending, n={n}{seed}",
            population=self,
        )

    # -- inside -----------------------------------------------------------------------------------

    def _place(self, group: str) -> int:
        if group not in self.groups:
            raise ValueError(f"no group {group!r}: there are {', '.join(self.groups)}.")
        return self.groups.index(group)

    def _selected(self, coef: ArrayLike, intercept: ArrayLike) -> Selected:
        """How likely a member of a group and label is selected: one normal tail."""
        w = np.asarray(coef, dtype=float).ravel()
        b = np.asarray(intercept, dtype=float).ravel()
        if w.shape != (len(self.feature_names),) or b.shape != (1,):
            raise ValueError(
                f"coef must hold {len(self.feature_names)} numbers, for "
                f"{', '.join(self.feature_names)}, and intercept one; got {w.size} and {b.size}."
            )
        spread = float(np.linalg.norm(w))

        def selected(group: str, label: int) -> float:
            centre = float(w @ self.mean(group, label) + b[0])
            if spread == 0.0:
                return float(centre >= 0)
            return NormalDist().cdf(centre / spread)

        return selected

    def _average(self, value: Selected, group: str | None) -> float:
        """Average a function of group and label over a group, or over everybody."""
        names = self.groups if group is None else (self.groups[self._place(group)],)
        total = mass = 0.0
        for name, label in product(names, (0, 1)):
            g = self._place(name)
            p = self.base_rates[g]
            weight = self.shares[g] * (p if label else 1 - p)
            total += weight * value(name, label)
            mass += weight
        return total / mass

    def _rates(self, selected: Selected, group: str | None) -> dict[str, float]:
        tp = self._average(lambda g, label: label * selected(g, label), group)
        fp = self._average(lambda g, label: (1 - label) * selected(g, label), group)
        p = self.base_rate(group)
        fn, tn = p - tp, 1 - p - fp
        return {
            "selection_rate": tp + fp,
            "accuracy": tp + tn,
            "true_positive_rate": tp / p,
            "false_positive_rate": fp / (1 - p),
            "true_negative_rate": tn / (1 - p),
            "false_negative_rate": fn / p,
            "false_discovery_rate": fp / (tp + fp) if tp + fp > 0 else math.nan,
            "false_omission_rate": fn / (fn + tn) if fn + tn > 0 else math.nan,
        }


Selected = Callable[[str, int], float]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lending(Dataset):
    """Drawn applicants: a :class:`Dataset` that knows its `population`."""

    population: Population


def _names(groups: int | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(groups, int):
        return tuple(groups)
    if not 1 <= groups <= len(ascii_uppercase):
        raise ValueError(f"groups must be from 1 to {len(ascii_uppercase)}, or names: {groups}.")
    return tuple(ascii_uppercase[:groups])


def _each(name: str, values: float | Sequence[float], k: int) -> tuple[float, ...]:
    """One number a group, from one a group or one for all."""
    if isinstance(values, (int, float)):
        return (float(values),) * k
    if len(values) != k:
        raise ValueError(f"{name} must be one number, or {k} of them: one a group.")
    return tuple(float(value) for value in values)


def _random(random_state: Any) -> Any:
    """Accept a Generator too: what is needed here, it and a RandomState call alike."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    from sklearn.utils import check_random_state

    return check_random_state(random_state)
