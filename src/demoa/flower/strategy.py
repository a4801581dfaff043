"""Delayed momentum aggregation as a strategy of Flower: the same server core, over a real network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.common import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from demoa.aggregation.mixing import Mixing
from demoa.aggregation.rules import Rule
from demoa.aggregation.stores import StoreKind
from demoa.core.checks import whole_number
from demoa.core.errors import ConfigError, DemoaError, unknown_name
from demoa.core.registry import build
from demoa.core.seeding import generator
from demoa.flower.arrays import Layout, as_vector
from demoa.flower.audit import Audit
from demoa.flower.buffers import SharedBuffers
from demoa.flower.exchange import exchange, quick_pulls
from demoa.flower.folder import StrategyFolder
from demoa.flower.intake import Intake
from demoa.flower.roster import IDENTITIES, Attendance
from demoa.sampling import SAMPLINGS, Bernoulli, Sampling
from demoa.server.algorithms import Algorithm
from demoa.server.participation import Participation
from demoa.server.server import Server
from demoa.simulation.adversary import Adversary

RETURN_SECONDS = 120.0
"""How long a run that goes on waits at most until its clients answer again."""


class NobodyAnswers(DemoaError, RuntimeError):
    """Too many rounds in a row brought no vector that could be taken; the state is saved, and a new run goes on."""


class DelayedMomentumStrategy(Strategy):
    """A server that stays right when most clients are absent and some of them lie.

    Clients are known by their keys and have a row each. A reply that does not stand the gate counts as none, and no
    reply, however broken, ends the run.

    Args:
        f: How many clients may be faulty; there is no default.
        clients: How many clients there are: the run waits for them, and the roster is then closed.
        rule, mixing, algorithm, lr, norm_limit, store, sketch, seed: As in `demoa.Server`.
        sampling: Who is asked in a round, by name or ready made.
        sampling_seed: What it draws from, if not from `seed`.
        momentum: "server": clients send gradients. "client": they keep their momentum and send it.
        buffers: Which of the model's arrays are not trained but shared, such as the running statistics of BatchNorm:
            clients send theirs along, and the model has the median of all that were last sent.
        folder: Where the state is saved and the audit is written; a new run on the same folder goes on with it.
        save_every: After how many rounds the state is saved.
        identity: What a client is known by: "key" (the SuperLink must ask for keys), "node", or, in simulations,
            "partition".
        estimate_p: Use what is seen of who answers in DeMoA's decay, in place of the sampling's p alone.
        may_join: Let clients in that come later, with a zero row.
        leaves_after: Forget a client that was out of reach for so many rounds in a row; None keeps everyone.
        silent_rounds: After so many rounds in a row without one valid reply, the run ends with an error.
        wait: How many seconds to wait for the clients at the start; a run that goes on waits for two minutes at most.
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
        buffers: Collection[str] = (),
        norm_limit: float | None = None,
        store: str | StoreKind = "dense",
        sketch: int | None = None,
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
            "store": store,
            "sketch": sketch,
            "seed": seed,
        }
        Server(
            np.zeros(1, np.float32), self._clients, **self._settings
        )  # refuses what does not fit, before anyone is waited for
        chosen = Bernoulli(0.1) if sampling is None else sampling
        self.sampling: Sampling = build("sampling", Sampling, SAMPLINGS, chosen)  # type: ignore[type-abstract]
        self.sampling.probability(1, self._clients)
        self._folder = StrategyFolder(folder)
        self._save_every = whole_number("save_every", save_every, least=1)
        self._silent_limit = whole_number("silent_rounds", silent_rounds, least=1)
        self._evaluate_every = whole_number("evaluate_every", evaluate_every, least=0)
        self._attendance = Attendance(IDENTITIES[identity], may_join=may_join, leaves_after=leaves_after)
        self._buffer_names = frozenset(buffers)
        self._sampling_seed = seed if sampling_seed is None else sampling_seed
        self._wait, self._poll = wait, poll
        self._estimate_p = estimate_p
        self._adversary = adversary
        self.participation = Participation()
        self.audit = Audit(self._folder.path)
        self._server: Server | None = None
        self._intake: Intake | None = None
        self._silent = 0

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
        with quick_pulls():
            return self._train(grid, initial_arrays, num_rounds, timeout, train_config, evaluate_config, evaluate_fn)

    def _train(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int,
        timeout: float,
        train_config: ConfigRecord | None,
        evaluate_config: ConfigRecord | None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None,
    ) -> Result:
        self.open(grid, initial_arrays)
        self.summary()
        result = Result(arrays=self.arrays)
        if evaluate_fn and self.server.round == 0:
            _keep(result.evaluate_metrics_serverapp, 0, evaluate_fn(0, result.arrays))
        while self.server.round < num_rounds:
            number = self.server.round + 1
            messages = self.configure_train(number, result.arrays, train_config or ConfigRecord(), grid)
            replies = exchange(grid, messages, timeout=timeout, poll=self._poll)
            result.arrays, metrics = self.aggregate_train(number, replies)
            _keep(result.train_metrics_clientapp, number, metrics)
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
        strange = sorted(self._buffer_names - set(initial_arrays))
        if strange:
            raise ConfigError(f"the model has no buffers {strange}; name some of its arrays: {list(initial_arrays)}")
        kinds: dict[bool, dict[str, Array]] = {False: {}, True: {}}
        for name, array in initial_arrays.items():
            kinds[name in self._buffer_names][name] = array
        trained = ArrayRecord(kinds[False])
        self._layout = Layout.of(trained)
        self._buffers = SharedBuffers(ArrayRecord(kinds[True]))
        start = as_vector(trained)
        roster = self._folder.roster()
        if roster is None:
            clients = self._attendance.wait(grid, self._clients, self._wait)
            self._server = Server(start, clients, **self._settings)
        else:
            self._server = Server(start, roster, **self._settings)
            self._restore(*self._folder.load(self._server))
            if self._server.lost:
                log(
                    WARNING,
                    "Rows that were torn, and count as never received: %s",
                    ", ".join(map(str, self._server.lost)),
                )
            self._attendance.roll_call(grid, min(self._wait, RETURN_SECONDS))
            log(INFO, "Goes on after round %s with %s clients", self.server.round, len(roster))

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
        change = self._attendance.meet(grid, server)
        if change is not None:
            self._folder.note(change)
            self._buffers.keep(server.clients)
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
        task = server.begin_round(asked, p=p)
        sent = {}
        for client in task.asked:
            if client in self._attendance.nodes:
                facts = {
                    "server-round": number,
                    "momentum": server.momentum == "client",
                    "keep": task.keep[client],
                    "gain": task.gain,
                }
                record = RecordDict({"arrays": arrays, "config": ConfigRecord({**config, **facts})})
                sent[client] = Message(record, self._attendance.nodes[client], MessageType.TRAIN)
        self._intake = Intake(server, task, sent, self._layout, self._buffers)
        return list(sent.values())

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[ArrayRecord, MetricRecord]:
        """Take what stands the gate, close the round, and return the new model."""
        intake, server = self._intake, self.server
        assert intake is not None
        if self._adversary is None:
            intake.take(replies)
        else:
            intake.take_with_lies(replies, self._adversary)
        self._intake = None
        report = server.end_round()
        self.participation.note(intake.task.asked, report.accepted)
        self._silent = 0 if report.accepted else self._silent + 1
        self.audit.note(server, report, {"clients": len(server.clients)})
        log(INFO, "round %s: %s asked, %s taken, %s refused, %s missing", report.number, len(intake.task.asked),
            len(report.accepted), len(report.rejected), len(report.missing) - len(report.rejected))  # fmt: skip
        metrics: dict[str, Any] = {
            "answered": len(report.accepted),
            "refused": len(report.rejected),
            "missing": len(report.missing),
        }
        return self.arrays, MetricRecord(metrics)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask all clients that can be reached."""
        record = RecordDict({"arrays": arrays, "config": ConfigRecord({**config, "server-round": server_round})})
        return [Message(record, node, MessageType.EVALUATE) for node in self._attendance.nodes.values()]

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
        """The model as it is now: what is trained, then the buffers."""
        return ArrayRecord({**self._layout.arrays(self.server.parameters), **self._buffers.arrays()})

    def save(self) -> None:
        """Save all that a new run needs to go on."""
        notes = {
            "audit": self.audit.notes(),
            "away": list(self._attendance.away.items()),
            "buffers": list(self._buffers.rows),
        }
        arrays = {f"buffers.{place}": row for place, row in enumerate(self._buffers.rows.values())}
        self._folder.save(self.server, notes, arrays)

    def _restore(self, notes: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.audit.restore(notes["audit"])
        self._attendance.away.update((client, count) for client, count in notes["away"])
        self._buffers.rows.update((client, arrays[f"buffers.{place}"]) for place, client in enumerate(notes["buffers"]))
        for client, standing in self.audit.standings.items():
            self.participation.asked[client] = standing.asked
            self.participation.answered[client] = standing.answered

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
