"""Whether rows were trained on: found when they were, and never by chance."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from omnifair import CertificateError
from omnifair.fingerprint import fingerprint, refuse_seen, row_hashes

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2_000, 3))
Y = RANDOM.integers(0, 2, 2_000).astype(np.int8)


def test_equal_rows_have_equal_hashes_and_others_do_not():
    doubled = row_hashes(np.vstack([X, X]), np.tile(Y, 2))
    assert (doubled[:2_000] == doubled[2_000:]).all()
    assert len(np.unique(doubled)) == 2_000
    assert (row_hashes(X, 1 - Y) != row_hashes(X, Y)).all()
    assert (row_hashes(X[:, ::-1], Y) != row_hashes(X, Y)).all()


def test_rows_hash_alike_in_any_library():
    people = {"age": [30, 40, 30], "sex": ["f", "m", None]}
    bits = np.array([0, 1, 0], dtype=np.int8)
    assert (row_hashes(pd.DataFrame(people), bits) == row_hashes(pl.DataFrame(people), bits)).all()
    table = pd.DataFrame(X)
    assert (row_hashes(table, Y) == row_hashes(X, Y)).all()
    assert len(np.unique(row_hashes(sparse.csr_array(X), Y))) == 2_000
    assert len(np.unique(row_hashes(["a b", "c", "a b"], bits))) == 2


@pytest.mark.parametrize("taken", [1.0, 0.5, 0.05])
def test_rows_that_were_trained_on_are_refused(taken):
    known, n = fingerprint(X[:1_000], Y[:1_000]), int(1_000 * taken)
    rows = np.r_[1_000 - n : 2_000 - n]
    with pytest.raises(CertificateError, match="trained"):
        refuse_seen(known, X[rows], Y[rows])


def test_fresh_rows_pass_also_where_twins_are_common():
    passed = refuse_seen(fingerprint(X[:1_000], Y[:1_000]), X[1_000:], Y[1_000:])
    assert passed is None  # it raises, or says nothing
    for levels in (2, 5, 30):
        for seed in range(20):
            table = np.random.default_rng(seed).integers(0, levels, (2_000, 3))
            known = fingerprint(table[:1_000], Y[:1_000])
            refuse_seen(known, table[1_000:], Y[1_000:])
    refuse_seen(None, X, Y)


def test_the_size_of_a_fingerprint_is_bounded_and_it_still_tells():
    big = RANDOM.normal(size=(120_000, 1))
    bits = np.zeros(120_000, dtype=np.int8)
    known = fingerprint(big, bits)
    assert len(known.hashes) == 50_000
    with pytest.raises(CertificateError):
        refuse_seen(known, big[:1_000], bits[:1_000])
    refuse_seen(known, RANDOM.normal(size=(1_000, 1)), bits[:1_000])
