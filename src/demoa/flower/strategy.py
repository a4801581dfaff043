"""Delayed momentum aggregation as a strategy of Flower: the same server core, over a real network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.common import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from demoa.aggregation.mixing import Mixing
from demoa.aggregation.rules import Rule
from demoa.core.checks import require, whole_number
from demoa.core.errors import DemoaError, UpdateRejected, first_line, unknown_name
from demoa.core.registry import build
from demoa.core.seeding import generator
from demoa.flower.arrays import Layout, as_vector
from demoa.flower.audit import Audit
from demoa.flower.exchange import exchange
from demoa.flower.folder import StrategyFolder
from demoa.flower.roster import IDENTITIES, Named, wait_for_clients
from demoa.sampling import SAMPLINGS, Bernoulli, Sampling
from demoa.server.algorithms import Algorithm
from demoa.server.participation import Participation
from demoa.server.round import ClientId, Round
from demoa.server.server import Server
from demoa.simulation.adversary import Adversary


class NobodyAnswers(DemoaError, RuntimeError):
    """Too many rounds in a row brought no vector that could be taken; the state is saved, and a new run goes on."""


class DelayedMomentumStrategy(Strategy):
    """A server that stays right when most clients are absent and some of them lie.

    Clients are known by their keys and have a row each. A reply that does not stand the gate counts as none, and no
    reply, however broken, ends the run.

    Args:
        f: How many clients may be faulty; there is no default.
        clients: How many clients there are: the run waits for them, and the roster is then closed.
        rule, mixing, algorithm, lr, norm_limit, seed: As in `demoa.Server`.
        sampling: Who is asked in a round, by name or ready made.
        sampling_seed: What it draws from, if not from `seed`.
        momentum: "server": clients send gradients. "client": they keep their momentum and send it.
        folder: Where the state is saved and the audit is written; a new run on the same folder goes on with it.
        save_every: After how many rounds the state is saved.
        identity: What a client is known by: "key" (the SuperLink must ask for keys), "node", or, in simulations,
            "partition".
        estimate_p: Use what is seen of who answers in DeMoA's decay, in place of the sampling's p alone.
        may_join: Let clients in that come later, with a zero row.
        leaves_after: Forget a client that was out of reach for so many rounds in a row; None keeps everyone.
        silent_rounds: After so many rounds in a row without one valid reply, the run ends with an error.
        wait: How many seconds to wait for the clients at the start.
        poll: How often to ask for replies, in seconds.
        evaluate_every: After how many rounds clients are asked to evaluate; 0 is never.
        adversary: For simulations: what the Byzantine clients, 0 to byzantine - 1, send in place of their replies.
    """

    def __init__(
        self,
        *,
        f: int,
        clients: int,
        rule: str | Rule = "centered_clip",
        mixing: Sequence[str | Mixing] | str | Mixing = (),
        algorithm: str | Algorithm = "demoa",
        lr: float = 0.1,
        sampling: str | Sampling | None = None,
        momentum: str = "server",
        norm_limit: float | None = None,
        seed: int = 0,
        sampling_seed: int | None = None,
        folder: str | Path | None = None,
        save_every: int = 1,
        identity: str = "key",
        estimate_p: bool = False,
        may_join: bool = False,
        leaves_after: int | None = None,
        silent_rounds: int = 10,
        wait: float = 600.0,
        poll: float = 0.2,
        evaluate_every: int = 0,
        adversary: Adversary | None = None,
    ) -> None:
        """Check the settings; the server itself is made when the model and the clients are there."""
        if identity not in IDENTITIES:
            raise unknown_name("identity", identity, IDENTITIES)
        self._clients = whole_number("clients", clients, least=1)
        self._settings: dict[str, Any] = {
            "f": f,
            "rule": rule,
            "mixing": mixing,
            "algorithm": algorithm,
            "lr": lr,
            "momentum": momentum,
            "norm_limit": norm_limit,
            "seed": seed,
        }
        Server(
            np.zeros(1, np.float32), self._clients, **self._settings
        )  # refuses what does not fit, before anyone is waited for
        chosen = Bernoulli(0.1) if sampling is None else sampling
        self.sampling: Sampling = build("sampling", Sampling, SAMPLINGS, chosen)  # type: ignore[type-abstract]
        self.sampling.probability(1, self._clients)
        require(leaves_after is None or leaves_after >= 1, "leaves_after", leaves_after, "at least 1, or None")
        self._folder = StrategyFolder(folder)
        self._save_every = whole_number("save_every", save_every, least=1)
        self._silent_limit = whole_number("silent_rounds", silent_rounds, least=1)
        self._evaluate_every = whole_number("evaluate_every", evaluate_every, least=0)
        self._find = IDENTITIES[identity]
        self._sampling_seed = seed if sampling_seed is None else sampling_seed
        self._wait, self._poll = wait, poll
        self._estimate_p, self._may_join, self._leaves_after = estimate_p, may_join, leaves_after
        self._adversary = adversary
        self.participation = Participation()
        self.audit = Audit(self._folder.path)
        self._server: Server | None = None
        self._nodes: Named = {}
        self._unreachable: dict[ClientId, int] = {}
        self._silent = 0
        self._task: Round | None = None
        self._sent: list[tuple[Message, ClientId]] = []

    @property
    def server(self) -> Server:
        """The server core, once the run has begun."""
        if self._server is None:
            raise RuntimeError("the run has not begun: call start()")
        return self._server

    # ---- Flower's own sequence ----

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Train up to round `num_rounds`, from the start or from where the folder says that an earlier run came to."""
        self.open(grid, initial_arrays)
        self.summary()
        result = Result(arrays=self.arrays)
        if evaluate_fn and self.server.round == 0:
            _keep(result.evaluate_metrics_serverapp, 0, evaluate_fn(0, self.arrays))
        while self.server.round < num_rounds:
            number = self.server.round + 1
            messages = self.configure_train(number, self.arrays, train_config or ConfigRecord(), grid)
            replies = exchange(grid, messages, timeout=timeout, poll=self._poll)
            arrays, metrics = self.aggregate_train(number, replies)
            _keep(result.train_metrics_clientapp, number, metrics)
            result.arrays = arrays or self.arrays
            if self._evaluate_every and number % self._evaluate_every == 0:
                questions = self.configure_evaluate(number, result.arrays, evaluate_config or ConfigRecord(), grid)
                answers = exchange(grid, questions, timeout=timeout, poll=self._poll)
                _keep(result.evaluate_metrics_clientapp, number, self.aggregate_evaluate(number, answers))
            if evaluate_fn:
                _keep(result.evaluate_metrics_serverapp, number, evaluate_fn(number, result.arrays))
            if number % self._save_every == 0 or number == num_rounds:
                self.save()
            self._check_silence()
        return result

    def open(self, grid: Grid, initial_arrays: ArrayRecord) -> None:
        """Make the server: with the clients that come, or as an earlier run left it."""
        self._layout = Layout.of(initial_arrays)
        start = as_vector(initial_arrays)
        roster = self._folder.roster()
        if roster is not None:
            self._server = Server(start, roster, **self._settings)
            notes = self._folder.load(self._server)
            self.participation.asked.update(notes["asked"])
            self.participation.answered.update(notes["answered"])
            log(INFO, "Goes on after round %s with %s clients", self.server.round, len(roster))
            self._nodes = self._find(grid)
        else:
            self._nodes = wait_for_clients(lambda: self._find(grid), self._clients, self._wait)
            self._server = Server(start, list(self._nodes), **self._settings)

    def summary(self) -> None:
        """Log what the strategy is."""
        server = self.server
        rule = type(server.aggregator.rule).__name__
        log(INFO, "\t├──> %s over %s clients, f = %s", rule, len(server.clients), server.aggregator.f)
        log(INFO, "\t└──> %s, sampling %s", server.algorithm, self.sampling)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Open a round, and return a message for each client that is asked and can be reached."""
        if self._server is None:
            self.open(grid, arrays)
        server = self.server
        self._meet(grid)
        n = len(server.clients)
        number = server.round + 1
        drawn = self.sampling.clients(number, n, generator(self._sampling_seed, "sampling", number))
        full = number == 1 and server.algorithm.full_first_round
        asked = None if full else [server.clients[place] for place in drawn]
        p: Any = None
        if "p" in server.algorithm.takes and not full:
            p = self.sampling.probability(number, n)
            if self._estimate_p:
                p = self.participation.estimate(server.clients, p)
        self._task = server.begin_round(asked, p=p)
        self._sent = []
        for client in self._task.asked:
            if client in self._nodes:
                facts = {
                    "server-round": number,
                    "momentum": server.momentum == "client",
                    "keep": self._task.keep[client],
                    "gain": self._task.gain,
                }
                record = RecordDict({"arrays": arrays, "config": ConfigRecord({**config, **facts})})
                self._sent.append((Message(record, self._nodes[client], MessageType.TRAIN), client))
        return [message for message, _ in self._sent]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Take what stands the gate, close the round, and return the new model."""
        task, server = self._task, self.server
        assert task is not None
        vectors = self._vectors(replies)
        liars = [] if self._adversary is None else self._adversary.liars([int(client) for client in task.asked])
        for client, vector in vectors.items():
            if client not in liars:
                self._submit(client, vector, task.number)
        if self._adversary is not None:
            sampled = sorted(int(client) for client in vectors)
            for client, lie in self._adversary.lies(server, task, sampled, lambda client, _: vectors[client]):
                self._submit(client, lie, task.number)
        report = server.end_round()
        self.participation.note(task.asked, report.accepted)
        self._silent = 0 if report.accepted else self._silent + 1
        self.audit.note(server, report, {"clients": len(server.clients)})
        log(INFO, "round %s: %s asked, %s taken, %s refused, %s missing", report.number, len(task.asked),
            len(report.accepted), len(report.rejected), len(report.missing) - len(report.rejected))  # fmt: skip
        self._task = None
        metrics: dict[str, Any] = {
            "answered": len(report.accepted),
            "refused": len(report.rejected),
            "missing": len(report.missing),
        }
        return self._layout.arrays(report.parameters), MetricRecord(metrics)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask all clients that can be reached."""
        record = RecordDict({"arrays": arrays, "config": ConfigRecord({**config, "server-round": server_round})})
        return [Message(record, node, MessageType.EVALUATE) for node in self._nodes.values()]

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return the median of each figure over the clients: a mean would be the liars' to choose."""
        found: dict[str, list[float]] = {}
        for reply in replies:
            if reply.has_error():
                continue
            for name, value in (reply.content.metric_records.get("metrics") or {}).items():
                if isinstance(value, int | float) and np.isfinite(value):
                    found.setdefault(name, []).append(float(value))
        return MetricRecord({name: float(np.median(values)) for name, values in found.items()}) if found else None

    # ---- Parts ----

    @property
    def arrays(self) -> ArrayRecord:
        """The model as it is now."""
        return self._layout.arrays(self.server.parameters)

    def save(self) -> None:
        """Save all that a new run needs to go on."""
        notes = {"asked": self.participation.asked, "answered": self.participation.answered}
        self._folder.save(self.server, notes)

    def _meet(self, grid: Grid) -> None:
        """Find out who can be reached, let in who may join, and let go who has been away for too long."""
        self._nodes = self._find(grid)
        server = self.server
        for client in server.clients:
            away = 0 if client in self._nodes else self._unreachable.get(client, 0) + 1
            self._unreachable[client] = away
        limit = self._leaves_after
        left = [client for client in server.clients if limit is not None and self._unreachable[client] > limit]
        new = [client for client in self._nodes if client not in server.clients] if self._may_join else []
        if left or new:
            try:
                server.reseat([*(client for client in server.clients if client not in left), *new])
            except DemoaError as error:
                log(WARNING, "The roster stays as it is: %s", first_line(error))
                return
            log(INFO, "The roster changes: %s come, %s leave for good", new, left)
            self._folder.note({"round": server.round, "joined": new, "left": left})

    def _vectors(self, replies: Iterable[Message]) -> dict[ClientId, Any]:
        """Return the vectors that came, by client: each reply belongs to whoever was sent the message it answers."""
        asked = {message.metadata.message_id: (message.metadata.dst_node_id, client) for message, client in self._sent}
        found: dict[ClientId, Any] = {}
        for reply in replies:
            node, client = asked.get(reply.metadata.reply_to_message_id, (None, None))
            if client is None:
                log(WARNING, "A reply to no message of this round was left aside")
                continue
            if reply.has_error():
                log(WARNING, "client %s failed: %s", client, first_line(RuntimeError(reply.error.reason or "")))
                continue
            try:
                if reply.metadata.src_node_id != node:
                    raise UpdateRejected(client, "sender", f"the reply came from node {reply.metadata.src_node_id}")
                self._check_round(client, reply)
                found[client] = self._layout.vector(client, reply.content.array_records.get("arrays"))
            except UpdateRejected as refusal:
                self._refuse(client, refusal)
        return found

    def _check_round(self, client: ClientId, reply: Message) -> None:
        """Compare the round that a client says it answers, if it says one."""
        assert self._task is not None
        metrics: Any = reply.content.metric_records.get("metrics") or {}
        said = metrics.get("server-round", self._task.number)
        if said != self._task.number:
            raise UpdateRejected(client, "round", f"it answers round {said}, this is round {self._task.number}")

    def _submit(self, client: ClientId, vector: Any, number: int) -> None:
        try:
            self.server.submit(client, vector, round=number)
        except UpdateRejected as refusal:
            log(WARNING, "%s", refusal)

    def _refuse(self, client: ClientId, refusal: UpdateRejected) -> None:
        self.server.refuse(client, refusal.reason)
        log(WARNING, "%s", refusal)

    def _check_silence(self) -> None:
        if self._silent >= self._silent_limit:
            self.save()
            raise NobodyAnswers(
                f"{self._silent} rounds in a row brought no valid reply; the state is saved at round "
                f"{self.server.round}: look after the clients, then start a new run on the same folder"
            )


def _keep(records: dict[int, MetricRecord], number: int, found: MetricRecord | None) -> None:
    if found is not None:
        records[number] = found
