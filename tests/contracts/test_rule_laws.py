"""Laws that rules share, over all of them: who has which is written down once, here."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import demoa
from demoa.aggregation.aggregator import Aggregator
from tests.strategies import samples

RULES = {name: (demoa.rules.Monna(pivot=0) if name == "monna" else name) for name in sorted(demoa.rules.RULES)}
MIXINGS = [(), ("nnm",), ("arc",), ("nnm", "arc")]

# Centered clipping has a radius, the geometric median a smoothing length, and both start from zero.
FREE = sorted(set(RULES) - {"centered_clip", "geometric_median"})


def tolerated(rule, sample, mixing=()):
    """Return the sample's f, or the most that the rule takes of so many rows."""
    return min(sample.f, Aggregator(rule, f=0, mixing=mixing).tolerance(len(sample.rows)))


def assert_same(one, other, sample):
    """Equal up to the rounding of sums in another order: far below the resolution that `test_rules` derives."""
    assert np.linalg.norm(one - other) <= 1e-8 * sample.radius


def plain(**options):
    """Samples without copies: a choice between equal scores may depend on the order of the rows."""
    return samples(plain=True, dtypes=(np.float64,), most_rows=9, **options)


# Behind nearest-neighbour mixing, rows of one neighbourhood are equal, and rules that choose rows meet scores
# that are equal by construction: which one they take depends on the order. So does Bulyan, whose last Krum
# choices have one neighbour each: the two rows of the closest pair then have the same score.
ORDERED = [(name, ()) for name in RULES if name != "bulyan"] + [
    (name, mixing)
    for name in ("mean", "centered_clip", "geometric_median", "median", "trimmed_mean")
    for mixing in MIXINGS[1:]
]


@pytest.mark.parametrize(("name", "mixing"), ORDERED)
@given(data=st.data())
def test_the_order_of_clients_does_not_matter(name, mixing, data):
    sample = data.draw(plain())
    f = tolerated(RULES[name], sample, mixing)
    if "krum" in name:
        f = min(f, len(sample.rows) - 4)  # two neighbours or more, for the same reason
    assume(f >= 0)
    order = np.array(data.draw(st.permutations(range(len(sample.rows)))))
    rule = demoa.rules.Monna(pivot=int(np.flatnonzero(order == 0)[0])) if name == "monna" else RULES[name]
    straight = demoa.aggregate(sample.rows, RULES[name], f=f, mixing=mixing)
    assert_same(demoa.aggregate(sample.rows[order], rule, f=f, mixing=mixing), straight, sample)


@pytest.mark.parametrize("name", FREE)
@given(sample=plain(), shift=st.floats(-5, 5))
def test_translation(name, sample, shift):
    f = tolerated(RULES[name], sample)
    offset = shift * sample.rows[0]
    moved = demoa.aggregate(sample.rows + offset, RULES[name], f=f)
    assert_same(moved, demoa.aggregate(sample.rows, RULES[name], f=f) + offset, sample)


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("name", FREE)
@given(sample=plain(), factor=st.sampled_from([2.0**-20, 0.5, 8.0, 2.0**30]))
def test_positive_scaling(name, mixing, sample, factor):
    f = tolerated(RULES[name], sample, mixing)
    scaled = demoa.aggregate(sample.rows * factor, RULES[name], f=f, mixing=mixing)
    assert_same(scaled / factor, demoa.aggregate(sample.rows, RULES[name], f=f, mixing=mixing), sample)


@pytest.mark.parametrize(
    ("name", "mixing"),
    [(n, m) for n in RULES for m in [*MIXINGS, ("bucketing",)] if (n, m) != ("monna", ("bucketing",))],
)
@given(row=st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=5), n=st.integers(3, 9))
def test_equal_rows_are_their_own_aggregate(name, mixing, row, n):
    """Centered clipping takes up to three steps of ten to get there from zero: give it a long radius."""
    rows = np.tile(np.array(row), (n, 1))
    rule = demoa.rules.CenteredClip(tau=1e3) if name == "centered_clip" else RULES[name]
    f = Aggregator(rule, f=0, mixing=mixing).tolerance(n)
    np.testing.assert_allclose(demoa.aggregate(rows, rule, f=f, mixing=mixing), row, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_inputs_are_not_changed_and_not_shared(name):
    rows = np.random.default_rng(0).standard_normal((7, 4))
    before = rows.copy()
    answer = demoa.aggregate(rows, RULES[name], f=0)
    assert not np.shares_memory(answer, rows)
    answer[:] = 0
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("name", RULES)
def test_the_fault_bound_is_required_and_never_clamped(name):
    rows = np.random.default_rng(0).standard_normal((7, 4))
    most = Aggregator(RULES[name], f=0).tolerance(7)
    demoa.aggregate(rows, RULES[name], f=most)
    for f in (most + 1, 7, -1):
        with pytest.raises(demoa.ToleranceError, match=f"got f = {f}"):
            demoa.aggregate(rows, RULES[name], f=f)
    with pytest.raises(TypeError, match="f"):
        demoa.aggregate(rows, RULES[name])


# DnC takes one look: a huge lie hides smaller ones, as its docstring says.
PROTECTED = sorted(set(RULES) - {"mean", "dnc"})


@pytest.mark.parametrize("name", PROTECTED)
@given(sample=plain(), sizes=st.lists(st.sampled_from([1.0, 1e2, 1e5, 1e8]), min_size=4, max_size=4))
def test_faulty_rows_cannot_drag_the_answer_away(name, sample, sizes):
    """However far f rows go, together or apart, the answer stays within a constant of the honest ones."""
    rule = RULES[name]
    f = tolerated(rule, sample)
    assume(f >= 1)
    honest = sample.rows[:-f]
    attacked = sample.rows.copy()
    for row, size in zip(range(1, f + 1), sizes, strict=False):
        attacked[-row] = size * sample.radius * np.sign(sample.rows[0] + 1e-300)
    # Eight Weiszfeld steps from zero, the published default, do not reach the median of a far attack.
    rule = demoa.rules.GeometricMedian(nu=1e-12, tol=1e-9) if name == "geometric_median" else rule
    away = np.linalg.norm(demoa.aggregate(attacked, rule, f=f) - honest.mean(axis=0))
    spread = np.linalg.norm(honest - honest.mean(axis=0), axis=1).max()
    reach = 30.0 if name == "centered_clip" else 0.0  # three steps of at most tau
    factor = 2 * len(sample.rows) * np.sqrt(sample.rows.shape[1])
    assert away <= factor * spread + reach + np.linalg.norm(honest.mean(axis=0)) * (name == "centered_clip")
