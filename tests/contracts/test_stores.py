"""Every store keeps the same promises; a new one is added to `STORES` and must pass."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from demoa.aggregation.cache import RowCache
from demoa.aggregation.decision import NearMedian, RankMean
from demoa.aggregation.lookup import table_of
from demoa.aggregation.stores import Bfloat16, DenseStore, Int8, Memmap, TopK
from demoa.aggregation.stores.device import BLOCK_ENTRIES, DeviceStore
from demoa.core.errors import StoreError

N, D, OWN = 6, BLOCK_ENTRIES // 6 + 77, 1


def filled(kind, rows):
    """A store of a kind that holds these rows; the last of them is the server's own."""
    store = kind.make(N - OWN, OWN, rows[0])
    for index, row in enumerate(rows):
        store.blend(index, 0.0, 1.0, store.adopt(row))
    return store


STORES = {
    "dense": lambda rows, folder: DenseStore(rows.copy()),
    "device": lambda rows, folder: DeviceStore(torch.from_numpy(rows.copy())),
    "memmap": lambda rows, folder: filled(Memmap(folder), rows),
    "bfloat16": lambda rows, folder: filled(Bfloat16(), rows),
    "int8": lambda rows, folder: filled(Int8(), rows),
    "int8, mapped": lambda rows, folder: filled(Int8(folder, block=100), rows),
    "top_k": lambda rows, folder: filled(TopK(share=0.1), rows),
    "top_k, mapped": lambda rows, folder: filled(TopK(folder, share=0.1, feedback=False), rows),
}
EXACT = ("dense", "device", "memmap")


@pytest.fixture(params=["float32", "float64"], scope="module")
def given(request):
    return np.random.default_rng(0).standard_normal((N, D)).astype(request.param)


@pytest.fixture(params=sorted(STORES))
def name(request):
    return request.param


@pytest.fixture
def store(name, given, tmp_path):
    return STORES[name](given, tmp_path / "rows")


@pytest.fixture
def rows(name, store, given):
    """The rows as the store has them: what it rounds, everything is computed from."""
    return given if name in EXACT else np.array([store.read(index) for index in range(N)])


def numbers(vector):
    """A vector of either library as NumPy."""
    return vector.numpy() if isinstance(vector, torch.Tensor) else vector


def assert_close(one, other, rows):
    eps = float(np.finfo(rows.dtype).eps)
    np.testing.assert_allclose(numbers(one), other, rtol=4 * eps, atol=8 * eps)


def test_shape(store):
    assert (store.rows, store.width) == (N, D)


def test_read_returns_a_copy(store, rows):
    row = store.read(2)
    np.testing.assert_array_equal(numbers(row), rows[2])
    row *= 0
    np.testing.assert_array_equal(numbers(store.read(2)), rows[2])


ROUNDED = {"bfloat16": 2**-8, "int8": 1 / 127, "int8, mapped": 1 / 127}
"""By how much of the largest numbers a row that was read may be off."""


def test_blend_changes_one_row(name, store, rows):
    store.blend(1, 0.25, 0.5, store.adopt(rows[4]))
    expected = 0.25 * rows[1].astype(float) + 0.5 * rows[4]
    if name in EXACT:
        assert_close(store.read(1), expected, rows)
    elif name in ROUNDED:
        np.testing.assert_allclose(store.read(1), expected, rtol=0, atol=ROUNDED[name] * np.abs(expected).max())
    for other in (0, 2, 3, 4, 5):
        np.testing.assert_array_equal(numbers(store.read(other)), rows[other])


def test_blended_changes_nothing(store, rows):
    assert_close(
        store.blended(store.read(0), 2.0, -1.0, store.adopt(rows[1])),
        2.0 * rows[0].astype(float) - rows[1],
        rows,
    )
    np.testing.assert_array_equal(numbers(store.read(0)), rows[0])


def test_gram(store, rows):
    exact = rows.astype(float) @ rows.astype(float).T
    fresh = np.array([0, 3, 5])
    found = store.gram(fresh)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, exact[fresh], rtol=1e-12, atol=1e-12 * D)


def test_combine(store, rows):
    weights = np.array([0.5, 0.0, -1.0, 0.25, 2.0, 0.1])
    assert_close(store.combine(weights), weights @ rows.astype(float), rows)


def test_squared_distance(store, rows):
    weights = np.array([0.5, 0.0, 0.25, 0.0, -1.0, 0.125])
    vector = rows[3].copy()
    expected = ((weights @ rows.astype(float) - vector) ** 2).sum()
    assert store.squared_distance(weights, store.adopt(vector)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("decision", [RankMean(2, 3), RankMean(1, 4), NearMedian(4, np.array([0, 1, 2, 4, 5]))])
def test_coordinatewise(store, rows, decision):
    matrix = csr_array(np.diag([1.0, 0.5, 1.0, 2.0, 1.0, 0.25]))
    mixed = np.sort((matrix @ rows)[getattr(decision, "chosen", slice(None))], axis=0).astype(float)
    if isinstance(decision, RankMean):
        expected = mixed[decision.low : decision.high + 1].mean(axis=0)
    else:
        median = np.median(mixed, axis=0)
        order = np.argsort(np.abs(mixed - median), axis=0, kind="stable")[: decision.keep]
        expected = np.take_along_axis(mixed, order, axis=0).mean(axis=0)
    assert_close(store.coordinatewise(matrix, decision), expected, rows)


def test_moments(store, rows):
    chosen, scale = np.array([0, 2, 5]), np.array([1.0, 0.5, 2.0])
    scaled = scale[:, None] * rows[chosen].astype(float)
    mean, deviation = store.moments(chosen, scale)
    assert_close(mean, scaled.mean(axis=0), rows)
    assert_close(deviation, scaled.std(axis=0, ddof=1), rows)
    alone = store.moments(np.array([1]), np.ones(1))
    np.testing.assert_array_equal(numbers(alone[0]), rows[1])
    assert not numbers(alone[1]).any()


def test_inner(store, rows):
    chosen = np.array([5, 0, 3])
    found = store.inner(store.adopt(rows[3]), chosen)
    np.testing.assert_allclose(found, rows[chosen].astype(float) @ rows[3].astype(float), rtol=1e-12, atol=1e-12 * D)


def test_accumulate_and_square(store, rows):
    first, second = np.array([0.5, 0.0, -1.0, 0.25, 2.0, 0.1]), np.array([0.0, 0.0, 3.0, 0.0, 0.0, 0.0])
    total = store.accumulate(None, 0.0, first)
    np.testing.assert_allclose(numbers(total), first @ rows.astype(float), rtol=1e-12, atol=1e-12)
    before = store.rounded(total)
    found = store.accumulate(total, 0.5, second)
    exact = (0.5 * first + second) @ rows.astype(float)
    np.testing.assert_allclose(numbers(found), exact, rtol=1e-12, atol=1e-12)
    assert_close(store.rounded(found), exact, rows)
    assert_close(before, first @ rows.astype(float), rows)
    assert store.square(2) == pytest.approx(float((rows[2].astype(float) ** 2).sum()), rel=1e-12)


def test_equal_rows_are_at_distance_zero(store, rows):
    for index in (1, 4):
        store.blend(index, 0.0, 1.0, store.adopt(rows[1]))
    cache = RowCache(store, stale=range(N))
    table = table_of(cache, csr_array(np.eye(N)), None)
    assert table.squared_distances[1, 4] == 0.0
    assert (table.squared_distances == table.squared_distances.T).all()
    assert table.squared_distances[0, 1] > 0.0


def test_squared_norm(store, rows):
    vector = rows[0].copy()
    np.testing.assert_allclose(store.squared_norm(store.adopt(vector)), (vector.astype(float) ** 2).sum(), rtol=1e-12)
    vector[-1] = np.nan
    assert not np.isfinite(store.squared_norm(store.adopt(vector)))


def test_saved_rows_come_back(name, store, rows):
    saved = {key: array.copy() for key, array in store.arrays().items()}
    store.settle()
    store.blend(0, 0.0, 1.0, store.adopt(rows[1]))
    again = store.loaded(saved)
    for index in range(N):
        np.testing.assert_array_equal(numbers(again.read(index)), rows[index])
    with pytest.raises(StoreError, match="no array"):
        store.loaded({})
    if name in ("dense", "device"):
        with pytest.raises(StoreError, match="load it into a server made with"):
            store.loaded({"rows": rows[:2].copy()})


def test_another_number_of_rows_begins_with_zeros(store, rows):
    other = store.resized(N + 2)
    assert (other.rows, other.width) == (N + 2, D)
    assert not numbers(other.read(N + 1)).any()
    assert not numbers(other.read(0)).any()
    np.testing.assert_array_equal(numbers(store.read(0)), rows[0])


def test_the_servers_own_rows_are_not_rounded(store, given):
    np.testing.assert_array_equal(numbers(store.read(N - 1)), given[N - 1])


def test_what_top_k_leaves_out_comes_back():
    """The same vector, written again and again: what rules see of it adds up to all of it."""
    vector = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    for feedback in (True, False):
        store = TopK(share=0.1, feedback=feedback).make(1, 0, vector)
        seen = np.zeros(1000)
        for _ in range(200):
            store.blend(0, 0.0 if not seen.any() else 1.0, 1.0, vector)
            row = store.read(0)
            seen += row
            store.blend(0, 1.0, -1.0, row)  # what was seen is taken out
        off = np.linalg.norm(seen / 200 - vector) / np.linalg.norm(vector)
        assert (off < 0.1) == feedback


def test_bfloat16_is_torchs():
    vector = np.concatenate(
        [np.random.default_rng(2).standard_normal(5000) * 10.0 ** np.arange(-25, 25).repeat(100), [0]]
    )
    store = Bfloat16().make(1, 0, vector.astype(np.float32))
    store.blend(0, 0.0, 1.0, vector.astype(np.float32))
    expected = torch.from_numpy(vector.astype(np.float32)).bfloat16().float().numpy()
    np.testing.assert_array_equal(store.read(0), expected)
