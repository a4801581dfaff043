"""The one-call interface: whose arrays, and what it refuses."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import demoa
from demoa.aggregation.aggregate import aggregate
from demoa.aggregation.aggregator import Aggregator
from demoa.aggregation.cache import RowCache
from demoa.aggregation.stores.device import DeviceStore

ROWS = np.random.default_rng(0).standard_normal((7, 30))


def made(name):
    return demoa.rules.Monna(pivot=0) if name == "monna" else name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", sorted(demoa.rules.RULES))
def test_tensors_and_arrays_give_the_same_numbers(rule, dtype):
    f = 0 if rule == "mean" else 1
    array = ROWS.astype(dtype)
    answer = aggregate(array, made(rule), f=f)
    tensor = aggregate(torch.from_numpy(array), made(rule), f=f)
    assert answer.dtype == array.dtype
    assert answer.shape == (30,)
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), answer)


@pytest.mark.parametrize("mixing", ["nnm", "bucketing"])
@pytest.mark.parametrize("rule", sorted(set(demoa.rules.RULES) - {"monna"}))
def test_the_device_store_gives_the_same_answers(rule, mixing):
    f = 0 if rule in ("mean", "krum", "multi_krum", "bulyan") else 1
    cache = RowCache(DeviceStore(torch.from_numpy(ROWS)), stale=range(7))
    aggregator = Aggregator(made(rule), f=f, mixing=mixing)
    stream = demoa.core.seeding.generator(0, "mixing", 0)
    result = aggregator.apply(cache, csr_array(np.eye(7)), f=f, centre=None, generator=stream)
    expected = aggregate(ROWS, made(rule), f=f, mixing=mixing)
    np.testing.assert_allclose(result.vector.numpy(), expected, rtol=0, atol=1e-12)


def test_aliases_are_the_papers_short_names():
    for alias, name in demoa.rules.RULE_ALIASES.items():
        f = 0 if name == "mean" else 1
        np.testing.assert_array_equal(aggregate(ROWS, alias, f=f), aggregate(ROWS, name, f=f))


def test_views_that_are_not_contiguous_are_accepted():
    wide = np.random.default_rng(1).standard_normal((7, 60))
    np.testing.assert_array_equal(
        aggregate(wide[:, ::2], "krum", f=1), aggregate(np.ascontiguousarray(wide[:, ::2]), "krum", f=1)
    )


@pytest.mark.parametrize("rule", ["krum", "median", "mean"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_is_not_finite_is_named(rule, bad):
    rows = ROWS.copy()
    rows[4, 7] = bad
    with pytest.raises(demoa.UpdateRejected, match="client 4 rejected"):
        aggregate(rows, rule, f=0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(3), "got float64 of shape \\(3,\\)"),
        (np.zeros((0, 3)), "not empty"),
        (np.zeros((3, 0)), "not empty"),
        (np.zeros((3, 3), int), "got int64"),
        (np.zeros((3, 3), np.float16), "got float16"),
        ([[1.0, 2.0]], "got list"),
        (torch.zeros(2, 2, dtype=torch.bfloat16), "got bfloat16"),
    ],
)
def test_rows_of_the_wrong_kind_are_refused(rows, message):
    with pytest.raises(demoa.ConfigError, match=message):
        aggregate(rows, "mean", f=0)


def test_a_centre_that_does_not_fit_is_refused():
    with pytest.raises(demoa.ConfigError, match="float64 of 30 entries, like the rows; got float64 of 3"):
        aggregate(ROWS, "cclip", f=1, centre=np.zeros(3))
    with pytest.raises(demoa.ConfigError, match="got float32 of 30"):
        aggregate(ROWS, "cclip", f=1, centre=np.zeros(30, np.float32))
    with pytest.raises(demoa.ConfigError, match="centre holds NaN"):
        aggregate(ROWS, "cclip", f=1, centre=np.full(30, np.nan))


def test_a_rule_of_ones_own_takes_part():
    from dataclasses import dataclass

    from demoa.aggregation.decision import average_of

    @dataclass(frozen=True)
    class Longest(demoa.rules.Rule):
        def tolerance(self, rows):
            return 0

        def decide(self, table, f):
            return average_of([int(np.argmax(table.squared_norms))], table.rows)

    longest = ROWS[np.argmax(np.linalg.norm(ROWS, axis=1))]
    np.testing.assert_array_equal(aggregate(ROWS, Longest(), f=0), longest)


def test_model_weights_with_small_differences_keep_their_digits():
    """Rows that agree to three places, as when whole models are aggregated: distances keep eight digits."""
    base = 1e3 * np.random.default_rng(2).standard_normal(5000)
    small = np.random.default_rng(3).standard_normal((9, 5000))
    rule = demoa.rules.GeometricMedian(nu=1e-9, tol=1e-13)
    np.testing.assert_allclose(aggregate(base + small, rule, f=2) - base, aggregate(small, rule, f=2), atol=1e-6)


def test_copies_are_at_distance_zero_and_near_copies_are_not():
    from demoa.aggregation.lookup import table_of

    rows = np.random.default_rng(4).standard_normal((5, 100_000)).astype(np.float32)
    rows[3] = rows[1]
    rows[4] = rows[1] * np.float32(1 + 2e-5)
    cache = RowCache(demoa.aggregation.stores.DenseStore(rows), stale=range(5))
    table = table_of(cache, csr_array(np.eye(5)), None)
    exact = ((rows[1].astype(float) - rows[4]) ** 2).sum()
    assert table.squared_distances[1, 3] == 0.0
    np.testing.assert_allclose(table.squared_distances[1, 4], exact, rtol=1e-3)
