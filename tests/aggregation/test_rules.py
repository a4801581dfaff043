"""Every rule against its definition on the rows.

Tolerance. Inner products are off by at most g = relative_error(d) times the product of the norms, so that a
squared distance is off by at most 4 g R^2, R being the largest norm: two points closer than

    resolution = 2 sqrt(g) R

cannot be told apart. A rule that selects rows must therefore select ones whose published score is within
what 4 g R^2 per squared distance allows of the best. A rule that iterates moves by at most `resolution` more
per step. On top comes the rounding of the answer to the rows' dtype, eps |answer|.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from scipy.sparse import csr_array

import demoa
from demoa.aggregation.aggregator import Aggregator
from demoa.aggregation.cache import RowCache
from demoa.aggregation.kernels.products import relative_error
from demoa.aggregation.stores import DenseStore
from tests import reference
from tests.strategies import samples


def krum_f(n):
    return max(0, (n - 3) // 2)


def bulyan_f(n):
    return max(0, (n - 3) // 4)


def square_error(sample):
    """The most by which a squared distance can be off; the references themselves are in float64."""
    return 4 * (relative_error(sample.rows.shape[1]) + 16 * np.finfo(float).eps) * sample.radius**2


def resolution(sample):
    return np.sqrt(square_error(sample))


def rounding(sample):
    """The rounding of the answer, and of up to n products on the way in the rows' dtype."""
    return (len(sample.rows) + 2) * float(np.finfo(sample.rows.dtype).eps) * sample.radius


def chosen_by(rule, sample):
    """Return the rows that a selecting rule gives weight, after checking that it averages them."""
    cache = RowCache(DenseStore(sample.rows), stale=range(len(sample.rows)))
    eye = csr_array(np.eye(len(sample.rows)))
    result = Aggregator(rule, f=sample.f).apply(cache, eye, f=sample.f, centre=None, generator=np.random.default_rng(0))
    chosen = np.flatnonzero(result.weights)
    np.testing.assert_allclose(result.weights[chosen], 1 / len(chosen))
    assert np.abs(result.vector - sample.exact[chosen].mean(axis=0)).max() <= rounding(sample)
    return chosen


def assert_close(answer, expected, sample, steps=0):
    assert answer.dtype == sample.rows.dtype
    assert np.linalg.norm(answer - expected) <= rounding(sample) + steps * resolution(sample)


@given(samples(most_f=lambda n: 0))
def test_mean(sample):
    assert_close(demoa.aggregate(sample.rows, "mean", f=0), sample.exact.mean(axis=0), sample)


@given(samples(most_f=krum_f))
def test_krum(sample):
    scores = reference.krum_scores(sample.exact, sample.f)
    (pick,) = chosen_by("krum", sample)
    assert scores[pick] <= scores.min() + 2 * len(sample.rows) * square_error(sample)


@given(samples(most_f=krum_f))
def test_multi_krum(sample):
    scores = reference.krum_scores(sample.exact, sample.f)
    chosen = chosen_by("multi_krum", sample)
    best = np.sort(scores)[: len(sample.rows) - sample.f]
    assert len(chosen) == len(best)
    assert scores[chosen].sum() <= best.sum() + 2 * len(sample.rows) ** 2 * square_error(sample)


@given(samples(most_rows=9))
def test_minimum_diameter(sample):
    chosen = chosen_by("mda", sample)
    assert len(chosen) == len(sample.rows) - sample.f
    least = reference.least_diameter(sample.exact, sample.f)
    assert reference.diameter(sample.exact, chosen) <= least + 2 * square_error(sample)


@given(samples())
def test_monna(sample):
    squares = reference.distances(sample.exact)[1]
    chosen = chosen_by(demoa.rules.Monna(pivot=1), sample)
    best = np.sort(squares)[: len(sample.rows) - sample.f]
    assert len(chosen) == len(best)
    assert squares[chosen].sum() <= best.sum() + 2 * len(sample.rows) * square_error(sample)


@given(samples(most_rows=8))
def test_smallest_eigenvalue(sample):
    chosen = chosen_by("smea", sample)
    assert len(chosen) == len(sample.rows) - sample.f
    least = reference.least_top_variance(sample.exact, sample.f)
    # An eigenvalue of an (m, m) matrix moves by at most m times the largest change of an entry.
    assert reference.top_variance(sample.exact, chosen) <= least + 2 * len(sample.rows) * square_error(sample)


@given(samples())
def test_divide_and_conquer(sample):
    n = len(sample.rows)
    variance, direction, gap = reference.main_direction(sample.exact, np.full(n, 1 / n))
    assume(variance > 0)
    # A direction turns by the change of the matrix over its eigenvalue gap: leave out near-ties.
    turn = n * square_error(sample) / (variance * gap) if gap > 0 else 1.0
    assume(turn < 1e-3)
    parts = ((sample.exact - sample.exact.mean(axis=0)) @ direction) ** 2
    chosen = chosen_by("dnc", sample)
    best = np.sort(parts)[: n - sample.f]
    assert len(chosen) == len(best)
    slack = 8 * turn * n * variance + n * square_error(sample)
    assert parts[chosen].sum() <= best.sum() + n * slack


@given(samples())
def test_covariance_filter(sample):
    """An error g |x| |y| in the products is what rows off by g R would give: see how far those move the answer.

    The answer depends on all eigenvectors that it met, so no bound holds for every sample; its condition is
    measured on each, with random rows a thousand times as far off, and samples where it is undefined are left out.
    """
    expected = reference.covariance_filter(sample.exact, sample.f)
    error = 1e3 * (relative_error(sample.rows.shape[1]) + 16 * np.finfo(float).eps) * sample.radius
    random = np.random.default_rng(0)
    moved = [
        reference.covariance_filter(sample.exact + error * random.uniform(-1, 1, sample.rows.shape), sample.f)
        for _ in range(8)
    ]
    spread = max(np.linalg.norm(other - expected) for other in moved)
    assume(spread <= 1e-3 * sample.radius)
    answer = demoa.aggregate(sample.rows, "caf", f=sample.f)
    assert np.linalg.norm(answer - expected) <= rounding(sample) + spread


@given(samples())
def test_geometric_median(sample):
    expected = reference.geometric_median(sample.exact)
    assert_close(demoa.aggregate(sample.rows, "rfa", f=sample.f), expected, sample, steps=8 * len(sample.rows))


def test_geometric_median_runs_to_convergence():
    rows = np.random.default_rng(0).standard_normal((9, 5))
    found = demoa.aggregate(rows, demoa.rules.GeometricMedian(nu=1e-9, tol=1e-12), f=2)
    pulls = (rows - found) / np.linalg.norm(rows - found, axis=1, keepdims=True)
    assert np.linalg.norm(pulls.sum(axis=0)) < 1e-8  # the gradient of the sum of distances


@given(samples())
def test_centered_clip_from_zero(sample):
    expected = reference.centered_clip(sample.exact, np.zeros(sample.rows.shape[1]))
    assert_close(demoa.aggregate(sample.rows, "cclip", f=sample.f), expected, sample, steps=3)


@given(samples())
def test_centered_clip_from_a_centre(sample):
    centre = sample.rows[0] * sample.rows.dtype.type(0.5)
    tau = 0.3 * sample.radius + 1e-9
    expected = reference.centered_clip(sample.exact, centre.astype(float), tau, steps=4)
    rule = demoa.rules.CenteredClip(tau=tau, steps=4)
    assert_close(demoa.aggregate(sample.rows, rule, f=sample.f, centre=centre), expected, sample, steps=4)


@given(samples())
def test_median(sample):
    assert_close(demoa.aggregate(sample.rows, "cm", f=sample.f), np.median(sample.exact, axis=0), sample)


@given(samples())
def test_trimmed_mean(sample):
    expected = reference.trimmed_mean(sample.exact, sample.f)
    assert_close(demoa.aggregate(sample.rows, "trimmed_mean", f=sample.f), expected, sample)


@given(samples())
def test_mean_around_median(sample):
    expected = reference.near_median(sample.exact, len(sample.rows) - sample.f)
    assert_close(demoa.aggregate(sample.rows, "meamed", f=sample.f), expected, sample)


@given(samples(most_f=bulyan_f))
def test_bulyan(sample):
    """One row changes the answer altogether: it must be that of some choice whose scores were as good as the best."""
    allowed = reference.bulyan(sample.exact, sample.f, slack=2 * len(sample.rows) * square_error(sample))
    answer = demoa.aggregate(sample.rows, "bulyan", f=sample.f)
    assert answer.dtype == sample.rows.dtype
    assert min(np.linalg.norm(answer - expected) for expected in allowed) <= rounding(sample)


@pytest.mark.parametrize("rule", sorted(demoa.rules.RULES))
def test_one_row_is_its_own_aggregate(rule):
    row = np.array([[3.0, -4.0]])
    made = demoa.rules.Monna(pivot=0) if rule == "monna" else rule
    answer = demoa.aggregate(row, made, f=0)
    np.testing.assert_allclose(answer, row[0], rtol=1e-15)


def test_krum_takes_the_published_number_of_neighbours():
    """n = 25, f = 5: the paper says 18 neighbours."""
    rows = np.random.default_rng(1).standard_normal((25, 3))
    squares = np.sort(reference.distances(rows), axis=1)[:, 1:]
    assert int(np.argmin(squares[:, :18].sum(axis=1))) == chosen_by("krum", _Sample(rows, 5))[0]


def test_bad_options_are_refused():
    for make in (
        lambda: demoa.rules.CenteredClip(tau=0.0),
        lambda: demoa.rules.CenteredClip(steps=0),
        lambda: demoa.rules.GeometricMedian(nu=-1.0),
        lambda: demoa.rules.GeometricMedian(tol=0.0),
        lambda: demoa.rules.MultiKrum(count=0),
        lambda: demoa.rules.Monna(pivot=-1),
        lambda: demoa.rules.DivideAndConquer(factor=0.5),
        lambda: demoa.rules.CenteredClip(tau=np.inf),
        lambda: demoa.rules.GeometricMedian(steps=2.5),
        lambda: demoa.rules.MultiKrum(count=2.5),
    ):
        with pytest.raises(demoa.ConfigError, match="must be"):
            make()


def test_options_that_do_not_fit_the_rows_are_refused():
    rows = np.eye(5)
    with pytest.raises(demoa.ConfigError, match="starts from no centre"):
        demoa.aggregate(rows, "krum", f=1, centre=rows[0])
    with pytest.raises(demoa.ConfigError, match="below the 5 rows"):
        demoa.aggregate(rows, demoa.rules.Monna(pivot=5), f=1)
    with pytest.raises(demoa.ConfigError, match="use caf"):
        demoa.aggregate(np.eye(40), "smea", f=19)


class _Sample:
    def __init__(self, rows, f):
        self.rows, self.f, self.exact = rows, f, rows
        self.radius = float(np.linalg.norm(rows, axis=1).max())
