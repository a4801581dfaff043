"""The paper's Definition of a (delta, c)-robust aggregator, checked on adversarial rows.

    |Agg(x) - mean of honest|^2 <= c delta rho^2,    rho^2 = mean squared distance between two honest rows

holds in expectation over the shuffle, for CM, Krum and RFA behind bucketing with s = floor(1/2 / delta)
(Karimireddy, He, Jaggi 2022; Gorbunov et al. 2023, appendix D: c = O(1) for Krum and RFA, O(d) for CM). The
bounds there are up to constants, so c is measured: the largest ratio over the attacks below, at the
paper's n = 25, f = 5, s = 2, was 0.94 (CM), 1.91 (Krum) and 0.69 (RFA) on round clouds
of honest rows, and 1.15, 2.56 and 1.10 on stretched ones. The limits below
were set after that measurement: they guard against change, they are not derived.
"""

import numpy as np
import pytest

import demoa

N, F, D = 25, 5, 20
MOST = {"cm": 2.0, "krum": 4.0, "rfa": 1.5}


def attacks(honest, random):
    """Yield what f colluding clients may send, from faults to tuned lies."""
    mean, spread = honest.mean(axis=0), honest.std(axis=0)
    yield "far", np.full((F, D), 1e6)
    yield "zero", np.zeros((F, D))
    yield "flipped", np.tile(-mean, (F, 1))
    yield "noise", 10 * random.standard_normal((F, D))
    yield "copies of one honest row", np.tile(honest[0], (F, 1))
    for z in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0):
        yield f"little is enough, z = {z}", np.tile(mean - z * spread, (F, 1))
        yield f"inner product, {z}", np.tile(-z * mean, (F, 1))
        direction = np.linalg.svd(honest - mean)[2][0]
        yield f"along the main direction, {z}", np.tile(mean + z * np.sqrt(D) * direction, (F, 1))


def worst_ratio(rule, stretch=1.0, seeds=range(6), shuffles=12):
    """Return the largest |Agg - mean|^2 / (delta rho^2), a mean over shuffles, and which attack gave it."""
    worst = (0.0, "")
    for seed in seeds:
        random = np.random.default_rng(seed)
        honest = random.standard_normal((N - F, D)) + 3 * random.standard_normal(D)
        honest[:, 0] *= stretch  # honest rows that disagree mostly in one direction
        honest[: (N - F) // 4, 1] += stretch  # and a group of clients with data of its own
        differences = honest[:, None] - honest[None, :]
        rho = (differences**2).sum() / ((N - F) * (N - F - 1))
        for name, lies in attacks(honest, random):
            rows = np.vstack([honest, lies])
            errors = [
                ((demoa.aggregate(rows, rule, f=F, mixing="bucketing", seed=s) - honest.mean(axis=0)) ** 2).sum()
                for s in range(shuffles)
            ]
            worst = max(worst, (float(np.mean(errors)) / (F / N * rho), name))
    return worst


RULES = {"cm": "median", "krum": "krum", "rfa": demoa.rules.GeometricMedian(nu=1e-6, tol=1e-8)}


@pytest.mark.parametrize("stretch", [1.0, 30.0], ids=["round", "stretched"])
@pytest.mark.parametrize("name", RULES)
def test_bucketed_rules_meet_the_definition(name, stretch):
    ratio, attack = worst_ratio(RULES[name], stretch)
    assert 0 < ratio <= MOST[name], f"c = {ratio:.2f} under {attack}"


def test_the_mean_does_not_meet_it():
    """The check can fail: the same attacks drive a rule without protection past any bound."""

    class Unprotected(demoa.rules.Mean):
        def tolerance(self, rows):
            return rows

    ratio, attack = worst_ratio(Unprotected())
    assert ratio > 1e6
    assert attack == "far"
