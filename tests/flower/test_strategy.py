"""The strategy against clients that crash, lag and lie, on a grid that hands messages straight to functions."""

import json
import threading
import time

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

import demoa
from demoa.core.errors import ConfigError
from demoa.flower import DelayedMomentumStrategy, NobodyAnswers
from demoa.flower.exchange import exchange
from demoa.sampling import Bernoulli, Cyclic
from demoa.server.state import saved_roster

WIDTH = 6


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    """What Flower's runtime tells a ServerApp about itself."""
    monkeypatch.setattr(TaskIdentity, "_run_id", 1)
    monkeypatch.setattr(TaskIdentity, "_node_id", 1)
    monkeypatch.setattr(TaskIdentity, "_task_id", 1)


class Straight(Grid):
    """A grid whose nodes are functions: message -> reply, or None for no answer."""

    def __init__(self, nodes, *, answers_questions=False):
        self.nodes = dict(nodes)
        self.answers_questions = answers_questions
        self.pushed = 0
        self._replies = []

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, *_):
        raise NotImplementedError

    def get_node_ids(self):
        return list(self.nodes)

    def get_nodes(self):
        return [NodeInfo(node_id=node, public_key=f"key of {node % 1000}".encode()) for node in self.nodes]

    def push_messages(self, messages):
        for message in messages:
            self.pushed += 1
            message.metadata.__dict__["_message_id"] = f"message {self.pushed}"
            answer = self.answer(message)
            if answer is not None:
                self._replies.append(answer)
        return [message.metadata.message_id for message in messages]

    def answer(self, message):
        if message.metadata.message_type == "query" and not self.answers_questions:
            return Message(Error(code=2, reason="no such function"), reply_to=message)
        return self.nodes[message.metadata.dst_node_id](message)

    def pull_messages(self, message_ids):
        wanted = set(message_ids)
        ready = [reply for reply in self._replies if reply.metadata.reply_to_message_id in wanted]
        self._replies = [reply for reply in self._replies if reply not in ready]
        return ready

    def send_and_receive(self, messages, *, timeout=None):
        return exchange(self, messages, timeout=timeout or 1, poll=0.01)


def reply_with(message, vector, **arrays):
    content = {"arrays": ArrayRecord(arrays or {"x": Array(np.asarray(vector, np.float32))})}
    return Message(RecordDict(content), reply_to=message)


def honest(seed):
    """A client whose gradient pulls towards a point of its own."""
    goal = np.random.default_rng(seed).normal(1.0, 0.1, WIDTH)

    def answer(message):
        x = message.content["arrays"]["x"].numpy()
        return reply_with(message, x - goal)

    return answer


def start(strategy, grid, rounds, **options):
    return strategy.start(
        grid, ArrayRecord({"x": Array(np.zeros(WIDTH, np.float32))}), num_rounds=rounds, timeout=0.2, **options
    )


def made(**options):
    settings = {"f": 2, "clients": 8, "rule": "median", "lr": 0.5, "sampling": Bernoulli(0.6), "poll": 0.01}
    return DelayedMomentumStrategy(**(settings | options))


def eight(**others):
    return {node: others.get(f"node{node}", honest(node)) for node in range(8)}


def final(strategy):
    return np.array(strategy.server.parameters)


def test_training_goes_where_the_clients_pull():
    strategy = made()
    result = start(strategy, Straight(eight()), 60)
    np.testing.assert_allclose(final(strategy), 1.0, atol=0.15)
    np.testing.assert_array_equal(result.arrays["x"].numpy(), final(strategy))
    assert len(result.train_metrics_clientapp) == 60


def wrong(kind):
    def answer(message):
        if kind == "nan":
            return reply_with(message, np.full(WIDTH, np.nan))
        if kind == "shape":
            return reply_with(message, np.zeros(WIDTH + 1))
        if kind == "names":
            return reply_with(message, None, y=Array(np.zeros(WIDTH, np.float32)))
        if kind == "dtype":
            return reply_with(message, None, x=Array(np.zeros(WIDTH)))
        if kind == "no_arrays":
            return Message(RecordDict({"metrics": MetricRecord({"loss": 1.0})}), reply_to=message)
        if kind == "round":
            reply = reply_with(message, np.ones(WIDTH))
            reply.content["metrics"] = MetricRecord({"server-round": 1000})
            return reply
        if kind == "norm":
            return reply_with(message, np.full(WIDTH, 1e6))
        return Message(Error(code=2, reason="it raised\nall over"), reply_to=message)

    return answer


REASONS = {"nan": "not_finite", "shape": "shape", "names": "names", "dtype": "dtype"}
KINDS = [*REASONS, "no_arrays", "round", "norm", "error"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_reply_counts_as_none_and_ends_nothing(kind, tmp_path):
    strategy = made(norm_limit=1e3, folder=tmp_path)
    start(strategy, Straight(eight(node3=wrong(kind))), 12)
    absent = made(norm_limit=1e3)
    start(absent, Straight(eight(node3=lambda message: None)), 12)
    np.testing.assert_array_equal(final(strategy), final(absent))
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    refused = {reason for line in lines for reason in line["refused"].values()}
    assert refused == (set() if kind == "error" else {REASONS.get(kind, kind)})
    worst = strategy.audit.table()[0]
    assert (worst["suspicion"] == 1.0) == (kind != "error")


def test_an_error_under_the_superlinks_id_is_its_clients():
    """A dead node's error comes back under the SuperLink's own id: it belongs to whoever was asked."""

    def dead(message):
        reply = Message(Error(code=5, reason="node unavailable"), reply_to=message)
        reply.metadata.__dict__["_src_node_id"] = 1
        return reply

    strategy = made()
    start(strategy, Straight(eight(node3=dead)), 5)
    (standing,) = [standing for standing in strategy.audit.standings.values() if standing.answered < standing.asked]
    assert standing.answered == 0


def test_a_client_cannot_write_anothers_row():
    """A reply to a message that was sent to another node is refused."""
    stolen = []

    def victim(message):
        stolen.append(message)

    def thief(message):
        answer = reply_with(stolen[-1] if stolen else message, np.full(WIDTH, -5.0))
        answer.metadata.__dict__["_src_node_id"] = message.metadata.dst_node_id
        return answer

    strategy = made(sampling=Bernoulli(1.0), identity="node")
    start(strategy, Straight(eight(node3=victim, node4=thief)), 4)
    assert not np.any(np.array(strategy.server.momentum_of("3")))
    assert strategy.audit.standings["3"].refused == {"sender": 4}


def test_a_new_run_goes_on_bit_for_bit(tmp_path):
    straight = made()
    start(straight, Straight(eight()), 20)
    for rounds in (1, 7, 8, 20):
        # Nodes have other ids each time, and come in another order; their keys are the same.
        nodes = {1000 * (rounds + 1) + node: answer for node, answer in reversed(eight().items())}
        strategy = made(folder=tmp_path)
        start(strategy, Straight(nodes), rounds)
    np.testing.assert_array_equal(final(strategy), final(straight))
    assert strategy.participation.asked == straight.participation.asked
    assert strategy.audit.table() == straight.audit.table()


def test_rows_may_be_in_files_and_the_table_from_sketches(tmp_path):
    """After a crash the files hold newer rows than the state: what is saved wins, bit for bit."""
    straight = made(rule="krum", sketch=32)
    start(straight, Straight(eight()), 20)
    settings = {
        "rule": "krum",
        "sketch": 32,
        "folder": tmp_path,
        "save_every": 4,
        "store": demoa.stores.Memmap(tmp_path / "rows"),
    }
    with pytest.raises(RuntimeError, match="pulled the plug"):
        start(made(**settings), Straight(eight()), 20, evaluate_fn=plug_pulled_after(10))
    strategy = made(**settings)
    start(strategy, Straight(eight()), 20)
    np.testing.assert_array_equal(final(strategy), final(straight))


def test_only_every_kth_round_is_saved(tmp_path):
    strategy = made(folder=tmp_path, save_every=4)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        start(strategy, Straight(eight()), 20, evaluate_fn=plug_pulled_after(10))
    again = made(folder=tmp_path, save_every=4)
    start(again, Straight(eight()), 20)
    straight = made()
    start(straight, Straight(eight()), 20)
    np.testing.assert_array_equal(final(again), final(straight))
    assert [path.name for path in tmp_path.glob("notes-*")] == ["notes-20.safetensors"]


def plug_pulled_after(rounds):
    def evaluate(number, arrays):
        if number == rounds:
            raise RuntimeError("pulled the plug")

    return evaluate


def test_a_run_that_goes_on_waits_until_its_clients_answer(tmp_path, monkeypatch):
    """A killed server leaves clients behind that wait for the rest of a message: no round is spent on them."""
    monkeypatch.setattr("demoa.flower.roster.ROLL_CALL_SECONDS", 0.1)
    start(made(folder=tmp_path), Straight(eight()), 5)
    questions = []

    class Stuck(Straight):
        def answer(self, message):
            if message.metadata.message_type == "query" and message.metadata.dst_node_id == 3:
                questions.append(message)
                if len(questions) < 4:
                    return None
            return super().answer(message)

    again = made(folder=tmp_path)
    start(again, Stuck(eight()), 20)
    straight = made()
    start(straight, Straight(eight()), 20)
    assert len(questions) == 4
    np.testing.assert_array_equal(final(again), final(straight))


def test_a_run_in_which_nobody_answers_is_no_success(tmp_path):
    silent = {node: lambda message: None for node in range(8)}
    strategy = made(folder=tmp_path, silent_rounds=3)
    with pytest.raises(NobodyAnswers, match="3 rounds in a row brought no valid reply"):
        start(strategy, Straight(silent), 50)
    assert strategy.server.round == 3
    again = made(folder=tmp_path, silent_rounds=3)
    start(again, Straight(eight()), 10)
    assert again.server.round == 10


def test_clients_that_do_not_come_in_time_are_said_in_one_line():
    with pytest.raises(ConfigError, match=r"8 of 9 clients came within 0\.1 s"):
        start(made(clients=9, wait=0.1), Straight(eight()), 1)


def test_a_late_client_joins_only_if_it_may(tmp_path):
    grid = Straight(eight())
    for may_join, count in ((False, 8), (True, 9)):
        strategy = made(folder=tmp_path / str(may_join), may_join=may_join)
        grid.nodes.pop(8, None)
        start(strategy, grid, 3)
        grid.nodes[8] = honest(8)
        start(strategy := made(folder=tmp_path / str(may_join), may_join=may_join), grid, 12)
        assert len(strategy.server.clients) == count
        assert len(saved_roster(tmp_path / str(may_join) / "state.safetensors")) == count
    (line,) = (tmp_path / "True" / "roster.jsonl").read_text().splitlines()
    assert json.loads(line)["round"] == 3
    assert len(json.loads(line)["joined"]) == 1


def test_a_client_that_stays_away_is_forgotten_after_a_while():
    grid = Straight(eight())
    strategy = made(leaves_after=4, identity="node")

    def leave(number, arrays):
        if number == 3:
            del grid.nodes[5]

    start(strategy, grid, 12, evaluate_fn=leave)
    assert "5" not in strategy.server.clients
    assert len(strategy.server.clients) == 7


def test_a_roster_that_the_rule_could_not_stand_stays_as_it_is():
    grid = Straight({node: honest(node) for node in range(5)})
    strategy = made(clients=5, leaves_after=1, identity="node")

    def leave(number, arrays):
        if number == 2:
            del grid.nodes[4]

    start(strategy, grid, 8, evaluate_fn=leave)
    assert len(strategy.server.clients) == 5


def test_participation_is_learned_and_used():
    """A client that answers every other time: with the estimate, its row decays as it should."""
    turns = {"count": 0}

    def flaky(message):
        turns["count"] += 1
        return honest(3)(message) if turns["count"] % 2 else None

    plain, learned = (made(sampling=Cyclic(size=8), estimate_p=use, identity="node") for use in (False, True))
    for strategy in (plain, learned):
        turns["count"] = 0
        start(strategy, Straight(eight(node3=flaky)), 30)
    estimate = learned.participation.estimate(["2", "3"], 1.0)
    assert estimate[0] == 1.0
    assert 0.6 < estimate[1] < 0.65  # (15 + 10) / (30 + 10)
    assert not np.array_equal(final(plain), final(learned))


def test_clients_evaluate_and_a_liars_figure_does_not_count():
    def evaluating(node):
        train = honest(node)

        def answer(message):
            if message.metadata.message_type == "evaluate":
                value = 1e9 if node == 0 else 0.5 + node / 100
                return Message(RecordDict({"metrics": MetricRecord({"accuracy": value})}), reply_to=message)
            return train(message)

        return answer

    result = start(made(evaluate_every=2), Straight({node: evaluating(node) for node in range(8)}), 4)
    assert sorted(result.evaluate_metrics_clientapp) == [2, 4]
    assert 0.5 < result.evaluate_metrics_clientapp[4]["accuracy"] < 0.6


def test_flowers_own_sequence_works_as_well():
    """configure_train and aggregate_train, as the base class calls them."""
    grid, strategy = Straight(eight()), made()
    arrays = ArrayRecord({"x": Array(np.zeros(WIDTH, np.float32))})
    for number in range(1, 4):
        replies = grid.send_and_receive(strategy.configure_train(number, arrays, ConfigRecord(), grid), timeout=1)
        arrays, metrics = strategy.aggregate_train(number, replies)
    assert metrics["answered"] > 0
    other = made()
    start(other, Straight(eight()), 3)
    np.testing.assert_array_equal(final(strategy), final(other))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"f": 4}, "tolerates f from 0 to 3"),
        ({"clients": 0}, "clients must be a whole number, at least 1"),
        ({"identity": "name"}, "unknown identity 'name'"),
        ({"sampling": "bernouli"}, "did you mean 'bernoulli'"),
        ({"save_every": 0}, "save_every must be a whole number"),
        ({"leaves_after": 0}, "leaves_after must be at least 1"),
        ({"rule": "krun"}, "did you mean 'krum'"),
    ],
)
def test_bad_settings_are_refused_before_anyone_is_waited_for(options, message):
    with pytest.raises(demoa.DemoaError, match=message):
        made(**options)


def test_a_client_that_announces_a_reply_and_never_delivers_holds_nobody_up(monkeypatch):
    """Flower's own pull waits for such a reply for up to two hours, and the others' replies with it."""
    monkeypatch.setattr("demoa.flower.exchange.STUCK_SECONDS", 0.2)
    monkeypatch.setattr("demoa.flower.exchange.THREADS", 2)
    release = threading.Event()

    class Stalling(Straight):
        def pull_messages(self, message_ids):
            (identity,) = message_ids
            if identity in self.stalled:
                release.wait(20)
            return super().pull_messages(message_ids)

        def push_messages(self, messages):
            identities = super().push_messages(messages)
            self.stalled = {
                identity
                for identity, message in zip(identities, messages, strict=True)
                if message.metadata.dst_node_id < 3
            }
            return identities

    grid = Stalling(eight())
    strategy = made(sampling=Bernoulli(1.0), identity="node")
    begun = time.monotonic()
    try:
        strategy.start(grid, ArrayRecord({"x": Array(np.zeros(WIDTH, np.float32))}), num_rounds=2, timeout=3)
    finally:
        release.set()
    assert time.monotonic() - begun < 10
    answered = {client: standing.answered for client, standing in strategy.audit.standings.items()}
    assert answered == {**dict.fromkeys("012", 0), **dict.fromkeys("34567", 2)}


def test_a_superlink_that_is_gone_is_an_error_and_not_a_silent_round():
    class Gone(Straight):
        def pull_messages(self, message_ids):
            raise ConnectionError("the SuperLink is gone")

    with pytest.raises(ConnectionError, match="the SuperLink is gone"):
        start(made(), Gone(eight()), 3)
