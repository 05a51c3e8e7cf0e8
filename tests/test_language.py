import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnifair
from omnifair import (
    coefficients,
    each,
    format_policy,
    gap,
    groups,
    overall,
    parse,
    parse_policy,
    ratio,
    read_policy,
    write_policy,
)
from omnifair.constraints import can_be_text
from omnifair.errors import DeclarationError, ParseError
from omnifair.language import parse_rate
from omnifair.rates import ALIASES, FN, FP, FPR, NAMED, SP, TN, TP, accuracy, error_cost

# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("gap(selection_rate, by='sex') <= 0.03", gap(SP, by="sex") <= 0.03),
        ('  gap( SP ,\n by = "sex" )<=3e-2 ', gap(SP, by="sex") <= 0.03),
        ("0.8 <= ratio(SP, by=['race', 'sex'])", ratio(SP, by=["race", "sex"]) >= 0.8),
        ("0.03 >= gap(SP, by='sex')", gap(SP, by="sex") <= 0.03),
        ("gap(rate=SP, by='sex') <= 0.03", gap(SP, by="sex") <= 0.03),
        ("overall(accuracy) >= 0.5", overall(accuracy) >= 0.5),
        ("overall((TP - FP) / (TP + FP)) >= -0.5", overall((TP - FP) / (TP + FP)) >= -0.5),
        ("each(FP / (FP + TN), by=0) <= 0.1", each(FPR, by=0) <= 0.1),
        ("each(error_cost(1, fn=5), by='a') <= 2", each(error_cost(1, 5), by="a") <= 2),
        (
            "gap(SP, by='race', only=['a', None, 3], reference='a', missing='group') <= 0.1",
            gap(SP, by="race", only=["a", None, 3], reference="a", missing="group") <= 0.1,
        ),
        (
            "gap(SP, by=['a', 'b'], reference=('x', 1)) <= 0.1",
            gap(SP, by=["a", "b"], reference=("x", 1)) <= 0.1,
        ),
        (
            "gap(SP, by=groups(young='age < 25', old=\"age >= 60\")) <= 0.1  # a comment",
            gap(SP, by=groups(young="age < 25", old="age >= 60")) <= 0.1,
        ),
    ],
)
def test_text_is_read_as_the_python_expression_it_looks_like(text, constraint):
    assert parse(text) == constraint


@pytest.mark.parametrize("name", [*NAMED, *ALIASES])
def test_every_named_rate_can_be_read(name):
    assert parse_rate(name) == {**NAMED, **ALIASES}[name]


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1 - FP / (FP + TN)", TN / (FP + TN)),
        ("-FP / (FP + TN) + 1", TN / (FP + TN)),
        ("(TP + TN) / (TP + FN)", (TP + TN) / (TP + FN)),
        ("0.5 * (true_positive_rate + true_negative_rate)", NAMED["balanced_accuracy"]),
        ("(2 * 3 - 1) * FN / (TP + FN)", 5 * FN / (TP + FN)),
    ],
)
def test_the_algebra_of_rates_can_be_read(text, rate):
    assert parse_rate(text) == rate


# -- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "0.1 <= each(SP, by='s') <= 0.2": "two constraints: write them on two lines",
    "gap(SP, by='s') < 0.1": "use '<='",
    "ratio(SP, by='s') > 0.8": "use '>='",
    "gap(SP, by='s') == 0.1": "use '<=' or '>='",
    "gap(SP, by='s') != 0.1": "use '<=' or '>='",
    "gap(SP, by='s') in [0.1]": "use '<=' or '>='",
    "gap(SP, by='s') is 0.1": "use '<=' or '>='",
    "gap(SP, by='s')": "a measure and a bound",
    "gap(SP, by='s') <= 0.1 and overall(SP) <= 0.2": "a measure and a bound",
    "not gap(SP, by='s') <= 0.1": "a measure and a bound",
    "gap(SP, by='s') <= 0.1; overall(SP) <= 0.2": "cannot be read",
    "import os": "cannot be read",
    "": "cannot be read",
    "gap(SP, by='s' <= 0.1": "cannot be read",
    "\0": "cannot be read",
    "SP <= 0.1": "a measure was expected: one of gap, ratio, each, overall",
    "abs(SP) <= 0.1": "a measure was expected",
    "omnifair.gap(SP, by='s') <= 0.1": "a measure was expected",
    "gap(SP, by='s')(1) <= 0.1": "a measure was expected",
    "__import__('os').system('true') <= 0.1": "a measure was expected",
    "gap(__import__('os'), by='s') <= 0.1": "a rate is a name",
    "gap(SPR, by='s') <= 0.1": "no such rate; the named ones: selection_rate",
    "gap(accuracy_score(y, h), by='s') <= 0.1": "a rate is a name",
    "gap(TP.weights, by='s') <= 0.1": "a rate is a name",
    "gap(FP // TN, by='s') <= 0.1": "a rate is a name",
    "gap(FP ** 2 / TN, by='s') <= 0.1": "a rate is a name",
    "gap('SP', by='s') <= 0.1": "a rate is a name",
    "gap(coefficients(f), by='s') <= 0.1": "takes a function",
    "gap(TP, by='s') <= 0.1": "is not a rate",
    "gap(0.5, by='s') <= 0.1": "is not a rate",
    "gap(1 / 0 * SP, by='s') <= 0.1": "division by zero",
    "gap(TP / (FP - TN), by='s') <= 0.1": "must add up cells",
    "gap(True * SP, by='s') <= 0.1": "plain number",
    "gap(error_cost(fp=-1), by='s') <= 0.1": "must be positive",
    "gap(error_cost(fp=x), by='s') <= 0.1": "a constant was expected",
    "gap(error_cost(cost=1), by='s') <= 0.1": "unexpected keyword",
    "gap(error_cost(1, 2, 3), by='s') <= 0.1": "positional arguments",
    "gap() <= 0.1": "takes one rate",
    "gap(SP, 's') <= 0.1": "takes one rate; everything else is named",
    "gap(*rates, by='s') <= 0.1": "a rate is a name",
    "gap(SP) <= 0.1": "compares groups: say which",
    "overall(SP, by='s') <= 0.1": "unexpected keyword",
    "gap(SP, by='s', colour='red') <= 0.1": "unexpected keyword",
    "gap(SP, **{'by': 's'}) <= 0.1": "cannot be said here",
    "gap(SP, by='s', by='t') <= 0.1": "by= is said twice",
    "gap(SP, by=groups(a='x > 1', a='x > 2')) <= 0.1": "a= is said twice",
    "gap(SP, by=sex) <= 0.1": "columns are named in quotes",
    "gap(SP, by=lambda d: {}) <= 0.1": "a constant was expected",
    "gap(SP, by=f('s')) <= 0.1": "a constant was expected",
    "gap(SP, by=f'{s}') <= 0.1": "a constant was expected",
    "gap(SP, by={'s': 1}) <= 0.1": "pass a column's name",
    "gap(SP, by=True) <= 0.1": "pass a column's name",
    "gap(SP, by=groups('x > 1')) <= 0.1": "takes name='predicate' only",
    "gap(SP, by=groups()) <= 0.1": "at least one",
    "gap(SP, by=groups(a='x.real > 1')) <= 0.1": "cannot be said here",
    "gap(SP, by='s', only=s) <= 0.1": "a constant was expected",
    "gap(SP, by='s', only=[{}]) <= 0.1": "cannot name a group",
    "gap(SP, by='s') <= bound": "a constant was expected",
    "gap(SP, by='s') <= True": "plain number",
    "gap(SP, by='s') <= 'x'": "plain number",
    "gap(SP, by='s') <= 1j": "plain number",
    "gap(SP, by='s') <= 1e999": "must be finite",
    "gap(SP, by='s') <= 1.5": "between 0 and 1",
    "gap(SP, by='s') >= 0.1": "bounded from above",
    "gap(SP, by='s') <= overall(SP)": "a constant was expected",
    "0.1 <= 0.2": "a measure was expected",
}


@pytest.mark.parametrize("text", REFUSED)
def test_text_that_is_not_a_constraint_is_refused_with_advice(text):
    with pytest.raises(ParseError, match=REFUSED[text].replace("(", r"\(")):
        parse(text)


@pytest.mark.parametrize("depth", [500, 1500, 2800, 5000, 100_000])
@pytest.mark.parametrize(
    "nest",
    [
        lambda n: "1" + " + 1" * n,
        lambda n: "-" * n + "1 <= 2",
        lambda n: "(" * n + "1" + ")" * n,
        lambda n: f"gap({'-' * n}TP, by='s') <= 0.1",
        lambda n: f"gap(SP, by='s') <= {'-' * n}x",
        lambda n: f"gap(SP, by='s', only={'[' * n}{']' * n}) <= 0.1",
        lambda n: f"gap(SP, by=groups(a={'not ' * n + 'x'!r})) <= x",
    ],
)
def test_text_nested_very_deeply_is_refused_like_any_other(nest, depth):
    with pytest.raises(ParseError):
        parse(nest(depth))


@pytest.mark.parametrize("digits", [400, 10_000])
def test_a_bound_of_very_many_digits_is_refused(digits):
    with pytest.raises(ParseError):
        parse(f"gap(SP, by='s') <= {'9' * digits}")


@pytest.mark.parametrize("value", [None, 3, b"gap(SP, by='s') <= 0.1", gap(SP, by="s") <= 0.1])
def test_only_text_is_parsed(value):
    with pytest.raises(ParseError, match="text was expected"):
        parse(value)


@pytest.mark.parametrize("text", ["TP", "TP + FP", "3", "2 * 3"])
def test_a_rate_is_a_quotient(text):
    with pytest.raises(ParseError, match="a rate is a quotient"):
        parse_rate(text)


# -- writing: the text is the expression ---------------------------------------------------------

weight = st.floats(-50, 50).filter(lambda v: v == 0 or abs(v) > 1e-6) | st.integers(-9, 9)
positive = st.integers(1, 9) | st.floats(1e-3, 1e3)


@st.composite
def quotients(draw):
    top = draw(st.lists(weight, min_size=4, max_size=4).filter(any))
    bottom = draw(st.lists(st.just(0) | positive, min_size=4, max_size=4).filter(any))
    cells = (TP, FP, FN, TN)
    numerator, denominator = (
        a * cells[0] + b * cells[1] + c * cells[2] + d * cells[3] for a, b, c, d in (top, bottom)
    )
    return numerator / denominator


rates = st.one_of(
    st.sampled_from(list(NAMED.values())),
    st.builds(error_cost, fp=positive, fn=positive),
    quotients(),
    st.builds(lambda a, b: a + 2 * b, quotients(), st.sampled_from([SP, FPR])),
)
names = st.text(min_size=1, max_size=8) | st.integers(-3, 9)
keys = st.one_of(
    st.none(), st.booleans(), st.text(max_size=8), st.integers(), st.floats(-9, 9), st.binary()
)
predicates = st.sampled_from(["age < 25", "sex == 'F' and age > 3", "column(\"a b\") in ['x']"])
sources = st.one_of(
    names,
    st.lists(names, min_size=1, max_size=3, unique=True),
    st.dictionaries(st.sampled_from(["young", "b", "größe"]), predicates, min_size=1).map(
        lambda items: groups(**items)
    ),
)


@st.composite
def constraints(draw):
    kind = draw(st.sampled_from([gap, ratio, each, overall]))
    rate = draw(rates.filter(lambda r: kind is not ratio or r.range[0] >= 0))
    options = {}
    if kind is not overall:
        options = {"by": draw(sources), "missing": draw(st.sampled_from(["error", "group"]))}
        if draw(st.booleans()):
            options["only"] = draw(st.lists(keys, min_size=2, max_size=4, unique=True))
        if kind in (gap, ratio) and draw(st.booleans()):
            options["reference"] = draw(
                st.sampled_from(options["only"]) if "only" in options else keys
            )
    low, high = {gap: (0, rate.range[1] - rate.range[0]), ratio: (0, 1)}.get(kind, rate.range)
    bound = draw(st.floats(max(low, -1e6), min(high, 1e6)))
    measure = kind(rate, **options)
    if kind is gap or (kind is not ratio and draw(st.booleans())):
        return measure <= bound
    return measure >= bound


@given(constraints())
def test_the_text_of_a_constraint_reads_back_as_the_same_constraint(constraint):
    assert can_be_text(constraint)
    assert parse(str(constraint)) == constraint


@given(st.lists(constraints(), max_size=4, unique=True))
def test_a_policy_reads_back_as_the_same_constraints(several):
    assert parse_policy(format_policy(several)) == tuple(several)


@given(constraints())
def test_the_text_is_the_python_expression_itself(constraint):
    scope = {**vars(omnifair.rates), "gap": gap, "ratio": ratio, "each": each}
    scope |= {"overall": overall, "groups": groups}
    assert eval(str(constraint), scope) == constraint  # noqa: S307 (the text is the test's own)


# -- policy files --------------------------------------------------------------------------------

POLICY = """\
\ufeff
# Agreed in March.

omnifair policy 1   # the format
gap(SP, by='sex') <= 0.03

   ratio(SP, by=['race', 'sex']) >= 0.8   # four-fifths # of 1978
each(SP, by='#') <= 0.5
"""


def test_a_policy_has_a_version_comments_and_blank_lines():
    assert parse_policy(POLICY) == (
        gap(SP, by="sex") <= 0.03,
        ratio(SP, by=["race", "sex"]) >= 0.8,
        each(SP, by="#") <= 0.5,
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_end_of_line_will_do(end):
    assert parse_policy(POLICY.replace("\n", end)) == parse_policy(POLICY)


def test_a_policy_goes_through_a_file(tmp_path):
    several = [gap(SP, by="Größe", only=["a\u2028b", "\n"]) <= 0.03, overall(SP) >= 0.1]
    path = tmp_path / "fair.policy"
    write_policy(path, several)
    assert read_policy(path) == tuple(several)
    assert read_policy(str(path)) == tuple(several)
    assert path.read_text(encoding="utf-8").startswith("omnifair policy 1\n\ngap(")


def test_one_constraint_is_a_policy_too():
    assert format_policy(overall(SP) >= 0.1) == (
        "omnifair policy 1\n\noverall(selection_rate) >= 0.1\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "starts with the line 'omnifair policy 1'"),
        ("# only a comment\n", "starts with the line"),
        ("overall(SP) >= 0.1", "line 1: a policy starts with"),
        ("\n\nomnifair policies 1", "line 3: a policy starts with"),
        ("omnifair policy", "line 1: a policy starts with"),
        ("omnifair policy 2", "line 1: policy version 2 is not known here, only 1"),
        ("omnifair policy 1\n\n# x\ngap(SP) <= 0.1\n", "line 4: .*compares groups"),
        ("omnifair policy 1\noverall(SP) <= 0.1\noverall(SP) <=", "line 3: .*cannot be read"),
        ("omnifair policy 1\nomnifair policy 1", "line 2"),
    ],
)
def test_an_error_in_a_policy_names_the_line(text, words):
    with pytest.raises(ParseError, match=words):
        parse_policy(text)


def test_an_error_in_a_policy_file_names_the_file_too(tmp_path):
    path = tmp_path / "fair.policy"
    path.write_text("omnifair policy 1\nSP <= 0.1\n")
    with pytest.raises(ParseError, match=r"fair\.policy, line 2: "):
        read_policy(path)


def raw(rows):
    return 0, 1


@pytest.mark.parametrize(
    "constraint",
    [
        gap(coefficients(raw), by="sex") <= 0.1,
        gap(SP, by=raw) <= 0.1,
        gap(SP, by=groups(**{"under 25": "age < 25"})) <= 0.1,
        gap(SP, by="x", reference=float("inf")) <= 0.1,
    ],
    ids=str,
)
def test_what_no_text_can_say_is_not_written(constraint):
    with pytest.raises(DeclarationError, match="no text can say"):
        format_policy([constraint])
