"""Constraints as text: one constraint, or a policy file that people can review and compare.

The text is the Python expression itself, read with :mod:`ast` and a short list of what may occur
in it; nothing is ever run. ``parse(str(c)) == c`` for every constraint without functions.

A policy file holds one constraint a line, comments from ``#``, and first a line that says which
version of the format it is::

    omnifair policy 1

    # Agreed with compliance in March.
    gap(selection_rate, by='sex') <= 0.03
    ratio(selection_rate, by=['race', 'sex']) >= 0.8   # four-fifths
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from omnifair.constraints import (
    OVERALL,
    Constraint,
    Measure,
    as_constraints,
    can_be_text,
    each,
    gap,
    overall,
    ratio,
)
from omnifair.errors import DeclarationError, ParseError
from omnifair.groups import Predicates, groups
from omnifair.rates import ALIASES, CELLS, FN, FP, NAMED, TN, TP, Rate, error_cost

T = TypeVar("T")

POLICY_HEADER = "omnifair policy"
POLICY_VERSION = 1

_MEASURES: dict[str, Callable[..., Measure]] = {
    "gap": gap,
    "ratio": ratio,
    "each": each,
    "overall": overall,
}
_RATES: dict[str, Any] = {**NAMED, **ALIASES, **dict(zip(CELLS, (TP, FP, FN, TN), strict=True))}
_SENSES = {ast.LtE: "<=", ast.GtE: ">="}
_ADVICE = {ast.Lt: "use '<='", ast.Gt: "use '>='", ast.Eq: "use '<=' or '>='"}


def parse(text: str) -> Constraint:
    """Read one constraint.

    Examples
    --------
    >>> parse("gap(selection_rate, by='sex') <= 0.03")
    gap(selection_rate, by='sex') <= 0.03
    """
    return _said(lambda: _constraint(text), text)


def _constraint(text: str) -> Constraint:
    node = _tree(text)
    if not isinstance(node, ast.Compare):
        _fail(node, "a constraint is a measure and a bound, such as gap(SP, by='sex') <= 0.03")
    if len(node.ops) != 1:
        _fail(node, "a chained comparison is two constraints: write them on two lines")
    operator, left, right = node.ops[0], node.left, node.comparators[0]
    if type(operator) not in _SENSES:
        _fail(node, _ADVICE.get(type(operator), "use '<=' or '>='"))
    if isinstance(right, ast.Call) and not isinstance(left, ast.Call):  # 0.8 <= ratio(...)
        operator = ast.GtE() if isinstance(operator, ast.LtE) else ast.LtE()
        left, right = right, left
    measure, bound = _measure(left), _literal(right)
    if isinstance(operator, ast.LtE):
        return measure.__le__(bound)
    return measure.__ge__(bound)


def parse_rate(text: str) -> Rate:
    """Read one rate: a name, ``error_cost(fp=1, fn=5)``, or algebra on the cells."""
    node = _tree(text)
    rate = _said(lambda: _rate(node), text)
    if not isinstance(rate, Rate):
        raise ParseError(f"{text!r}: this counts cells; a rate is a quotient of two such counts.")
    return rate


def parse_policy(text: str) -> tuple[Constraint, ...]:
    """Read the text of a policy file."""
    constraints: list[Constraint] = []
    version_seen = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip().lstrip("\ufeff")
        if not bare or bare.startswith("#"):
            continue
        if not version_seen:
            _check_version(bare, number)
            version_seen = True
            continue
        try:
            constraints.append(parse(bare))
        except ParseError as error:
            raise ParseError(f"line {number}: {error}") from None
    if not version_seen:
        raise ParseError(f"A policy starts with the line '{POLICY_HEADER} {POLICY_VERSION}'.")
    return tuple(constraints)


def format_policy(constraints: Constraint | Iterable[Constraint]) -> str:
    """The text of a policy file that says these constraints."""
    lines = [f"{POLICY_HEADER} {POLICY_VERSION}", ""]
    for constraint in as_constraints(constraints):
        if not can_be_text(constraint):
            raise DeclarationError(
                f"{constraint} holds a function, or a name or group that is not a plain constant, "
                "which no text can say."
            )
        lines.append(str(constraint))
    return "\n".join(lines) + "\n"


def read_policy(path: str | os.PathLike[str]) -> tuple[Constraint, ...]:
    """Read a policy file."""
    try:
        return parse_policy(Path(path).read_text(encoding="utf-8"))
    except ParseError as error:
        raise ParseError(f"{os.fspath(path)}, {error}") from None


def write_policy(
    path: str | os.PathLike[str], constraints: Constraint | Iterable[Constraint]
) -> None:
    """Write a policy file."""
    Path(path).write_text(format_policy(constraints), encoding="utf-8")


def _check_version(line: str, number: int) -> None:
    words = line.partition("#")[0].split()
    if words[:-1] != POLICY_HEADER.split():
        raise ParseError(
            f"line {number}: a policy starts with '{POLICY_HEADER} {POLICY_VERSION}', "
            f"found {line!r}."
        )
    if words[-1] != str(POLICY_VERSION):
        raise ParseError(
            f"line {number}: policy version {words[-1]} is not known here, only {POLICY_VERSION}."
        )


# -- from syntax to values ----------------------------------------------------------------------


def _tree(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise ParseError(f"A constraint's text was expected, got {text!r}.")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ParseError(f"{text!r} cannot be read: {error.msg}.") from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise ParseError(
            f"The text cannot be read: {str(error) or type(error).__name__}."
        ) from None


def _said(build: Callable[[], T], text: str) -> T:
    """``build()``, with what it refuses told as an error of the text."""
    try:
        return build()
    except ParseError:
        raise
    except RecursionError:
        raise ParseError("The text is nested too deeply.") from None
    except (DeclarationError, TypeError) as error:
        raise ParseError(f"{text.strip()!r}: {error}") from None


def _fail(node: ast.AST, why: str) -> NoReturn:
    raise ParseError(f"{ast.unparse(node)!r}: {why}.")


def _called(node: ast.AST, known: Iterable[str]) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known:
        return node.func.id
    return None


def _keywords(node: ast.Call) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            _fail(node, "'**' cannot be said here")
        if keyword.arg in found:
            _fail(node, f"{keyword.arg}= is said twice")
        found[keyword.arg] = keyword.value
    return found


def _measure(node: ast.expr) -> Measure:
    name = _called(node, _MEASURES)
    if name is None:
        _fail(node, f"a measure was expected: one of {', '.join(_MEASURES)}")
    assert isinstance(node, ast.Call)
    keywords = _keywords(node)
    given: list[ast.expr] = list(node.args)
    if "rate" in keywords and not given:
        given = [keywords.pop("rate")]
    if len(given) != 1:
        _fail(node, f"{name} takes one rate; everything else is named, as in by='sex'")
    options = {k: _by(v) if k == "by" else _literal(v) for k, v in keywords.items()}
    rate = _rate(given[0])
    if name != OVERALL and "by" not in options:
        _fail(node, f"{name} compares groups: say which, as in by='sex'")
    return _MEASURES[name](rate, **options)


def _by(node: ast.expr) -> Any:
    if _called(node, ("groups",)) is None:
        if isinstance(node, ast.Name):
            _fail(node, "columns are named in quotes, and a function cannot be said as text")
        return _literal(node)
    assert isinstance(node, ast.Call)
    if node.args:
        _fail(node, "groups takes name='predicate' only")
    return _predicates(_keywords(node))


def _predicates(keywords: dict[str, ast.expr]) -> Predicates:
    return groups(**{name: _literal(value) for name, value in keywords.items()})


def _rate(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        if node.id not in _RATES:
            _fail(node, f"no such rate; the named ones: {', '.join(NAMED)}, and cells TP FP FN TN")
        return _RATES[node.id]
    if _called(node, ("error_cost",)):
        assert isinstance(node, ast.Call)
        arguments = [_literal(a) for a in node.args]
        return error_cost(*arguments, **{k: _literal(v) for k, v in _keywords(node).items()})
    if _called(node, ("coefficients",)):
        _fail(node, "coefficients(...) takes a function, which no text can say")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_rate(node.operand)
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = _rate(node.left), _rate(node.right)
        try:
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Div):
                return left / right
        except (ArithmeticError, OverflowError) as error:
            _fail(node, str(error))
    _fail(node, "a rate is a name, error_cost(fp=, fn=), or + - * / of the cells TP FP FN TN")


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError):
        _fail(node, "a constant was expected here")
