"""What the paper says of decay and hold, computed exactly over the coin flip and by formula.

With r = 1 if the client takes part (probability p) and a gradient g = grad + noise, noise of variance s^2:

    decay   m' = (1 - a p) m + a r g          Var = a^2 p (1 - p) |grad|^2     + a^2 p s^2
    hold    v' = (1 - a r) v + a r g          Var = a^2 p (1 - p) |grad - v|^2 + a^2 p s^2

The paper gives |v|^2 + |grad|^2 in place of |grad - v|^2: its cross term is missing. So hold has the smaller
variance whenever v is closer to the gradient than zero is, which is what momentum is for.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import demoa


def moments(update, state, gradient, noises, p):
    """Mean and variance of update(state, r, g) over the coin flip r and the noises, exactly."""
    values = [update(state, r, gradient + noise) for r in (0, 1) for noise in noises]
    weights = np.repeat([1 - p, p], len(noises)) / len(noises)
    mean = weights @ np.array(values)
    return mean, float(weights @ ((np.array(values) - mean) ** 2).sum(axis=1))


@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.integers(0, 10**6))
def test_both_designs_have_the_mean_of_momentum_and_these_variances(alpha, p, seed):
    random = np.random.default_rng(seed)
    state, gradient = random.standard_normal((2, 4))
    noise = random.standard_normal((3, 4))
    noises = np.vstack([noise, -noise])  # unbiased
    sigma = float((noises**2).sum(axis=1).mean())
    decay = moments(lambda m, r, g: (1 - alpha * p) * m + alpha * r * g, state, gradient, noises, p)
    hold = moments(lambda v, r, g: (1 - alpha * r) * v + alpha * r * g, state, gradient, noises, p)
    mean = (1 - alpha * p) * state + alpha * p * gradient
    np.testing.assert_allclose(decay[0], mean, atol=1e-12)
    np.testing.assert_allclose(hold[0], mean, atol=1e-12)
    coin = alpha**2 * p * (1 - p)
    np.testing.assert_allclose(decay[1], coin * (gradient @ gradient) + alpha**2 * p * sigma, rtol=1e-9)
    away = gradient - state
    np.testing.assert_allclose(hold[1], coin * (away @ away) + alpha**2 * p * sigma, rtol=1e-9)


def test_the_paper_s_variance_of_hold_is_not_an_upper_bound_that_orders_the_designs():
    """At v = grad, hold has no variance from sampling at all, and decay has all of it."""
    gradient = np.ones(3)
    alpha, p = 0.9, 0.1
    decay = moments(lambda m, r, g: (1 - alpha * p) * m + alpha * r * g, gradient, gradient, np.zeros((1, 3)), p)
    hold = moments(lambda v, r, g: (1 - alpha * r) * v + alpha * r * g, gradient, gradient, np.zeros((1, 3)), p)
    assert hold[1] == pytest.approx(0.0, abs=1e-15)
    assert decay[1] == pytest.approx(alpha**2 * p * (1 - p) * 3)


def test_demoa_at_alpha_1_is_not_mifa():
    """The paper says that it is. With alpha = 1 the recursion is m <- (1 - p) m + g, not m <- g."""
    found = {}
    for name, algorithm in {"demoa": demoa.algorithms.Demoa(alpha=1.0, p=0.5), "mifa": demoa.algorithms.Mifa()}.items():
        server = demoa.Server(np.zeros(1), 2, f=0, rule="mean", algorithm=algorithm)
        for _ in range(2):
            server.begin_round()
            for client in range(2):
                server.submit(client, np.ones(1))
            server.end_round()
        found[name] = float(server.momentum_of(0)[0])
    assert found == {"demoa": 1.5, "mifa": 1.0}
