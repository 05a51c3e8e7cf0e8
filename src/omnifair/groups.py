"""Grouping: which rows belong to which group.

A grouping is declared without data: by one column, by several columns crossed, by named
predicates over columns, or by a function of the data. :func:`assign` applies it to a
:class:`~omnifair.frames.Frame` and says for every row which *atom* it is in, where the rows of
an atom belong to exactly the same groups. Groups may overlap; atoms never do.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnifair.errors import DeclarationError, GroupError
from omnifair.frames import Frame, Name, compact

MISSING = ("error", "ignore", "group")


@dataclass(frozen=True, slots=True)
class Columns:
    """Groups by the values of one column, or by several columns crossed."""

    names: tuple[Name, ...]

    def __str__(self) -> str:
        return repr(self.names[0]) if len(self.names) == 1 else repr(list(self.names))

    def label(self, key: Hashable) -> str:
        """A group's name as people read it: ``race=White & sex=Female``."""
        values = key if len(self.names) > 1 and isinstance(key, tuple) else (key,)
        return " & ".join(
            f"{n}={'(missing)' if v is None else v}"
            for n, v in zip(self.names, values, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Predicates:
    """Groups by named predicates over columns; they may overlap and may leave rows out."""

    items: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"groups({', '.join(f'{name}={text!r}' for name, text in self.items)})"

    def label(self, key: Hashable) -> str:
        """A group's name as people read it."""
        return "(missing)" if key is None else str(key)


@dataclass(frozen=True, slots=True)
class ByFunction:
    """Groups by a function: data in, ``{group id: row indices}`` out."""

    function: Callable[[Any], Mapping[Hashable, Iterable[int]]]

    def __str__(self) -> str:
        return str(getattr(self.function, "__qualname__", self.function))

    def label(self, key: Hashable) -> str:
        """A group's name as people read it."""
        return str(key)


Source = Columns | Predicates | ByFunction


@dataclass(frozen=True, slots=True)
class Grouping:
    """A source of groups, which of them to keep, and what a missing value means."""

    source: Source
    only: tuple[Hashable, ...] | None = None
    missing: str = "error"

    @property
    def names(self) -> tuple[Name, ...]:
        """The columns that this grouping reads, as far as that can be known."""
        if isinstance(self.source, Columns):
            return self.source.names
        if isinstance(self.source, Predicates):
            return tuple(dict.fromkeys(n for _, text in self.source.items for n in _names_in(text)))
        return ()

    def label(self, key: Hashable) -> str:
        """A group's name as people read it."""
        return self.source.label(key)


@dataclass(frozen=True)
class Assignment:
    """Groups found in data: ``member[atom[i], j]`` says whether row i is in group j."""

    keys: tuple[Hashable, ...]
    atom: NDArray[np.intp]
    member: NDArray[np.bool_]


# -- declaring --------------------------------------------------------------------------------


def groups(**predicates: str) -> Predicates:
    """Groups by named predicates over columns.

    Parameters
    ----------
    **predicates
        ``name="expression"``. An expression compares columns with constants or each other
        (``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``not in``), does arithmetic on
        them, and combines with ``and``, ``or``, ``not``. A column whose name is not an
        identifier is written ``column("native-country")``.

    Examples
    --------
    >>> groups(young="age < 25", senior="age >= 60")
    >>> groups(single_mothers="sex == 'Female' and children > 0")
    """
    if not predicates:
        raise DeclarationError("groups() needs at least one name='predicate'.")
    for name, text in predicates.items():
        if not isinstance(text, str):
            raise DeclarationError(
                f"The predicate {name!r} must be text such as 'age < 25', got {text!r}."
            )
        if not _names_in(text):
            raise DeclarationError(f"The predicate {name}={text!r} mentions no column.")
    return Predicates(tuple((name, str(text)) for name, text in predicates.items()))


def as_grouping(by: Any, only: Any = None, missing: str = "error") -> Grouping:
    """What a user passes as ``by``, ``only`` and ``missing``, checked and frozen."""
    if missing not in MISSING:
        raise DeclarationError(f"missing must be one of {', '.join(MISSING)}, got {missing!r}.")
    source: Source
    if isinstance(by, (Predicates, Columns, ByFunction)):
        source = by
    elif isinstance(by, (list, tuple)) and by and all(map(_is_name, by)):
        if len(set(by)) != len(by):
            raise DeclarationError(f"by={by!r} names a column twice.")
        source = Columns(tuple(map(_plain_name, by)))
    elif _is_name(by):
        source = Columns((_plain_name(by),))
    elif callable(by):
        source = ByFunction(by)
    else:
        raise DeclarationError(
            f"by={by!r}: pass a column's name, a list of names to cross, groups(...) or a function."
        )
    kept = None if only is None else tuple(plain_key(k) for k in _as_list(only))
    if kept is not None and (not kept or len(set(kept)) != len(kept)):
        raise DeclarationError(f"only={only!r} must name at least one group, each once.")
    return Grouping(source, kept, missing)


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""


def _plain_name(name: Name) -> Name:
    return str(name) if isinstance(name, str) else name  # NumPy's text prints as np.str_('sex')


def _as_list(only: Any) -> list[Any]:
    if isinstance(only, (str, bytes)) or not isinstance(only, Iterable):
        raise DeclarationError(f"only={only!r} must be a list of groups, such as ['White'].")
    return list(only)


def plain_key(value: Any) -> Hashable:
    """A group's key in plain Python, so that it compares, hashes and prints the same anywhere."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple)):
        value = tuple(plain_key(v) for v in value)
    if not isinstance(value, Hashable):
        raise DeclarationError(f"{value!r} cannot name a group.")
    return value


# -- applying ---------------------------------------------------------------------------------


def assign(grouping: Grouping, frame: Frame, *, sole: bool = True) -> Assignment:
    """Find the groups in the data; every group is checked to have rows."""
    source = grouping.source
    if isinstance(source, Columns):
        found = _by_columns(source, grouping, frame, sole)
    elif isinstance(source, Predicates):
        found = _by_predicates(source, grouping, frame, sole)
    else:
        found = _by_function(source, frame)
    return _keep(found, grouping)


def _check_missing(absent: NDArray[np.bool_], name: Name, grouping: Grouping) -> None:
    if grouping.missing == "error" and absent.any():
        raise GroupError(
            f"Column {name!r} has {int(absent.sum())} missing values, the first in row "
            f"{int(absent.argmax())}. Say what they mean: missing='ignore' leaves these rows out "
            "of every group, missing='group' makes them a group of their own."
        )


def _by_columns(source: Columns, grouping: Grouping, frame: Frame, sole: bool) -> Assignment:
    columns = [frame.column(name, sole=sole) for name in source.names]
    combined: NDArray[np.intp] | None = None
    left_out = np.zeros(frame.n_rows, dtype=bool)
    for column in columns:
        codes = column.codes
        absent = codes < 0
        if absent.any():
            _check_missing(absent, column.name, grouping)
            left_out |= absent
            # A missing value takes the code after the last, and the key None.
            codes = np.where(absent, len(column.values), codes)
        combined = codes if combined is None else combined * (len(column.values) + 1) + codes
    assert combined is not None  # as_grouping asks for one column at least
    if grouping.missing == "ignore" and left_out.any():
        combined = np.where(left_out, -1, combined)
    present, atom = compact(combined)
    keys: list[Hashable] = []
    member = np.zeros((len(present), int((present >= 0).sum())), dtype=bool)
    for row, code in enumerate(present.tolist()):
        if code < 0:
            continue
        rest = code
        values: list[Hashable] = []
        for column in reversed(columns):
            rest, digit = divmod(rest, len(column.values) + 1)
            values.append(column.values[digit] if digit < len(column.values) else None)
        member[row, len(keys)] = True
        keys.append(tuple(reversed(values)) if len(columns) > 1 else values[0])
    return Assignment(tuple(keys), atom, member)


def _by_predicates(source: Predicates, grouping: Grouping, frame: Frame, sole: bool) -> Assignment:
    absent = np.zeros(frame.n_rows, dtype=bool)
    values: dict[Name, NDArray[Any]] = {}
    for name in grouping.names:
        column = frame.column(name, sole=sole)
        missing = column.codes < 0
        _check_missing(missing, name, grouping)
        absent |= missing
        known = np.array(column.values) if _one_kind(column.values) else _objects(column.values)
        # The stand-in for a missing value is never used: such rows are masked below.
        filled = known[column.codes] if len(known) else np.zeros(frame.n_rows)
        values[name] = filled
    masks = {}
    for name, text in source.items:
        try:
            mask = np.broadcast_to(_evaluate(text, values), (frame.n_rows,))
        except GroupError as error:
            raise GroupError(f"The predicate {name}={text!r}: {error}") from None
        if mask.dtype != bool:
            raise GroupError(f"The predicate {name}={text!r} is not true or false but a number.")
        masks[name] = mask & ~absent
    keys: list[Hashable] = list(masks)
    if grouping.missing == "group" and absent.any():
        masks["\0missing"] = absent
        keys.append(None)
    return _from_masks(tuple(keys), list(masks.values()), frame.n_rows)


def _one_kind(values: tuple[Hashable, ...]) -> bool:
    kinds = {type(v) for v in values}
    return kinds <= {int, float} or len(kinds) == 1


def _objects(values: tuple[Hashable, ...]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def _by_function(source: ByFunction, frame: Frame) -> Assignment:
    result: Any = source.function(frame.native())
    if not isinstance(result, Mapping) or not result:
        raise GroupError(
            f"The grouping function {source} must return a dict {{group id: row indices}} with at "
            f"least one group, got {type(result).__name__}."
        )
    masks = [_mask_of(source, key, rows, frame.n_rows) for key, rows in result.items()]
    return _from_masks(tuple(plain_key(k) for k in result), masks, frame.n_rows)


def _mask_of(source: ByFunction, key: Hashable, rows: Any, n: int) -> NDArray[np.bool_]:
    where = f"The grouping function {source}, group {key!r}:"
    if not isinstance(rows, Iterable):
        raise GroupError(f"{where} a collection of row indices was expected, got {rows!r}.")
    array_like = isinstance(rows, Sequence) or hasattr(rows, "__array__")
    index = np.asarray(rows if array_like else list(rows))  # a set, a generator
    if index.ndim != 1:
        raise GroupError(f"{where} row indices must be one-dimensional, got shape {index.shape}.")
    if index.dtype == bool:
        if len(index) != n:
            raise GroupError(f"{where} a mask needs one entry per row ({n}), got {len(index)}.")
        return index.copy()
    if index.size and index.dtype.kind not in "iu":
        raise GroupError(
            f"{where} rows are given by position (integers from 0), got {index.dtype} values."
        )
    if index.size and (index.min() < 0 or index.max() >= n):
        bad = index.min() if index.min() < 0 else index.max()
        raise GroupError(f"{where} row {bad} is not among rows 0 to {n - 1}.")
    mask = np.zeros(n, dtype=bool)
    mask[index.astype(np.intp)] = True
    if int(mask.sum()) != index.size:
        raise GroupError(f"{where} some row is listed twice.")
    return mask


def _from_masks(
    keys: tuple[Hashable, ...], masks: list[NDArray[np.bool_]], n_rows: int
) -> Assignment:
    """Masks that may overlap, as atoms: rows that share their whole row of memberships."""
    code = np.zeros(n_rows, dtype=np.intp)
    for mask in masks:
        _, code = compact(code * 2 + mask)  # compacted each time, so that it never overflows
    _, first = np.unique(code, return_index=True)
    member = np.column_stack(masks)[first]
    return Assignment(keys, code, member)


def _keep(found: Assignment, grouping: Grouping) -> Assignment:
    if grouping.only is not None:
        unknown = [k for k in grouping.only if k not in found.keys]
        if unknown:
            known = ", ".join(map(repr, found.keys))
            raise GroupError(
                f"only={list(grouping.only)!r}: there is no group {unknown[0]!r} by "
                f"{grouping.source}; the groups there: {known}."
            )
        # In the order found, so that how `only` lists them changes nothing.
        chosen = [j for j, k in enumerate(found.keys) if k in grouping.only]
        found = Assignment(
            tuple(found.keys[j] for j in chosen), found.atom, found.member[:, chosen]
        )
    if not found.keys:
        raise GroupError(f"No row belongs to any group by {grouping.source}.")
    for j, key in enumerate(found.keys):
        if not found.member[:, j].any():
            detail = ""
            if isinstance(grouping.source, Predicates) and key is not None:
                detail = f" ({dict(grouping.source.items)[str(key)]})"
            raise GroupError(f"Group {grouping.label(key)!r}{detail} has no rows.")
    return found


# -- predicates: a small language, read with ast, never run as Python ---------------------------

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _tree(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise DeclarationError(f"The predicate {text!r} cannot be read: {error}.") from None


def _column_call(node: ast.AST) -> str | int | None:
    """The name in ``column("...")``."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "column"
        and len(node.args) == 1
        and not node.keywords
        and isinstance(node.args[0], ast.Constant)
        and _is_name(node.args[0].value)
    ):
        return node.args[0].value  # type: ignore[return-value]
    return None


def _names_in(text: str) -> tuple[Name, ...]:
    """The columns that a predicate reads; refuses whatever the language does not have."""
    names: dict[Name, None] = {}

    def walk(node: ast.expr) -> None:
        called = _column_call(node)
        if called is not None:
            names[called] = None
        elif isinstance(node, ast.Name):
            names[node.id] = None
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                walk(value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            walk(node.operand)
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            walk(node.left)
            walk(node.right)
        elif isinstance(node, ast.Compare):
            walk(node.left)
            for op, value in zip(node.ops, node.comparators, strict=True):
                if isinstance(op, (ast.In, ast.NotIn)):
                    _members(value, text)
                elif type(op) in _COMPARE:
                    walk(value)
                else:
                    _refuse(value, text)
        elif not (
            isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool))
        ):
            _refuse(node, text)

    try:
        walk(_tree(text))
    except RecursionError:
        raise DeclarationError("The predicate is nested too deeply.") from None
    return tuple(names)


def _members(node: ast.expr, text: str) -> list[Any]:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        value = None
    if not isinstance(value, (list, tuple, set)) or not value:
        raise DeclarationError(
            f"The predicate {text!r}: 'in' needs a list of constants on its right."
        )
    return list(value)


def _refuse(node: ast.AST, text: str) -> None:
    raise DeclarationError(
        f"The predicate {text!r}: {ast.unparse(node)!r} cannot be said here. Compare columns with "
        "constants, and combine with 'and', 'or', 'not'; write column('native-country') for a "
        "name that is not an identifier."
    )


def _evaluate(text: str, columns: Mapping[Name, NDArray[Any]]) -> NDArray[Any]:
    def value(node: ast.expr) -> Any:
        called = _column_call(node)
        if called is not None:
            return columns[called]
        if isinstance(node, ast.Name):
            return columns[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BoolOp):
            parts = [_boolean(value(v), v) for v in node.values]
            combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return combine.reduce(np.broadcast_arrays(*parts))
        if isinstance(node, ast.UnaryOp):
            operand = value(node.operand)
            if isinstance(node.op, ast.Not):
                return ~_boolean(operand, node.operand)
            return -_numeric(operand, node.operand)
        if isinstance(node, ast.BinOp):
            left, right = _numeric(value(node.left), node.left), value(node.right)
            return _ARITHMETIC[type(node.op)](left, _numeric(right, node.right))
        assert isinstance(node, ast.Compare)  # _names_in has refused everything else
        result: Any = True
        left_node, left = node.left, value(node.left)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, (ast.In, ast.NotIn)):
                options = _members(right_node, text)
                hits = [_compared(ast.Eq(), left, left_node, o, right_node) for o in options]
                part, right = np.logical_or.reduce(hits), options
                part = ~part if isinstance(op, ast.NotIn) else part
            else:
                right = value(right_node)
                part = _compared(op, left, left_node, right, right_node)
            result = np.logical_and(result, part)
            left_node, left = right_node, right
        return result

    return np.asarray(value(_tree(text)))


def _kind(value: Any) -> str:
    array = np.asarray(value)
    if array.dtype.kind in "iuf":
        return "a number"
    if array.dtype.kind == "b":
        return "true or false"
    if array.dtype.kind in "US" or (
        array.dtype == object and array.size and all(isinstance(v, str) for v in array.flat)
    ):
        return "text"
    return f"of mixed or unknown type ({array.dtype})"


def _compared(
    op: ast.cmpop, left: Any, left_node: ast.expr, right: Any, right_node: ast.expr
) -> Any:
    kinds = _kind(left), _kind(right)
    # Python would answer "'30' == 30" with False for every row: a silent empty group.
    if kinds[0] != kinds[1] or (isinstance(op, _ORDERED) and "mixed" in kinds[0]):
        raise GroupError(
            f"{ast.unparse(left_node)} is {kinds[0]}, but {ast.unparse(right_node)} is "
            f"{kinds[1]}: they cannot be compared."
        )
    return _COMPARE[type(op)](np.asarray(left), np.asarray(right))


def _boolean(value: Any, node: ast.expr) -> NDArray[np.bool_]:
    array = np.asarray(value)
    if array.dtype.kind != "b":
        raise GroupError(f"{ast.unparse(node)} is {_kind(value)}, not true or false.")
    return array


def _numeric(value: Any, node: ast.expr) -> NDArray[Any]:
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise GroupError(f"{ast.unparse(node)} is {_kind(value)}, not a number.")
    return array
