"""How likely it is that most of a round's clients lie."""

from __future__ import annotations

from math import comb

from demoa.core.checks import require, share, whole_number


def majority_probability(n: int, byzantine: int, p: float) -> float:
    """Return the probability that strictly more Byzantine than honest clients take part in a Bernoulli(p) round.

    >>> round(majority_probability(25, 5, 0.5), 6)
    0.000455
    """
    n = whole_number("n", n, least=1)
    byzantine = whole_number("byzantine", byzantine, least=0)
    require(byzantine <= n, "byzantine", byzantine, f"at most n = {n}")
    p = share("p", p)

    def binomial(trials: int, hits: int) -> float:
        return comb(trials, hits) * p**hits * (1 - p) ** (trials - hits)

    honest = n - byzantine

    def fewer_honest(liars: int) -> float:
        return sum(binomial(honest, others) for others in range(min(liars, honest + 1)))

    return sum(binomial(byzantine, liars) * fewer_honest(liars) for liars in range(1, byzantine + 1))


def majority_probability_in_run(n: int, byzantine: int, p: float, rounds: int) -> float:
    """Return the probability of at least one such round in a run.

    >>> round(majority_probability_in_run(25, 5, 0.5, 300), 3)
    0.128
    """
    rounds = whole_number("rounds", rounds, least=1)
    return 1.0 - (1.0 - majority_probability(n, byzantine, p)) ** rounds
