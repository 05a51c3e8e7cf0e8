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
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from omnifair.datasets.dataset import Dataset, need
from omnifair.errors import DataError

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
    >>> truth = data.population.rates_of_threshold(0.0, "B")
    >>> round(truth["true_positive_rate"], 3)
    0.841
    """
    names = _names(groups)
    k = len(names)
    if base_rates is None:
        base_rates = np.linspace(0.6, 0.3, k).tolist()
    if shares is None:
        shares = [1.0 / k for _ in names]
    population = Population(
        groups=names,
        shares=_each("shares", shares, k),
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
            raise DataError(f"groups must be one or more different names, not {self.groups}.")
        for name in ("shares", "base_rates", "shifts", "separations"):
            if len(getattr(self, name)) != len(self.groups):
                raise DataError(f"{name} must hold one number for each of {self.groups}.")
        if min(self.shares) <= 0 or not math.isclose(sum(self.shares), 1.0, abs_tol=1e-9):
            raise DataError(f"shares must be positive and sum to 1, not {self.shares}.")
        if not all(0 < rate < 1 for rate in self.base_rates):
            raise DataError(f"base_rates must lie strictly between 0 and 1: {self.base_rates}.")
        if not all(0 < distance < math.inf for distance in self.separations):
            raise DataError(f"separations must be positive: {self.separations}.")
        if not all(map(math.isfinite, (*self.shifts, self.proxy_strength))):
            raise DataError("shifts and proxy_strength must be finite.")
        if self.noise_features < 0:
            raise DataError(f"noise_features must be 0 or more, not {self.noise_features}.")

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

    # -- the truth --------------------------------------------------------------------------------

    def base_rate(self, group: str | None = None) -> float:
        """How likely a member repays."""
        return float(self._masses(group)[:, 1].sum())

    def rates_of_threshold(self, threshold: ArrayLike, group: str | None = None) -> dict[str, Any]:
        """Give the true rates of ``score >= threshold``.

        Parameters
        ----------
        threshold : float or array
        group : str, optional
            Among whom; everybody unless told.

        Returns
        -------
        dict
            ``selection_rate``, ``accuracy``, ``true_positive_rate``, ``false_positive_rate``,
            ``true_negative_rate``, ``false_negative_rate``, ``false_discovery_rate`` and
            ``false_omission_rate``, each a number, or an array of the thresholds' shape. The last
            two are NaN where nobody, or everybody, is selected.
        """
        coef = np.eye(len(self.feature_names))[0]
        return self._rates(coef, -np.asarray(threshold, dtype=float), group)

    def rates_of_linear(
        self, coef: ArrayLike, intercept: ArrayLike = 0.0, group: str | None = None
    ) -> dict[str, Any]:
        """Give the true rates of ``X @ coef + intercept >= 0``.

        Parameters
        ----------
        coef : array of shape (n_features,) or (1, n_features)
            In the order of `feature_names`, on the features as they are: undo a scaler first.
        intercept : float or array
            A number, or several: the rates then are arrays.
        group : str, optional
            Among whom; everybody unless told.

        Returns
        -------
        dict
            As of :meth:`rates_of_threshold`.
        """
        return self._rates(np.asarray(coef, dtype=float).ravel(), intercept, group)

    # -- people -----------------------------------------------------------------------------------

    def sample(self, n: int, random_state: Any = None) -> Lending:
        """Draw `n` applicants; see :func:`make_lending`."""
        if n < 1:
            raise DataError(f"n must be 1 or more, not {n}.")
        pd = need("pandas")
        draw = _random(random_state)
        group = draw.choice(len(self.groups), size=n, p=np.array(self.shares) / sum(self.shares))
        label = (draw.random(n) < np.array(self.base_rates)[group]).astype(np.int64)
        features = self._means()[group, label] + draw.standard_normal((n, len(self.feature_names)))
        seed = f", random_state={random_state}" if isinstance(random_state, int) else ""
        return Lending(
            name="lending",
            X=pd.DataFrame(features, columns=list(self.feature_names)),
            y=pd.Series(label, name="repaid"),
            sensitive_features=pd.DataFrame({"group": np.array(self.groups, dtype=object)[group]}),
            positive="repaid",
            source=f"synthetic, make_lending({n}{seed})",
            population=self,
        )

    # -- inside -----------------------------------------------------------------------------------

    def _place(self, group: str) -> int:
        if group not in self.groups:
            raise DataError(f"there is no group {group!r}, only {', '.join(self.groups)}.")
        return self.groups.index(group)

    def _means(self) -> Array:
        """Mean of each feature, by group and label."""
        return np.array([[self.mean(group, label) for label in (0, 1)] for group in self.groups])

    def _masses(self, group: str | None) -> Array:
        """How likely each group and label is, among everybody or in one group."""
        p = np.array(self.base_rates)
        masses = np.array(self.shares)[:, None] * np.column_stack([1 - p, p])
        if group is not None:
            masses[np.arange(len(p)) != self._place(group)] = 0.0
        shares: Array = masses / masses.sum()
        return shares

    def _rates(self, coef: Array, intercept: ArrayLike, group: str | None) -> dict[str, Any]:
        if coef.shape != (len(self.feature_names),):
            raise DataError(
                f"coef must hold {len(self.feature_names)} numbers, for "
                f"{', '.join(self.feature_names)}; got {coef.size}."
            )
        # Within a group and label, X @ coef is normal with this spread: selection is one tail.
        spread = float(np.linalg.norm(coef))
        centre = self._means() @ coef + np.asarray(intercept, dtype=float)[..., None, None]
        far = centre / spread if spread > 0 else np.where(centre >= 0, np.inf, -np.inf)
        masses = self._masses(group)
        negative, positive = masses.sum(axis=0)
        fp, tp = np.moveaxis((masses * ndtr(far)).sum(axis=-2), -1, 0)
        tn, fn = np.moveaxis((masses * ndtr(-far)).sum(axis=-2), -1, 0)
        with np.errstate(invalid="ignore"):  # 0/0 where there is nobody to take a share of
            return {
                "selection_rate": tp + fp,
                "accuracy": tp + tn,
                "true_positive_rate": tp / positive,
                "false_positive_rate": fp / negative,
                "true_negative_rate": tn / negative,
                "false_negative_rate": fn / positive,
                "false_discovery_rate": fp / (tp + fp),
                "false_omission_rate": fn / (fn + tn),
            }


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lending(Dataset):
    """Drawn applicants: a :class:`Dataset` that knows its `population`."""

    population: Population


def _names(groups: int | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(groups, int):
        return tuple(groups)
    if not 1 <= groups <= len(ascii_uppercase):
        raise DataError(f"groups must be from 1 to {len(ascii_uppercase)}, or names: {groups}.")
    return tuple(ascii_uppercase[:groups])


def _each(name: str, values: ArrayLike, k: int) -> tuple[float, ...]:
    """One number a group, from one a group or one for all."""
    array = np.asarray(values, dtype=float)
    if array.shape not in ((), (k,)):
        raise DataError(f"{name} must be one number, or {k} of them: one a group.")
    return tuple(np.broadcast_to(array, k).tolist())


def _random(random_state: Any) -> Any:
    """Accept a Generator too: what is needed here, it and a RandomState call alike."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    from sklearn.utils import check_random_state

    return check_random_state(random_state)
