import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from omnifair.errors import DataError, GroupError
from omnifair.frames import Frame

SEX = ["m", "f", "f", "m"]
AGE = [30, 20, 40, 20]

TABLES = {
    "pandas": lambda: pd.DataFrame({"sex": SEX, "age": AGE}, index=[9, 9, 3, 1]),
    "pandas, categories": lambda: pd.DataFrame(
        {"sex": pd.Categorical(SEX, categories=["m", "x", "f"]), "age": pd.array(AGE, "Int64")}
    ),
    "polars": lambda: pl.DataFrame({"sex": SEX, "age": AGE}),
    "polars, categories": lambda: pl.DataFrame(
        {"sex": pl.Series(SEX, dtype=pl.Categorical), "age": AGE}
    ),
    "pyarrow": lambda: pa.table({"sex": SEX, "age": AGE}),
    "pyarrow, chunks": lambda: pa.table({"sex": pa.chunked_array([SEX[:1], SEX[1:]]), "age": AGE}),
    "dict of lists": lambda: {"sex": SEX, "age": AGE},
    "dict of arrays": lambda: {"sex": np.array(SEX), "age": np.array(AGE)},
    "dict of series": lambda: {"sex": pd.Series(SEX), "age": pl.Series(AGE)},
}


def read(column):
    """A column as the list of values that it stands for."""
    return [None if code < 0 else column.values[code] for code in column.codes]


@pytest.mark.parametrize("role", ["sensitive", "X"])
@pytest.mark.parametrize("kind", TABLES)
def test_columns_are_found_by_name_in_any_table(kind, role):
    table = TABLES[kind]()
    frame = Frame(table, None, 4) if role == "sensitive" else Frame(None, table, 4)
    assert read(frame.column("sex")) == SEX
    assert read(frame.column("age")) == AGE
    assert frame.raw("age").tolist() == AGE


@pytest.mark.parametrize("kind", TABLES)
def test_values_are_sorted_whatever_the_order_of_rows(kind):
    frame = Frame(TABLES[kind](), None, 4)
    assert frame.column("sex").values == ("f", "m")
    assert frame.column("age").values == (20, 30, 40)


@pytest.mark.parametrize("role", ["sensitive", "X"])
@pytest.mark.parametrize(
    "make", [np.array, pd.DataFrame], ids=["array", "dataframe with numbers for names"]
)
def test_columns_without_names_go_by_their_position(make, role):
    table = make([[1, 2], [3, 4], [1, 5]])
    frame = Frame(table, None, 3) if role == "sensitive" else Frame(None, table, 3)
    assert read(frame.column(0)) == [1, 3, 1]
    assert read(frame.column(1)) == [2, 4, 5]


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(
        DataError, match=r"sensitive_features has several columns of one name(.|\n)*sex"
    ):
        Frame(pd.DataFrame([["m", 1, "f"]], columns=["sex", "age", "sex"]), None, 1)


def test_a_list_of_rows_is_read_as_an_array():
    assert read(Frame([[1, 2], [3, 4]], None, 2).column(1)) == [2, 4]


def test_a_dict_keeps_the_keys_it_was_given():
    assert read(Frame({0: SEX, "age": AGE}, None, 4).column(0)) == SEX


@pytest.mark.parametrize(
    "series", [lambda v: pd.Series(v, name="sex"), lambda v: pl.Series("sex", v)]
)
def test_a_named_series_is_found_by_its_name(series):
    assert read(Frame(series(SEX), None, 4).column("sex")) == SEX


UNNAMED = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "array of one column": lambda v: np.array(v)[:, None],
    "pandas series": pd.Series,
    "polars series": pl.Series,
    "pyarrow array": lambda v: pa.chunked_array([v]),
}


@pytest.mark.parametrize("kind", UNNAMED)
def test_a_feature_without_a_name_is_whatever_single_name_is_asked_for(kind):
    assert read(Frame(UNNAMED[kind](SEX), None, 4).column("anything")) == SEX


@pytest.mark.parametrize("kind", UNNAMED)
def test_a_feature_without_a_name_is_refused_where_two_names_are_asked_for(kind):
    frame = Frame(UNNAMED[kind](SEX), None, 4)
    with pytest.raises(GroupError, match="no column names"):
        frame.column("sex", sole=False)


def test_a_feature_without_a_name_does_not_hide_the_named_columns_of_X():
    frame = Frame(SEX, pd.DataFrame({"amount": AGE}), 4)
    assert frame.raw("amount").tolist() == AGE


def test_sensitive_features_come_before_X():
    frame = Frame({"sex": SEX}, pd.DataFrame({"sex": AGE, "age": AGE}), 4)
    assert read(frame.column("sex")) == SEX
    assert read(frame.column("age")) == AGE


@pytest.mark.parametrize("X", [None, np.ones(4), "text", [["a"], ["b"], ["c"], ["d"]]])
def test_X_may_be_anything_when_it_is_not_asked(X):
    assert read(Frame({"sex": SEX}, X, 4).column("sex")) == SEX


MISSING = {
    "pandas text": lambda: pd.DataFrame({"c": ["b", None, "a"]}),
    "pandas numbers": lambda: pd.DataFrame({"c": [2.0, math.nan, 1.0]}),
    "pandas Int64": lambda: pd.DataFrame({"c": pd.array([2, None, 1], dtype="Int64")}),
    "pandas category": lambda: pd.DataFrame({"c": pd.Categorical(["b", None, "a"])}),
    "pandas boolean": lambda: pd.DataFrame({"c": pd.array([True, None, False], dtype="boolean")}),
    "pandas dates": lambda: pd.DataFrame({"c": pd.to_datetime(["2020-02-02", None, "2020-01-01"])}),
    "polars text": lambda: pl.DataFrame({"c": ["b", None, "a"]}),
    "polars categories": lambda: pl.DataFrame(
        {"c": pl.Series(["b", None, "a"], dtype=pl.Enum("abc"))}
    ),
    "pyarrow text": lambda: pa.table({"c": ["b", None, "a"]}),
    "polars numbers": lambda: pl.DataFrame({"c": [2, None, 1]}),
    "polars booleans": lambda: pl.DataFrame({"c": [True, None, False]}),
    "pyarrow numbers": lambda: pa.table({"c": [2, None, 1]}),
    "list": lambda: {"c": ["b", None, "a"]},
    "list with NaN": lambda: {"c": ["b", math.nan, "a"]},
    "list with pandas' NA": lambda: {"c": ["b", pd.NA, "a"]},
    "array": lambda: {"c": np.array([2.0, math.nan, 1.0])},
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_value_has_the_code_minus_one(kind):
    column = Frame(MISSING[kind](), None, 3).column("c")
    assert column.codes.tolist() == [1, -1, 0]
    assert len(column.values) == 2


@pytest.mark.parametrize("values", [["1", 1, None], ["a", 1, 2.5]])
def test_values_of_mixed_types_stay_apart(values):
    assert read(Frame({"c": values}, None, 3).column("c")) == values


def test_mixed_values_have_one_order_whatever_the_order_of_rows():
    values = ["b", 2, "a", 1]
    there = Frame({"c": values}, None, 4).column("c").values
    assert there == Frame({"c": values[::-1]}, None, 4).column("c").values


def test_values_are_plain_python_so_that_they_print_and_compare_anywhere():
    frame = Frame({"i": np.array([1, 2]), "b": np.array([True, False])}, None, 2)
    assert {type(v) for v in frame.column("i").values} == {int}
    assert {type(v) for v in frame.column("b").values} == {bool}


def test_dates_can_be_values():
    days = np.array(["2020-02-02", "2020-01-01"], dtype="datetime64[D]")
    first = Frame({"day": days}, None, 2).column("day").values[0]
    assert first == datetime.date(2020, 1, 1)


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*TABLES, *UNNAMED])
def test_features_of_another_length_are_refused(kind):
    data = TABLES[kind]() if kind in TABLES else UNNAMED[kind](SEX)
    with pytest.raises(DataError, match="4 rows, but there are 5 labels"):
        Frame(data, None, 5)


def test_a_column_of_another_length_is_refused():
    frame = Frame({"sex": SEX, "age": AGE[:2]}, None, 4)
    with pytest.raises(DataError, match="'age' has 2 rows, expected 4"):
        frame.column("age")


def test_an_unknown_column_is_refused_with_the_names_there():
    frame = Frame({"sex": SEX}, pd.DataFrame({"age": AGE}), 4)
    with pytest.raises(GroupError, match=r"'race'.*'age', 'sex'.*sensitive_features="):
        frame.column("race")


def test_without_sensitive_features_only_X_is_named_in_the_error():
    with pytest.raises(GroupError, match="is not in X; the columns there: none"):
        Frame(None, None, 4).column("sex")


@pytest.mark.parametrize("data", ["sex", 3, np.ones((2, 2, 2))])
def test_what_is_not_a_column_is_refused(data):
    with pytest.raises(DataError, match="must be one column"):
        Frame(data, None, 2)


@pytest.mark.parametrize("data", [[[1], [2, 3]], {"c": [(1, 2), "a"]}])
def test_rows_of_different_lengths_are_refused(data):
    with pytest.raises(DataError, match="cannot be read as columns"):
        Frame(data, None, 2)


def test_values_that_cannot_name_a_group_are_refused():
    lists = np.empty(2, dtype=object)
    lists[:] = [[1], [2]]
    with pytest.raises(DataError, match="cannot name a group"):
        Frame({"c": lists}, None, 2).column("c")


# -- what a user's function gets -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pd.DataFrame({"sex": SEX}), pd.DataFrame({"sex": AGE, "age": AGE})),
        (pl.DataFrame({"sex": SEX}), pl.DataFrame({"sex": AGE, "age": AGE})),
        (pd.Series(SEX, name="sex"), pd.DataFrame({"age": AGE})),
    ],
    ids=["pandas", "polars", "series"],
)
def test_a_function_gets_sensitive_features_and_X_as_one_table(left, right):
    joined = Frame(left, right, 4).native()
    assert type(joined) is type(right)
    assert (list(joined["sex"]), list(joined["age"])) == (SEX, AGE)


def test_a_function_gets_pandas_columns_with_numbers_for_names():
    joined = Frame(pd.DataFrame({"sex": SEX}), pd.DataFrame(np.eye(4)), 4).native()
    assert list(joined[2]) == [0, 0, 1, 0]


def test_tables_of_two_libraries_are_not_joined():
    left = pd.DataFrame({"sex": SEX})
    assert Frame(left, pl.DataFrame({"age": AGE}), 4).native() is left


def test_a_function_gets_X_where_there_are_no_sensitive_features():
    X = np.eye(4)
    assert Frame(None, X, 4).native() is X


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table, dict])
@pytest.mark.parametrize("values", [[], [None, None]], ids=["no rows", "no values"])
def test_a_column_of_text_may_be_empty(table, values):
    if table is pd.DataFrame:
        data = table({"c": pd.array(values, dtype="string")})
    elif table is pl.DataFrame:
        data = table({"c": values}, schema={"c": pl.String})
    elif table is pa.table:
        data = table({"c": pa.array(values, pa.string())})
    else:
        data = {"c": values}
    column = Frame(data, None, len(values)).column("c")
    assert column.values == ()
    assert column.codes.tolist() == [-1] * len(values)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64", "bool", "float32", "O"])
@pytest.mark.parametrize("spread", [1, 10**9], ids=["close together", "far apart"])
def test_numbers_are_coded_alike_whatever_their_type(dtype, spread):
    values = (np.array([3, 1, 1, 0, 3]) * spread).astype(dtype)
    column = Frame({"c": values}, None, 5).column("c")
    assert read(column) == values.tolist()
    assert list(column.values) == sorted(set(values.tolist()))
    assert all(type(v) is type(values.tolist()[0]) for v in column.values)
