"""Whole runs against naive implementations that hold (n, d) arrays and follow the paper line by line."""

import numpy as np
import pytest

import demoa
from demoa.core.seeding import generator
from tests import reference

N, F, D, ROUNDS = 13, 2, 23, 500


class Schedule:
    """Random alpha_t, p_t, sampled sets and vectors, Byzantine ones among them, the same for both sides."""

    def __init__(self, seed, rounds=ROUNDS, lies=3.0):
        random = np.random.default_rng(seed)
        self.alpha = random.uniform(0.05, 1.0, rounds)
        self.p = random.uniform(0.05, 1.0, rounds)
        self.asked = [np.flatnonzero(random.random(N) < p) for p in self.p]
        self.lr = random.uniform(0.005, 0.02, rounds)
        self.random = random
        self.lies = lies
        self.alpha[0] = self.p[0] = 1.0
        self.asked[0] = np.arange(N)

    def vectors(self, x):
        """Noisy gradients of |x - 1|^2 / 2 plus an offset per client; the first F lie, at any size."""
        offsets = np.linspace(-1, 1, N)[:, None]
        vectors = (x - 1.0)[None, :] + offsets + 0.3 * self.random.standard_normal((N, D))
        vectors[:F] = -vectors[:F] * 10.0 ** self.random.uniform(-3, self.lies)
        return vectors


def combine(rule, rows, previous):
    """The reference rule on rows."""
    f = min(F, (len(rows) - 1) // 2)
    if rule == "krum":
        f = min(F, max(0, (len(rows) - 3) // 2))
        return rows[int(np.argmin(reference.krum_scores(rows, f)))]
    if rule == "median":
        return np.median(rows, axis=0)
    if rule == "trimmed_mean":
        return reference.trimmed_mean(rows, f)
    if rule == "geometric_median":
        return reference.geometric_median(rows)
    return reference.centered_clip(rows, previous)


def bucketed(rows, number, seed):
    order = generator(seed, "mixing", number).permutation(len(rows))
    return np.array([rows[order[start : start + 2]].mean(axis=0) for start in range(0, len(rows), 2)])


def naive_demoa(rule, schedule, lr, mixing):
    """Algorithm 1 of the paper, line by line."""
    x, m, previous = np.zeros(D), np.zeros((N, D)), np.zeros(D)
    for t, (alpha, p, asked) in enumerate(zip(schedule.alpha, schedule.p, schedule.asked, strict=True), start=1):
        gradients = schedule.vectors(x)
        for i in range(N):
            m[i] = (1 - alpha * p) * m[i]
            if i in asked:
                m[i] += alpha * gradients[i]
        previous = combine(rule, bucketed(m, t, 7) if mixing else m, previous)
        x = x - lr * previous
        yield x


@pytest.mark.parametrize("mixing", [(), ("bucketing",)])
@pytest.mark.parametrize("rule", ["krum", "median", "trimmed_mean", "geometric_median", "centered_clip"])
def test_demoa_follows_algorithm_1(rule, mixing):
    server = demoa.Server(np.zeros(D), N, f=F, rule=rule, mixing=mixing, lr=0.1, seed=7)
    ours, theirs = Schedule(0), Schedule(0)
    for t, expected in enumerate(naive_demoa(rule, theirs, 0.1, mixing)):
        vectors = ours.vectors(server.parameters)
        server.begin_round(ours.asked[t].tolist(), alpha=ours.alpha[t], p=ours.p[t])
        for i in ours.asked[t]:
            server.submit(int(i), vectors[i])
        found = server.end_round().parameters
        assert np.linalg.norm(found - expected) <= 1e-10 * max(1.0, np.linalg.norm(expected)), f"round {t + 1}"


def naive(name, rule, schedule):
    """The other algorithms, on (n, d) arrays; lr changes from round to round."""
    x, m, g, previous, last_step = np.zeros(D), np.zeros((N, D)), np.zeros(D), np.zeros(D), 0.0
    for t, (alpha, asked, lr) in enumerate(zip(schedule.alpha, schedule.asked, schedule.lr, strict=True)):
        vectors = schedule.vectors(x)
        for i in asked:
            if name in ("fedavg", "fedavg_momentum", "mifa"):
                m[i] = vectors[i]
            elif name == "fedcm_heavy_ball":
                m[i] = 0.9 * m[i] + vectors[i]
            else:
                m[i] = (1 - alpha) * m[i] + alpha * vectors[i]
        if name in ("hold", "mifa"):
            previous = combine(rule, m, previous)
            x = x - lr * previous
        elif len(asked) and name.startswith("marina"):
            differences = m[asked] - g
            if t > 0:
                size = {"absolute": 1.0, "aggregate": np.linalg.norm(g), "step": last_step}
                differences = reference.clip(differences, 2.0 * size[name.split()[1]])
            previous = combine(rule, differences, previous)
            g = g + previous
            last_step = np.linalg.norm(lr * g)
            x = x - lr * g
        elif len(asked):
            previous = combine(rule, m[asked], previous)
            g = 0.9 * g + 0.1 * previous if name == "fedavg_momentum" else previous
            x = x - lr * g
        yield x


ALGORITHMS = {
    "fedavg": demoa.algorithms.FedAvg(),
    "fedavg_momentum": demoa.algorithms.FedAvg(server_momentum=0.9),
    "fedcm": demoa.algorithms.FedCM(),
    "fedcm_heavy_ball": demoa.algorithms.FedCM(beta=0.9),
    "hold": demoa.algorithms.Hold(),
    "mifa": demoa.algorithms.Mifa(),
    "marina absolute": demoa.algorithms.MarinaPP(radius=2.0),
    "marina aggregate": demoa.algorithms.MarinaPP(radius=2.0, clip="aggregate"),
    "marina step": demoa.algorithms.MarinaPP(radius=2.0, clip="step"),
}


@pytest.mark.parametrize("rule", ["median", "geometric_median", "centered_clip"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_other_algorithms_follow_their_definitions(name, rule):
    server = demoa.Server(np.zeros(D), N, f=F, rule=rule, algorithm=ALGORITHMS[name], lr=0.01)
    # Milder lies: those that a majority round lets through make x grow, and with it every difference.
    ours, theirs = Schedule(1, lies=1.0), Schedule(1, lies=1.0)
    given = "alpha" in server.algorithm.takes
    for t, expected in enumerate(naive(name, rule, theirs)):
        vectors = ours.vectors(server.parameters)
        server.begin_round(ours.asked[t].tolist(), alpha=ours.alpha[t] if given else None, lr=ours.lr[t])
        for i in ours.asked[t]:
            server.submit(int(i), vectors[i])
        found = server.end_round().parameters
        assert np.linalg.norm(found - expected) <= 1e-10 * max(1.0, np.linalg.norm(expected)), f"round {t + 1}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("algorithm", ["demoa", "hold", "fedcm", "marina_pp"])
def test_momentum_on_the_server_and_on_the_clients_agree_to_the_last_bit(algorithm, dtype):
    ours, theirs = Schedule(2), Schedule(2)
    servers = [
        demoa.Server(np.zeros(D, dtype), N, f=F, rule="cclip", algorithm=algorithm, momentum=where)
        for where in ("server", "client")
    ]
    kept = {client: np.zeros(D, dtype) for client in range(N)}
    for t in range(200):
        vectors = ours.vectors(servers[0].parameters.astype(np.float64)).astype(dtype)
        np.testing.assert_array_equal(vectors, theirs.vectors(servers[1].parameters.astype(np.float64)).astype(dtype))
        asked = ours.asked[t].tolist()
        options = {"alpha": ours.alpha[t], "p": ours.p[t] if algorithm == "demoa" else None}
        task = [server.begin_round(asked, **options) for server in servers][1]
        for client in asked:
            servers[0].submit(client, vectors[client])
            kept[client] = demoa.client_momentum(kept[client], vectors[client], keep=task.keep[client], gain=task.gain)
            servers[1].submit(client, kept[client])
        one, other = (server.end_round().parameters for server in servers)
        np.testing.assert_array_equal(one, other)


def test_rows_decay_while_clients_are_away():
    server = demoa.Server(np.zeros(3), 5, f=1, rule="median", algorithm=demoa.algorithms.Demoa(alpha=0.5, p=0.4))
    server.begin_round()
    for client in range(5):
        server.submit(client, np.full(3, client + 1.0))
    server.end_round()
    for _ in range(3):
        server.begin_round([])
        server.end_round()
    for client in range(5):
        np.testing.assert_allclose(server.momentum_of(client), (client + 1.0) * 0.8**3, rtol=1e-15)


def test_each_client_may_have_its_own_probability():
    server = demoa.Server(np.zeros(1), 3, f=1, rule="median", algorithm=demoa.algorithms.Demoa(alpha=0.5))
    server.begin_round()
    for client in range(3):
        server.submit(client, np.ones(1))
    server.end_round()
    server.begin_round([1], p=np.array([0.2, 0.5, 1.0]))
    server.submit(1, np.ones(1))
    server.end_round()
    found = [float(server.momentum_of(client)[0]) for client in range(3)]
    np.testing.assert_allclose(found, [0.9, 0.75 + 0.5, 0.5], rtol=1e-15)


def test_a_row_that_decayed_to_nothing_comes_back():
    server = demoa.Server(np.zeros(2), 3, f=1, rule="cclip", algorithm=demoa.algorithms.Demoa(alpha=0.9, p=0.9))
    server.begin_round()
    for client in range(3):
        server.submit(client, np.ones(2))
    server.end_round()
    for _ in range(1000):
        server.begin_round([0])
        server.submit(0, np.ones(2))
        report = server.end_round()
    assert np.isfinite(report.parameters).all()
    assert server.momentum_of(1).tolist() == [0.0, 0.0]
    server.begin_round([1])
    server.submit(1, np.ones(2))
    server.end_round()
    assert server.momentum_of(1).tolist() == [0.9, 0.9]
