"""What DeMoA is over the plain mean: FedAvg with momentum on the server.

Rows that decay are linear in what was sent, so their mean m needs no rows at all:

    m_t = (1 - alpha p) m_{t-1} + alpha / n  sum of g_i over the clients that answered

What rows add to that is a rule that sees who sent what.
"""

import numpy as np

import demoa

ALPHA, P, N, ROUNDS = 0.9, 0.1, 25, 60


def test_over_the_plain_mean_the_step_is_that_of_momentum_on_the_server():
    random = np.random.default_rng(0)
    server = demoa.Server(
        np.zeros(5), N, f=0, rule="mean", algorithm=demoa.algorithms.Demoa(alpha=ALPHA, p=P, full_first_round=False)
    )
    momentum = np.zeros(5)
    for _ in range(ROUNDS):
        sampled = np.flatnonzero(random.random(N) < P)
        sent = random.standard_normal((len(sampled), 5))
        server.begin_round(sampled.tolist())
        for client, vector in zip(sampled.tolist(), sent, strict=True):
            server.submit(client, vector)
        momentum = (1 - ALPHA * P) * momentum + ALPHA / N * sent.sum(axis=0)
        np.testing.assert_allclose(server.end_round().direction, momentum, rtol=0, atol=1e-13)


def test_over_another_rule_it_is_not():
    """The median of rows is not linear in what was sent."""
    random = np.random.default_rng(0)
    algorithm = demoa.algorithms.Demoa(alpha=ALPHA, p=P, full_first_round=False)
    servers = [demoa.Server(np.zeros(5), N, f=0, rule=rule, algorithm=algorithm) for rule in ("mean", "median")]
    sent = random.standard_normal((N, 5))
    directions = []
    for server in servers:
        server.begin_round(range(N))
        for client in range(N):
            server.submit(client, sent[client])
        directions.append(server.end_round().direction)
    assert np.abs(directions[0] - directions[1]).max() > 0.01
