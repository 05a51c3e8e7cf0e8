"""Columns by name, from whatever holds them: pandas, polars, pyarrow, dicts, arrays.

The rest of the library never asks which dataframe the user has: it asks a :class:`Frame` for a
:class:`Column`. Nothing is copied but the columns that are asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from omnifair.errors import DataError, GroupError

Name = str | int


@dataclass(frozen=True)
class Column:
    """One column as integer codes into its distinct values; code -1 is a missing value."""

    name: Name
    values: tuple[Hashable, ...]
    codes: NDArray[np.intp]


class Frame:
    """The columns of the sensitive features, then those of ``X``.

    Parameters
    ----------
    sensitive
        A dataframe, a series, a dict of columns, an array, or None.
    X
        Where names are looked up that ``sensitive`` does not have; may be anything.
    n_rows
        How many rows there must be.
    """

    def __init__(self, sensitive: Any, X: Any, n_rows: int) -> None:
        self.n_rows = n_rows
        self.sensitive = sensitive
        self.X = X
        self._named: dict[Name, Any] = {}
        self._unnamed: Any = None
        # X first, so that a sensitive feature of the same name takes its place.
        self._add(X, "X", lenient=True)
        if sensitive is not None:
            self._add(sensitive, "sensitive_features", lenient=False)

    def _add(self, data: Any, role: str, *, lenient: bool) -> None:
        try:
            native = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
        except DuplicateError as error:
            raise DataError(f"{role} has several columns of one name. {error}") from error
        if isinstance(native, nw.DataFrame):
            columns: dict[Name, Any] = {name: native.get_column(name) for name in native.columns}
        elif isinstance(native, nw.Series):
            name: Any = native.name  # without a name: None in pandas, "" in polars
            columns = {} if name is None or name == "" else {name: native}
            if not columns:
                self._unnamed = native
        elif isinstance(data, Mapping):
            columns = {k: _as_vector(v, f"{role}[{k!r}]") for k, v in data.items()}
        elif lenient:
            # An array's columns go by their position; sparse matrices and texts have none.
            ok = isinstance(data, np.ndarray) and data.ndim == 2
            columns = {i: data[:, i] for i in range(data.shape[1])} if ok else {}
        else:
            array = _array(data, role)
            if array.ndim == 2 and array.shape[1] > 1:
                columns = {i: array[:, i] for i in range(array.shape[1])}
            else:
                columns, self._unnamed = {}, _as_vector(data, role)
        first = next(iter(columns.values()), self._unnamed if not lenient else None)
        if not lenient and first is not None and len(first) != self.n_rows:
            raise DataError(
                f"{role} has {len(first)} rows, but there are {self.n_rows} labels: "
                "pass one row per example."
            )
        self._named.update(columns)

    def names(self) -> list[Name]:
        """The names that can be looked up."""
        return list(self._named)

    def raw(self, name: Name) -> NDArray[Any]:
        """The values of a column that has this very name."""
        return np.asarray(_to_numpy(self._find(name, sole=False)))

    def column(self, name: Name, *, sole: bool = True) -> Column:
        """The column as codes into its sorted distinct values.

        ``sole`` says that no other name is asked for by the constraints, so that a sensitive
        feature given without any name can only be this one.
        """
        found = self._find(name, sole)
        if len(found) != self.n_rows:
            raise DataError(f"Column {name!r} has {len(found)} rows, expected {self.n_rows}.")
        codes, values = _factorize(found)
        return _sorted(Column(name, values, codes))

    def native(self) -> Any:
        """The data as one dataframe for a user's function: sensitive features, then ``X``.

        When the two are not dataframes of one library there is nothing to join; the sensitive
        features are then passed alone, and ``X`` where there are none.
        """
        if self.sensitive is None:
            return self.X
        left, right = _dataframe(self.sensitive), _dataframe(self.X)
        if left is None or right is None or left.implementation is not right.implementation:
            return self.sensitive
        rest = [c for c in right.columns if c not in left.columns]
        joined = left.with_columns(*(right.get_column(c) for c in rest)) if rest else left
        return joined.to_native()

    def _find(self, name: Name, sole: bool) -> Any:
        if sole and self._unnamed is not None:
            return self._unnamed
        if name in self._named:
            return self._named[name]
        if self._unnamed is not None:
            raise GroupError(
                f"sensitive_features has no column names, so {name!r} cannot be found in it: "
                "pass a dataframe, or a dict such as {'sex': values, 'race': values}."
            )
        known = ", ".join(map(repr, list(self._named)[:20])) or "none"
        where = "X" if self.sensitive is None else "sensitive_features or X"
        raise GroupError(
            f"Column {name!r} is not in {where}; the columns there: {known}. Pass it to "
            "fit(..., sensitive_features=...)."
        )


def _dataframe(data: Any) -> nw.DataFrame[Any] | None:
    native = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.Series):
        return native.to_frame()
    return native if isinstance(native, nw.DataFrame) else None


def _array(values: Any, role: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise DataError(f"{role} cannot be read as columns: {error}") from None


def _as_vector(values: Any, role: str) -> Any:
    native = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(native, nw.Series):
        return native
    array = _array(values, role)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"{role} must be one column, got an array of shape {array.shape}.")
    if array.dtype.kind in "US" and isinstance(values, Sequence):
        # NumPy turns ["a", None] and ["a", 1] into text silently; keep what was given.
        kept = np.empty(len(values), dtype=object)
        kept[:] = list(values)
        return kept
    return array


def _to_numpy(found: Any) -> Any:
    return found.to_numpy() if isinstance(found, nw.Series) else found


def _factorize(found: Any) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    native = found.to_native() if isinstance(found, nw.Series) else found
    if isinstance(found, nw.Series) and hasattr(native, "factorize"):  # pandas: hashed in C
        codes, uniques = native.factorize()
        return np.asarray(codes, dtype=np.intp), tuple(map(_plain, uniques.tolist()))
    if isinstance(found, nw.Series) and found.dtype in (nw.String, nw.Categorical, nw.Enum):
        return _looked_up(found)
    array = np.asarray(_to_numpy(found))
    if array.dtype.kind == "b" or np.issubdtype(array.dtype, np.signedinteger):
        distinct, inverse = compact(array.astype(np.intp))
        return inverse, tuple(distinct.astype(array.dtype).tolist())
    if array.dtype.kind == "u":
        distinct, inverse = np.unique(array, return_inverse=True)
        return inverse.astype(np.intp), tuple(distinct.tolist())
    if array.dtype.kind == "f":
        distinct, inverse = np.unique(array, return_inverse=True, equal_nan=True)
        codes = np.where(np.isnan(array), -1, inverse).astype(np.intp)
        return codes, tuple(v for v in distinct.tolist() if v == v)
    return _hash_codes(array.tolist())


def compact(codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distinct codes in order, and for each row the position of its own."""
    low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
    if high - low > 4 * len(codes) + 1024:  # too sparse to count
        distinct, inverse = np.unique(codes, return_inverse=True)
        return distinct.astype(np.intp), inverse.astype(np.intp)
    here = np.bincount(codes - low, minlength=1) > 0
    return np.flatnonzero(here) + low, (np.cumsum(here) - 1)[codes - low]


def _looked_up(found: nw.Series[Any]) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    """Codes of text or categories, found by the dataframe's own library."""
    known = found.drop_nulls()
    distinct = known.unique().to_list()
    codes = np.full(len(found), -1, dtype=np.intp)
    if distinct:
        where = known.replace_strict(distinct, list(range(len(distinct))), return_dtype=nw.Int64)
        codes[~found.is_null().to_numpy()] = where.to_numpy()
    return codes, tuple(distinct)


def _hash_codes(values: list[Any]) -> tuple[NDArray[np.intp], tuple[Hashable, ...]]:
    position: dict[Any, int] = defaultdict(count().__next__)
    try:
        raw = np.fromiter(map(position.__getitem__, values), np.intp, len(values))
    except TypeError as error:
        raise DataError("A sensitive column holds values that cannot name a group.") from error
    kept = [_plain(v) for v in position if not _is_missing(v)]
    where = {v: i for i, v in enumerate(dict.fromkeys(kept))}
    recode = np.array([-1 if _is_missing(v) else where[_plain(v)] for v in position], dtype=np.intp)
    return recode[raw], tuple(where)


def _is_missing(value: Any) -> bool:
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _sorted(column: Column) -> Column:
    """The same column with its values in order, so that the order of rows never matters."""
    try:
        order = sorted(range(len(column.values)), key=lambda i: column.values[i])  # type: ignore[arg-type,return-value]
    except TypeError:  # values of different types: any fixed order will do
        order = sorted(range(len(column.values)), key=lambda i: _type_and_text(column.values[i]))
    rank = np.empty(len(order) + 1, dtype=np.intp)
    rank[order] = np.arange(len(order))
    rank[-1] = -1  # code -1, a missing value, stays what it is
    return Column(column.name, tuple(column.values[i] for i in order), rank[column.codes])


def _type_and_text(value: Hashable) -> tuple[str, str]:
    return type(value).__name__, repr(value)
