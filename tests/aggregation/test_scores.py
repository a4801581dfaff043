"""Bounds on Krum's scores: what they rule out is never what a look at all rows would have found."""

import numpy as np
import pytest

from demoa.aggregation import scores
from demoa.aggregation.cache import RowCache
from demoa.aggregation.kernels.neighbours import nearest_sums
from demoa.aggregation.stores import DenseStore
from demoa.aggregation.table import Table

N, D = 60, 30


def expected(cache, scale, neighbours):
    """Return all scores, from all distances."""
    products = scale[:, None] * cache.products()[:N, :N] * scale
    table = Table(N, lambda: np.pad(products, (0, 1)))
    return nearest_sums(table.squared_distances, neighbours)


def play(rounds, decay, *, seed=0, neighbours=40, own=1):
    """Yield the cache and scales of rounds in which some rows change and the others decay."""
    draw = np.random.default_rng(seed)
    cache = RowCache(DenseStore(np.zeros((N + own, D))))
    scale = np.ones(N)
    for row in range(N):
        cache.blend(row, 0.0, 1.0, draw.standard_normal(D))
    for number in range(rounds):
        scale = scale * decay(number, draw)
        for row in draw.choice(N + own, 4, replace=False):
            kept = scale[row] if row < N else 1.0
            cache.blend(int(row), 0.9 * kept, 0.5, draw.standard_normal(D) * 10.0 ** draw.integers(-1, 2))
            if row < N:
                scale[row] = 1.0
        yield cache, scale, neighbours


@pytest.mark.parametrize(
    "decay",
    [
        lambda number, draw: 1.0,
        lambda number, draw: 0.97,
        lambda number, draw: draw.uniform(0.5, 1.0),
        lambda number, draw: np.where(np.arange(N) < 5, 0.5, 0.95),  # a few clients decay otherwise
        lambda number, draw: draw.uniform(0.5, 1.0, N),  # each as it likes
        lambda number, draw: 0.0 if number % 7 == 3 else 0.9,
    ],
)
@pytest.mark.parametrize("neighbours", [1, 40, N - 2])
def test_the_least_score_is_found(decay, neighbours):
    for cache, scale, m in play(80, decay, neighbours=neighbours):
        all_scores = expected(cache, scale, m)
        found = cache.nearest(scale, m)
        assert all_scores[found] <= all_scores.min() * (1 + 1e-12) + 1e-12


def test_most_rows_are_not_looked_at(monkeypatch):
    looked = []
    least_sum = scores.least_sum

    def counting(products, squares, scale, neighbours, bounds, sums, thresholds):
        before = sums.copy()
        found = least_sum(products, squares, scale, neighbours, bounds, sums, thresholds)
        looked.append(np.count_nonzero(before != sums))
        return found

    monkeypatch.setattr(scores, "least_sum", counting)
    for cache, scale, m in play(60, lambda number, draw: 0.95):
        cache.nearest(scale, m)
    assert np.mean(looked[1:]) < N / 8


def test_what_was_known_makes_no_difference():
    """A cache that has followed all rounds finds, to the bit, what one finds that begins now."""
    for cache, scale, m in play(50, lambda number, draw: 0.93, seed=3):
        found = cache.nearest(scale, m)
        again = RowCache(cache.store)
        again.load({"products": cache.products().copy()})
        assert again.nearest(scale, m) == found


def test_of_equal_rows_the_first_is_taken():
    cache = RowCache(DenseStore(np.zeros((N, D))))
    for row in range(N):
        cache.blend(row, 0.0, 1.0, np.full(D, 1.0 if 7 <= row < 50 else row + 0.5))
    assert cache.nearest(np.ones(N), 30) == 7
    cache.blend(3, 0.0, 1.0, np.full(D, 1.0))
    assert cache.nearest(np.ones(N), 30) == 3


def test_another_number_of_neighbours_is_another_question():
    for cache, scale, _ in play(10, lambda number, draw: 0.9):
        for m in (1, 20, 50):
            all_scores = expected(cache, scale, m)
            assert all_scores[cache.nearest(scale, m)] <= all_scores.min() * (1 + 1e-12)


def test_all_is_computed_anew_now_and_then(monkeypatch):
    monkeypatch.setattr(scores, "OFTEN", 5)
    begun = []
    start_anew = scores.NearestScores._start_anew
    monkeypatch.setattr(
        scores.NearestScores, "_start_anew", lambda self, *given: begun.append(1) or start_anew(self, *given)
    )
    for cache, scale, m in play(30, lambda number, draw: 0.9):
        cache.nearest(scale, m)
    assert len(begun) == 5


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_nearly_agree(seed):
    """Where distances are all rounding, what was known makes no difference either."""
    draw = np.random.default_rng(seed)
    common = draw.standard_normal(D)
    cache, scale = RowCache(DenseStore(np.zeros((N, D)))), np.ones(N)
    for row in range(N):
        cache.blend(row, 0.0, 1.0, common + 1e-7 * draw.standard_normal(D))
    for number in range(60):
        scale = scale * 0.97
        if number % 3 == 0:
            row = int(draw.integers(N))
            cache.blend(row, 0.0, 1.0, scale[row] * (common + 1e-7 * draw.standard_normal(D)))
            scale[row] = 1.0
        again = RowCache(cache.store)
        again.load({"products": cache.products().copy()})
        assert again.nearest(scale, 40) == cache.nearest(scale, 40)
