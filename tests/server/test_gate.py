"""What the gate refuses, and that a refusal changes nothing else."""

import numpy as np
import pytest
import torch

import demoa

D = 4


@pytest.fixture
def server():
    made = demoa.Server(np.zeros(D, np.float32), ["a", "b", "c"], f=1, rule="median", norm_limit=100.0)
    made.begin_round()
    for name in made.clients:
        made.submit(name, np.ones(D, np.float32))
    made.end_round()
    made.begin_round(["a", "b"])
    return made


def good():
    return np.full(D, 2.0, np.float32)


class Impostor:
    """Says that it is a vector of the right kind, and is not."""

    shape, dtype = (D,), np.dtype(np.float32)

    def __array__(self, dtype=None, copy=None):
        return np.ones(1, np.float32)


REFUSED = {
    "shape": ("a", np.ones(D + 1, np.float32), None),
    "shape, transposed": ("a", np.ones((1, D), np.float32), None),
    "shape, no dimension": ("a", np.array(1.0, np.float32), None),
    "dtype": ("a", np.ones(D), None),
    "dtype, integers": ("a", np.ones(D, np.int32), None),
    "dtype, half": ("a", np.ones(D, np.float16), None),
    "dtype, big-endian": ("a", np.ones(D, ">f4"), None),
    "kind, list": ("a", [1.0] * D, None),
    "kind, None": ("a", None, None),
    "kind, text": ("a", "1 1 1 1", None),
    "kind, scalar": ("a", np.float32(1.0), None),
    "kind, masked": ("a", np.ma.masked_array(np.ones(D, np.float32), [True] * D), None),
    "kind, sparse": ("a", torch.ones(D).to_sparse(), None),
    "kind, without memory": ("a", torch.ones(D, device="meta"), None),
    "kind, impostor": ("a", Impostor(), None),
    "dtype, bfloat16": ("a", torch.ones(D, dtype=torch.bfloat16), None),
    "not_finite, NaN": ("a", np.array([1, np.nan, 1, 1], np.float32), None),
    "not_finite, Inf": ("a", np.array([1, 1, 1, -np.inf], np.float32), None),
    "norm, above the limit": ("a", np.full(D, 50.1, np.float32), None),
    "norm, huge": ("a", np.full(D, 3e38, np.float32), None),
    "unknown_client": ("mallory", good(), None),
    "unknown_client, other type": (0, good(), None),
    "unknown_client, unhashable": (["a"], good(), None),
    "unknown_client, a truth": (True, good(), None),
    "not_asked": ("c", good(), None),
    "wrong_round, past": ("a", good(), 1),
    "wrong_round, future": ("a", good(), 3),
    "wrong_round, text": ("a", good(), "2"),
    "wrong_round, several": ("a", good(), np.array([2, 2])),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_updates_are_refused_by_name_and_reason(server, case):
    client, vector, number = REFUSED[case]
    with pytest.raises(demoa.UpdateRejected) as refusal:
        server.submit(client, vector, round=number)
    assert refusal.value.client == client
    assert refusal.value.reason == case.split(",")[0]
    assert repr(client) in str(refusal.value)
    server.submit("b", good(), round=2)
    report = server.end_round()
    assert report.accepted == ("b",)
    assert report.missing == ("a",)
    assert dict(report.rejected) == ({"a": refusal.value.reason} if client == "a" else {})


def test_a_refused_client_counts_as_not_sampled():
    def rows_after(bad):
        server = demoa.Server(np.zeros(D), 3, f=1, rule="cclip")
        server.begin_round()
        for client in range(3):
            server.submit(client, np.full(D, client + 1.0))
        server.end_round()
        server.begin_round([0, 1])
        server.submit(0, np.ones(D))
        if bad:
            with pytest.raises(demoa.UpdateRejected):
                server.submit(1, np.full(D, np.nan))
        return server.end_round().parameters, [server.momentum_of(client) for client in range(3)]

    for one, other in zip(rows_after(bad=True), rows_after(bad=False), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_second_vector_of_a_round_is_refused_and_the_first_stands(server):
    server.submit("a", good())
    with pytest.raises(demoa.UpdateRejected, match="already has its vector") as refusal:
        server.submit("a", 3 * good())
    assert refusal.value.reason == "duplicate"
    report = server.end_round()
    assert report.accepted == ("a",)
    assert not report.rejected


def test_a_client_may_send_again_after_a_refusal(server):
    with pytest.raises(demoa.UpdateRejected):
        server.submit("a", np.ones(1, np.float32))
    server.submit("a", good())
    report = server.end_round()
    assert report.accepted == ("a",)
    assert not report.rejected


def test_late_vectors_are_refused(server):
    server.end_round()
    with pytest.raises(demoa.UpdateRejected, match="no round is open") as refusal:
        server.submit("a", good(), round=2)
    assert refusal.value.reason == "no_open_round"


def test_the_callers_vector_is_neither_kept_nor_changed(server):
    vector = good()
    server.submit("a", vector)
    np.testing.assert_array_equal(vector, good())
    before = server.momentum_of("a")
    vector[:] = 77.0
    np.testing.assert_array_equal(server.momentum_of("a"), before)


def rule_of(name):
    return demoa.rules.Monna(pivot=1) if name == "monna" else name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", sorted(set(demoa.rules.RULES) - {"mean"}))
def test_the_largest_lies_that_pass_the_gate_do_no_harm(rule, dtype):
    """A liar at the limit, round after round, so that its row grows by 1 / p: the rest decide."""
    largest = 0.99 * {"float32": 1e19, "float64": 1e75}[dtype]
    server = demoa.Server(
        np.zeros(D, dtype), 7, f=1, rule=rule_of(rule), algorithm=demoa.algorithms.Demoa(alpha=1.0, p=0.01), lr=1e-3
    )
    lie = np.array([largest, 0, 0, 0], dtype)
    for _ in range(20):
        server.begin_round()
        for client in range(7):
            server.submit(client, lie if client == 0 else np.full(D, 1 + 0.01 * client, dtype))
        report = server.end_round()
    assert np.abs(report.parameters).max() < 1e3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_longer_vector_does_not_pass(dtype):
    server = demoa.Server(np.zeros(D, dtype), 3, f=1, rule="median")
    server.begin_round()
    with pytest.raises(demoa.UpdateRejected, match="the limit is 1e\\+"):
        server.submit(0, np.full(D, {"float32": 1.1e19, "float64": 1.1e75}[dtype], dtype))


def test_views_of_any_layout_are_accepted():
    expected = np.arange(D, dtype=np.float32)
    memory = np.zeros(3 * D, np.float32)
    memory[::3] = expected
    read_only = expected.copy()
    read_only.flags.writeable = False
    for vector in (memory[::3], expected[::-1][::-1], read_only, torch.from_numpy(memory)[::3]):
        server = demoa.Server(np.zeros(D, np.float32), 3, f=1, rule="median")
        server.begin_round()
        server.submit(0, vector)
        server.end_round()
        np.testing.assert_array_equal(server.momentum_of(0), expected)
