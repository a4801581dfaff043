"""The compiled loops: exact to their stated bound, and the same whatever the number of threads."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import demoa
from demoa.aggregation.kernels import coordinates, products
from demoa.aggregation.kernels.chunks import CHUNK, LONG_CHUNK
from demoa.aggregation.kernels.network import full_network, rank_network, sorting_network


@pytest.fixture(params=[1, 2, 3])
def threads(request):
    demoa.set_threads(request.param)
    yield request.param
    demoa.set_threads(None)


def rows_of(n, d, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


@pytest.mark.parametrize("width", [1, 7, 2049, CHUNK + 5, 3 * CHUNK])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fresh", [[0], [4, 1], [0, 1, 2, 3, 4, 5, 6]])
def test_gram_is_within_its_stated_bound(width, dtype, fresh):
    rows = rows_of(7, width, dtype)
    found = products.gram(rows, np.array(fresh))
    exact = rows[fresh].astype(np.longdouble) @ rows.T.astype(np.longdouble)
    norms = np.linalg.norm(rows.astype(float), axis=1)
    bound = products.relative_error(width) * norms[fresh][:, None] * norms[None, :]
    assert found.shape == (len(fresh), 7)
    assert (np.abs(found - exact) <= bound).all()


def test_equal_rows_give_equal_products_wherever_they_stand():
    rows = rows_of(9, CHUNK + 123)
    rows[5] = rows[2]
    table = np.zeros((9, 9))
    for fresh in ([0, 1, 2], [5], [3, 4, 6, 7, 8]):  # as rounds would refresh them
        table[fresh, :] = products.gram(rows, np.array(fresh))
        table[:, fresh] = table[fresh, :].T
    assert table[2, 2] == table[5, 5] == table[2, 5]
    assert (table[2] == table[5]).all()


def test_products_do_not_depend_on_the_number_of_threads(threads):
    rows = rows_of(5, 2 * LONG_CHUNK + 17)
    weights = np.array([0.3, 0.0, -1.0, 0.2, 0.5])
    found = [
        products.gram(rows, np.array([0, 3])),
        products.combine(rows, weights),
        coordinates.rank_mean(rows, csr_array(np.eye(5)), 1, 3),
        products.squared_norm(rows[0]),
        products.blended(rows[0], 0.5, 0.25, rows[1]),
    ]
    demoa.set_threads(1)
    alone = [
        products.gram(rows, np.array([0, 3])),
        products.combine(rows, weights),
        coordinates.rank_mean(rows, csr_array(np.eye(5)), 1, 3),
        products.squared_norm(rows[0]),
        products.blended(rows[0], 0.5, 0.25, rows[1]),
    ]
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_combine_rounds_once_and_skips_rows_without_weight():
    rows = rows_of(6, 5000)
    rows[4] = np.nan
    weights = np.array([0.1, 0.2, 0.3, 0.4, 0.0, -0.5])
    exact = weights[[0, 1, 2, 3, 5]] @ rows[[0, 1, 2, 3, 5]].astype(np.float64)
    # The sum in float64 can differ in its last bit, which may move a rounding tie by one unit.
    np.testing.assert_array_max_ulp(products.combine(rows, weights), exact.astype(np.float32), maxulp=1)


def test_blend_is_what_numpy_computes_in_float64():
    row, vector = rows_of(2, 100_003, np.float64)
    expected = 0.91 * row + 0.9 * vector
    np.testing.assert_array_equal(products.blended(row, 0.91, 0.9, vector), expected)
    products.blend(row, 0.91, 0.9, vector)
    np.testing.assert_array_equal(row, expected)


def test_moved_is_a_blend_and_its_squared_norm():
    start, vector = rows_of(2, LONG_CHUNK + 3, np.float64)
    found, square = products.moved(start, -0.1, vector)
    np.testing.assert_array_equal(found, start + -0.1 * vector)
    assert square == pytest.approx(found @ found, rel=products.relative_error(len(found)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, CHUNK, LONG_CHUNK + 1])
def test_squared_norm_is_finite_only_for_finite_vectors(bad, place):
    vector = np.ones(LONG_CHUNK + 2, np.float32)
    assert products.squared_norm(vector) == LONG_CHUNK + 2
    vector[place] = bad
    assert not np.isfinite(products.squared_norm(vector))


@pytest.mark.parametrize("wires", range(1, 11))
def test_networks_sort_all_sequences_of_zeros_and_ones(wires):
    """The 0-1 principle: a network that sorts these sorts everything."""
    inputs = np.array(list(itertools.product([0, 1], repeat=wires))).T
    np.testing.assert_array_equal(run(full_network(wires), inputs), np.sort(inputs, axis=0))


@given(st.integers(1, 40), st.data())
def test_pruned_networks_bring_the_right_values_to_the_middle(wires, data):
    low = data.draw(st.integers(0, wires - 1))
    high = data.draw(st.integers(low, wires - 1))
    inputs = np.random.default_rng(data.draw(st.integers(0, 1000))).integers(0, 9, (wires, 30))
    found, ranked = run(rank_network(wires, low, high), inputs), np.sort(inputs, axis=0)
    np.testing.assert_array_equal(np.sort(found[low : high + 1], axis=0), ranked[low : high + 1])
    assert len(rank_network(wires, low, high)) <= len(sorting_network(wires))


def test_the_median_of_25_takes_113_steps():
    assert len(sorting_network(25)) == 140
    assert len(rank_network(25, 12, 12)) == 113


def run(steps, inputs):
    values = inputs.copy()
    for i, j in steps:
        values[[i, j]] = np.sort(values[[i, j]], axis=0)
    return values


@pytest.mark.parametrize("n", [1, 2, 3, 8, 25, 130, 700])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rank_mean_sorts_any_number_of_rows(n, dtype):
    rows = rows_of(n, 300, dtype)
    low, high = (n - 1) // 4, n - 1 - (n - 1) // 4
    expected = np.sort(rows, axis=0)[low : high + 1].astype(float).mean(axis=0)
    np.testing.assert_allclose(
        coordinates.rank_mean(rows, csr_array(np.eye(n)), low, high), expected, rtol=0, atol=4 * np.finfo(dtype).eps
    )


def test_coordinates_mix_inside_the_block():
    rows = rows_of(11, CHUNK + 300, np.float64)
    matrix = np.random.default_rng(1).standard_normal((7, 11)) * (np.random.default_rng(2).random((7, 11)) < 0.6)
    matrix[3] = 0.0
    mixed = matrix @ rows
    np.testing.assert_allclose(
        coordinates.rank_mean(rows, csr_array(matrix), 3, 3), np.median(mixed, axis=0), atol=1e-13
    )


SELECTION, MIXTURE = np.diag([1.0, 0.5, 2.0, 1.0, 3.0, 1.0, 0.1])[[4, 2, 0, 1, 3, 6, 5]], np.tri(7) / 3 - 0.1
WITH_A_ZERO_ROW = SELECTION * [[1], [1], [0], [1], [1], [1], [1]]


@pytest.mark.parametrize("matrix", [SELECTION, MIXTURE, WITH_A_ZERO_ROW])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 8, 1003, CHUNK + 1])
def test_straight_line_code_gives_the_bits_of_the_loop(matrix, dtype, width, monkeypatch):
    rows = rows_of(7, width, dtype)

    def both():
        return np.concatenate(
            [
                coordinates.rank_mean(rows, csr_array(matrix), 3, 3),
                coordinates.rank_mean(rows, csr_array(matrix), 1, 5),
                coordinates.near_median(rows, csr_array(matrix), 5),
            ]
        )

    looped = both()
    monkeypatch.setattr(coordinates, "STRAIGHT_NUMBERS", 1)
    np.testing.assert_array_equal(both(), looped)


@pytest.mark.parametrize("n", [1, 2, 25, coordinates.STRAIGHT_ROWS, coordinates.STRAIGHT_ROWS + 1])
def test_straight_line_code_sorts_any_number_of_rows(n, monkeypatch):
    monkeypatch.setattr(coordinates, "STRAIGHT_NUMBERS", 1)
    rows = rows_of(n, 300)
    expected = np.median(rows.astype(float), axis=0).astype(np.float32)
    np.testing.assert_array_equal(coordinates.rank_mean(rows, csr_array(np.eye(n)), (n - 1) // 2, n // 2), expected)


def test_values_outside_the_window_do_not_touch_its_sum():
    column = np.array([-3e38, 1.0, 1.5, 2.0, 3e38], np.float32)[:, None]
    assert coordinates.near_median(column, csr_array(np.eye(5)), 3).tolist() == [1.5]


def test_threads_must_be_positive():
    with pytest.raises(demoa.ConfigError, match="at least 1, got 0"):
        demoa.set_threads(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [coordinates.STRAIGHT_ROWS + 1, 300, 501])
def test_ranks_among_many_rows(n, dtype):
    """By bisection: with ties, zeros of both signs, and numbers of very different size."""
    rows = rows_of(n, 301, dtype)
    rows[:, :50] = rows[:, :50].round(1)
    rows[:, 50:60] *= np.logspace(-30, 30, n)[:, None].astype(dtype)
    rows[5], rows[:, 60], rows[:, 61], rows[: n // 3, 62] = rows[6], 0.0, -1.0, -0.0
    every, ordered = csr_array(np.eye(n)), np.sort(rows, axis=0).astype(float)
    eps = np.finfo(dtype).eps
    for low, high in [((n - 1) // 2, n // 2), (20, n - 21), (0, n - 1), (3, 3), (50, 60)]:
        kept = ordered[low : high + 1]
        limit = 4 * eps * np.abs(kept).max(axis=0)
        assert (np.abs(coordinates.rank_mean(rows, every, low, high) - kept.mean(axis=0)) <= limit).all()
    keep, median = n - 40, 0.5 * ordered[(n - 1) // 2] + 0.5 * ordered[n // 2]
    away = np.abs(rows - median.astype(dtype))
    order = np.lexsort((rows.astype(float), away.astype(float)), axis=0)[:keep]
    kept = np.take_along_axis(rows.astype(float), order, axis=0)
    limit = 4 * eps * np.abs(kept).max(axis=0)
    assert (np.abs(coordinates.near_median(rows, every, keep) - kept.mean(axis=0)) <= limit).all()


@pytest.mark.parametrize("width", [1, 31, 33, 1000])
def test_the_last_columns_among_many_rows(width):
    rows = rows_of(200, width)
    found = coordinates.rank_mean(rows, csr_array(np.eye(200)), 99, 100)
    np.testing.assert_allclose(found, np.median(rows, axis=0), rtol=1e-6, atol=1e-7)
