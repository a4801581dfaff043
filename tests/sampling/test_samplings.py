import numpy as np
import pytest

import demoa
from demoa.core.seeding import generator
from demoa.sampling import Bernoulli, Cyclic, FixedSize, PerClient, Trace


def rounds(sampling, n, count=4000):
    return [sampling.clients(t, n, generator(0, "sampling", t)) for t in range(1, count + 1)]


def share(found, n):
    return np.bincount([client for clients in found for client in clients], minlength=n) / len(found)


def test_bernoulli_takes_each_client_with_probability_p():
    found = rounds(Bernoulli(p=0.3), 10)
    np.testing.assert_allclose(share(found, 10), 0.3, atol=4 * np.sqrt(0.21 / 4000))
    sizes = np.array([len(clients) for clients in found])
    assert sizes.var() == pytest.approx(10 * 0.21, rel=0.15)


def test_bernoulli_may_change_with_the_round():
    sampling = Bernoulli(p=(1.0, 0.5, 0.1))
    assert [sampling.probability(t, 5) for t in (1, 2, 3, 9)] == [1.0, 0.5, 0.1, 0.1]
    assert sampling.clients(1, 5, generator(0)) == [0, 1, 2, 3, 4]


def test_per_client():
    p = (0.1, 0.5, 0.9)
    np.testing.assert_allclose(share(rounds(PerClient(p=p), 3), 3), p, atol=0.04)
    with pytest.raises(demoa.ConfigError, match="must name all 4 clients, got 3"):
        PerClient(p=p).clients(1, 4, generator(0))


def test_fixed_size():
    found = rounds(FixedSize(size=3), 10, 2000)
    assert all(len(set(clients)) == 3 for clients in found)
    np.testing.assert_allclose(share(found, 10), 0.3, atol=0.05)
    assert FixedSize(size=3).probability(1, 10) == 0.3


def test_cyclic_asks_everyone_in_turn():
    found = rounds(Cyclic(size=2), 6, 3)
    assert found == [[0, 1], [2, 3], [4, 5]]


def test_trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("round,client\n1,0\n1,2\n3,1\n4,0\n")
    sampling = Trace(path=str(path))
    assert rounds(sampling, 3, 5) == [[0, 2], [], [1], [0], []]
    np.testing.assert_allclose(sampling.probability(1, 3), [0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("round,client\n1,a\n", "line 2: expected whole numbers"),
        ("when,who\n1,0\n", "line 2: expected whole numbers"),
        ("round,client\n", "at least one line"),
        ("round,client\n0,1\n", "rounds count from 1"),
        ("round,client\n1,7\n", "names client 7; clients count from 0 to 2"),
    ],
)
def test_bad_traces_are_refused(tmp_path, content, message):
    path = tmp_path / "trace.csv"
    path.write_text(content)
    with pytest.raises(demoa.ConfigError, match=message):
        Trace(path=str(path)).clients(1, 3, generator(0))


def test_a_missing_trace_is_refused(tmp_path):
    with pytest.raises(demoa.ConfigError, match="cannot read"):
        Trace(path=str(tmp_path / "none.csv")).clients(1, 3, generator(0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bernoulli(p=0.0),
        lambda: Bernoulli(p=(0.5, 1.5)),
        lambda: PerClient(),
        lambda: FixedSize(size=0),
        lambda: Cyclic(size=0),
    ],
)
def test_bad_options_are_refused(make):
    with pytest.raises(demoa.ConfigError, match="must be"):
        make()


@pytest.mark.parametrize("make", [FixedSize, Cyclic])
def test_more_clients_than_there_are_is_refused(make):
    with pytest.raises(demoa.ConfigError, match="at most the 3 clients, got 5"):
        make(size=5).clients(1, 3, generator(0))
