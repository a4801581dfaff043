from itertools import product

import pytest

import demoa
from demoa.metrics import majority_probability, majority_probability_in_run


@pytest.mark.parametrize(("n", "byzantine", "p"), [(6, 2, 0.3), (7, 3, 0.5), (5, 0, 0.5), (5, 5, 0.9), (1, 1, 1.0)])
def test_it_is_the_sum_over_all_rounds(n, byzantine, p):
    total = 0.0
    for coins in product([0, 1], repeat=n):
        liars, honest = sum(coins[:byzantine]), sum(coins[byzantine:])
        if liars > honest:
            total += p ** sum(coins) * (1 - p) ** (n - sum(coins))
    assert majority_probability(n, byzantine, p) == pytest.approx(total)


def test_the_papers_setting():
    """n = 25, f = 5: rare at p = 0.5, common at p = 0.1."""
    assert majority_probability(25, 5, 0.5) == pytest.approx(0.000455, abs=1e-6)
    assert majority_probability_in_run(25, 5, 0.5, 300) == pytest.approx(0.128, abs=1e-3)
    assert majority_probability(25, 5, 0.1) * 300 == pytest.approx(23.2, abs=1.0)


def test_bad_numbers_are_refused():
    for bad in ((0, 0, 0.1), (5, 6, 0.1), (5, 1, 0.0), (5, 1, 1.5), (5.5, 1, 0.1)):
        with pytest.raises(demoa.ConfigError, match="must be"):
            majority_probability(*bad)
