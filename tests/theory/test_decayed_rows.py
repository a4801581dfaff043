"""What decay does to rules that choose among rows, where every client's gradient g is known and stays the same.

A row is then m = c g, with c' = (1 - a p) c + a r and r = 1 if the client takes part. In the long run

    E c = 1        Var c = a (1 - p) / (2 - a p)

so honest rows differ in length although clients do not: by 65 % at a = 0.9 and p = 0.1, by 21 % at a = 0.1. Where
gradients are mostly noise, rows are close to each other if they are short, so a rule that chooses the row with the
closest neighbours chooses one that was sent long ago.
"""

import numpy as np
import pytest

import demoa

P = 0.1
AWAY = (1 - P) / P
"""How many rounds ago a client answered, on average."""


def played(server, noise, rounds, warm_up):
    """Yield the report of each round after a warm-up; all clients find (1, ..., 1) and noise."""
    random = np.random.default_rng(7)
    for number in range(rounds):
        asked = np.flatnonzero(random.random(len(server.clients)) < P)
        task = server.begin_round(asked) if number else server.begin_round()
        for client in task.asked:
            server.submit(client, 1 + noise * random.standard_normal(len(server.parameters)), round=task.number)
        report = server.end_round()
        if number >= warm_up:
            yield report


@pytest.mark.parametrize("alpha", [0.9, 0.1])
def test_rows_of_equal_clients_differ_in_length_as_the_formula_says(alpha):
    server = demoa.Server(np.zeros(1), 2000, f=0, rule="mean", algorithm=demoa.algorithms.Demoa(alpha, P))
    list(played(server, noise=0.0, rounds=400, warm_up=0))
    lengths = np.array([server.momentum_of(client)[0] for client in range(2000)])
    assert lengths.mean() == pytest.approx(1, abs=0.05)
    assert lengths.var() == pytest.approx(alpha * (1 - P) / (2 - alpha * P), rel=0.1)


def chosen(rule, algorithm):
    """How many rounds ago the clients that a rule weighs answered, and how long the step is: means over rounds."""
    server = demoa.Server(np.zeros(16), 25, f=0 if rule == "mean" else 5, rule=rule, algorithm=algorithm)
    found = list(played(server, noise=4.0, rounds=300, warm_up=60))
    ages = [report.weights @ report.staleness / report.weights.sum() for report in found]
    return np.mean(ages), np.mean([report.direction.mean() for report in found])


def test_krum_takes_rows_that_have_decayed_and_the_mean_does_not():
    age, length = chosen("krum", demoa.algorithms.Demoa(0.9, P))
    assert age > 2 * AWAY
    assert length < 0.5
    age, length = chosen("mean", demoa.algorithms.Demoa(0.9, P))
    assert age == pytest.approx(AWAY, rel=0.2)
    assert length == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("algorithm", [demoa.algorithms.Hold(0.9), demoa.algorithms.Demoa(0.1, P)], ids=repr)
def test_rows_that_are_held_or_have_a_long_memory_are_hardly_chosen_for_their_age(algorithm):
    age, length = chosen("krum", algorithm)
    assert age < 1.5 * AWAY
    assert length > 0.6
