"""Every mixing against its definition on the rows, alone and in any order."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demoa
from demoa.aggregation.aggregator import Aggregator
from demoa.aggregation.table import Table
from demoa.core.seeding import generator
from tests import reference
from tests.aggregation.test_rules import assert_close, resolution
from tests.strategies import samples


def mixed_rows(mixing, sample, seed=0):
    """Return the rows that come out of a mixing."""
    return mixing_matrix(mixing, sample, seed) @ sample.exact


def mixing_matrix(mixing, sample, seed=0):
    """Return the matrix of a mixing, for the stream that `aggregate` gives its first step."""
    n = len(sample.rows)
    gram = np.zeros((n + 1, n + 1))
    gram[:n, :n] = sample.exact @ sample.exact.T
    return mixing.matrix(Table(n, lambda: gram), sample.f, generator(seed, "mixing", 0))


@given(samples())
def test_nearest_neighbours(sample):
    found = mixed_rows(demoa.mixing.NearestNeighbours(), sample)
    squares = reference.distances(sample.exact)
    matrix = mixing_matrix(demoa.mixing.NearestNeighbours(), sample)
    keep = len(sample.rows) - sample.f
    assert ((matrix > 0).sum(axis=1) == keep).all()
    for row, line in enumerate(squares):
        chosen = np.flatnonzero(matrix[row])
        assert line[chosen].sum() <= np.sort(line)[:keep].sum() + 2 * keep * resolution(sample) ** 2
        np.testing.assert_allclose(found[row], sample.exact[chosen].mean(axis=0), rtol=1e-9, atol=1e-12 * sample.radius)


@given(samples(), st.floats(0.01, 2.0))
def test_clip(sample, share):
    radius = share * sample.radius + 1e-9
    found = mixed_rows(demoa.mixing.Clip(radius), sample)
    assert np.abs(found - reference.clip(sample.exact, radius)).max() <= 1e-12 * sample.radius


@given(samples())
def test_adaptive_clip(sample):
    found = mixed_rows(demoa.mixing.AdaptiveClip(), sample)
    assert np.abs(found - reference.adaptive_clip(sample.exact, sample.f)).max() <= 1e-12 * sample.radius


@given(samples(), st.integers(1, 5), st.integers(0, 100))
def test_bucketing_puts_every_row_into_one_bucket(sample, size, seed):
    matrix = mixing_matrix(demoa.mixing.Bucketing(size), sample, seed)
    n = len(sample.rows)
    assert matrix.shape == (-(-n // size), n)
    assert ((matrix > 0).sum(axis=0) == 1).all()
    counts = (matrix > 0).sum(axis=1)
    assert sorted(counts, reverse=True) == [size] * (n // size) + ([n % size] if n % size else [])
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)


def test_bucketing_draws_anew_with_each_seed():
    rows = np.random.default_rng(0).standard_normal((10, 3))
    answers = {tuple(demoa.aggregate(rows, "median", f=1, mixing="bucketing", seed=seed)) for seed in range(5)}
    assert len(answers) == 5


@given(samples(most_f=lambda n: max(0, (n - 3) // 2), plain=True), st.permutations(["nnm", "arc", "clip"]))
def test_mixings_compose_in_any_order(sample, order):
    rows = sample.exact
    radius = 0.7 * sample.radius
    steps = {
        "nnm": (demoa.mixing.NearestNeighbours(), lambda r: reference.nearest_neighbours(r, sample.f)),
        "arc": (demoa.mixing.AdaptiveClip(), lambda r: reference.adaptive_clip(r, sample.f)),
        "clip": (demoa.mixing.Clip(radius), lambda r: reference.clip(r, radius)),
    }
    for name in order:
        rows = steps[name][1](rows)
    chain = [steps[name][0] for name in order]
    for rule, expected in (
        ("median", np.median(rows, axis=0)),
        ("cclip", reference.centered_clip(rows, 0 * rows[0])),
    ):
        answer = demoa.aggregate(sample.rows, rule, f=sample.f, mixing=chain)
        assert_close(answer, expected, sample, steps=3 + 3 * len(rows))


@pytest.mark.parametrize("rule", ["krum", "rfa", "cclip", "median", "trimmed_mean", "meamed"])
def test_a_mixed_rule_equals_the_rule_on_mixed_rows(rule):
    """No mixed row is built, and still the answer is the one that mixed rows would give."""
    rows = np.random.default_rng(3).standard_normal((13, 50))
    for chain in itertools.permutations([demoa.mixing.Bucketing(2), demoa.mixing.Clip(6.0)]):
        built = rows
        for step in chain:
            matrix = mixing_matrix(step, _Rows(built, 2))
            built = matrix @ built
        answer = demoa.aggregate(rows, rule, f=2, mixing=chain)
        np.testing.assert_allclose(answer, demoa.aggregate(built, rule, f=2), rtol=0, atol=1e-12)


def test_the_tolerance_of_a_chain_is_that_of_its_weakest_part():
    assert Aggregator("median", f=0).tolerance(25) == 12
    assert Aggregator("median", f=0, mixing="bucketing").tolerance(25) == 6
    assert Aggregator("krum", f=0, mixing=["bucketing"]).tolerance(25) == 5
    assert Aggregator("median", f=0, mixing=["nnm", "bucketing"]).tolerance(5) == 1
    with pytest.raises(demoa.ToleranceError, match="Bucketing \\+ Krum over 25 rows tolerates f from 0 to 5"):
        demoa.aggregate(np.eye(25), "krum", f=6, mixing="bucketing")


def test_bad_options_are_refused():
    for make in (lambda: demoa.mixing.Bucketing(0), lambda: demoa.mixing.Clip(0.0)):
        with pytest.raises(demoa.ConfigError, match="must be"):
            make()


class _Rows:
    def __init__(self, rows, f):
        self.rows, self.f, self.exact = rows, f, rows
