"""The embeddable server: begin a round, submit vectors, end the round, get new parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from demoa.aggregation.aggregator import Aggregator
from demoa.aggregation.cache import RowCache
from demoa.aggregation.mixing import Mixing
from demoa.aggregation.rules import Rule
from demoa.aggregation.sketch import Sketches
from demoa.aggregation.stores import STORES, StoreKind
from demoa.aggregation.stores.fitting import check_fits, check_table_fits
from demoa.core.arrays import check_floats, dtype_name, frozen, like
from demoa.core.checks import positive, require, share, shares, whole_number
from demoa.core.errors import ConfigError, RoundError, UpdateRejected
from demoa.core.registry import build, describe
from demoa.core.types import Floats
from demoa.server.algorithms import ALGORITHMS, Algorithm
from demoa.server.gate import Gate
from demoa.server.inspection import Inspection
from demoa.server.optimizer import Optimizer, Step
from demoa.server.roster import Roster
from demoa.server.round import ClientId, OpenRound, Round, RoundReport
from demoa.server.state import ServerState, load_state, reseated, save_state


class Server:
    """A federated server that stays right when most clients are absent and some of them lie.

    Calls may come from several threads.

    Args:
        parameters: Where training starts, (d,): a NumPy array or torch tensor, float32 or float64. Rows are
            kept in the same dtype and on the same device.
        clients: How many clients there are (named 0, 1, ...), or their names.
        f: How many of them may be faulty; there is no default.
        rule: How rows are aggregated, by name or ready made.
        mixing: What is done to them before.
        algorithm: How rows move and which are aggregated, by name or ready made.
        lr: The step size.
        momentum: "server": clients send gradients, the server keeps momentum. "client": clients send their
            momentum m_i, which they update with `client_momentum`.
        norm_limit: Vectors with a longer norm are refused.
        store: Where rows are kept and in how many bytes, by name or ready made.
        sketch: Compute inner products between rows from so many numbers of each, by a random projection, in place of
            all: squared distances are then right to a share of about sqrt(2 / sketch). None for exact ones.
        seed: What random mixings and projections draw from. Where clients may lie, it is a secret.

    >>> server = Server(np.zeros(2), 3, f=1, rule="median", algorithm="demoa", lr=1.0)
    >>> task = server.begin_round()
    >>> for client, gradient in enumerate([[1.0, 2.0], [1.0, 2.0], [-9.0, 99.0]]):
    ...     server.submit(client, np.array(gradient), round=task.number)
    >>> server.end_round().parameters.tolist()
    [-1.0, -2.0]
    """

    def __init__(
        self,
        parameters: Any,
        clients: int | Sequence[ClientId],
        *,
        f: int,
        rule: str | Rule,
        mixing: Sequence[str | Mixing] | str | Mixing = (),
        algorithm: str | Algorithm = "demoa",
        lr: float = 0.1,
        momentum: str = "server",
        norm_limit: float | None = None,
        store: str | StoreKind = "dense",
        sketch: int | None = None,
        seed: int = 0,
    ) -> None:
        """Start at round 0 with zero rows."""
        check_floats(parameters, 1, "parameters")
        require(momentum in ("server", "client"), "momentum", momentum, "'server' or 'client'")
        self._roster = Roster(clients)
        self.algorithm = build("algorithm", Algorithm, ALGORITHMS, algorithm)  # type: ignore[type-abstract]
        self.aggregator = Aggregator(rule, f=f, mixing=mixing)
        self.seed = whole_number("seed", seed)
        self._optimizer = Optimizer(self.algorithm, self.aggregator, len(self._roster), self.seed)
        self.lr = positive("lr", lr)
        self.momentum = momentum
        self.store = build("store", StoreKind, STORES, store)  # type: ignore[type-abstract]
        self._gate = Gate(
            len(parameters),
            dtype_name(parameters),
            self.store.largest_norm(dtype_name(parameters)),
            None if norm_limit is None else positive("norm_limit", norm_limit),
        )
        check_fits(self.store, len(self._roster), len(parameters), np.dtype(self._gate.dtype).itemsize)
        if self.aggregator.looks_at_table or self.algorithm.looks_at_table:
            check_table_fits(self._optimizer.rows)
        rows = self.store.make(len(self._roster), self._optimizer.rows - len(self._roster), parameters)
        self.sketch = None if sketch is None else whole_number("sketch", sketch, least=1)
        start = rows.adopt(parameters)
        length = float(np.sqrt(rows.squared_norm(start)))
        require(length <= self._gate.largest, "parameters", "NaN, infinity or huge numbers", "finite")
        self._like = parameters[:0].detach().clone() if hasattr(parameters, "detach") else np.empty(0)
        self._state = ServerState(
            cache=RowCache(rows, sketches=None if sketch is None else Sketches(rows, sketch, self.seed)),
            parameters=rows.blended(start, 1.0, 0.0, start),
            scale=np.ones(len(self._roster)),
            last_seen=np.zeros(len(self._roster), np.int64),
        )
        self._open: OpenRound | None = None
        self._lock = RLock()

    @property
    def clients(self) -> tuple[ClientId, ...]:
        """The names of the clients, in the order of their rows."""
        return self._roster.names

    @property
    def round(self) -> int:
        """How many rounds have begun."""
        return self._state.round

    @property
    def lost(self) -> tuple[ClientId, ...]:
        """The clients whose rows were torn in the files of a state that was loaded: they count as never received."""
        return tuple(self.clients[row] for row in self._state.cache.store.lost)

    @property
    def parameters(self) -> Any:
        """The current parameters, (d,), in the caller's library: a read-only array, or a new tensor."""
        with self._lock:
            return frozen(self._like, self._state.parameters)

    def momentum_of(self, client: ClientId, *, at_last_contact: bool = False) -> Any:
        """Return a copy of the momentum that the server holds for a client, (d,).

        Args:
            client: Whose.
            at_last_contact: Return it as it was when the client's vector was last taken, before it decayed.
        """
        with self._lock:
            index = self._roster.row(client)
            store = self._state.cache.store
            row = store.read(index)
            scale = 1.0 if at_last_contact else float(self._state.scale[index])
            return frozen(self._like, store.blended(row, scale, 0.0, row))

    def adopt(self, vector: Any) -> Any:
        """Return a vector of the caller's, (d,), in the library that rows are kept in; shared where it can be."""
        return self._state.cache.store.adopt(vector)

    def inspect(self, clients: Iterable[ClientId] | None = None) -> Inspection:
        """Return a look at the rows of some clients, or of all, for attacks in a simulation, metrics and audits."""
        with self._lock:
            chosen = np.array(self._roster.rows(clients), np.intp)
            state = self._state
            return Inspection(state.cache, chosen, state.scale[chosen])

    def preview(self, rows: Mapping[ClientId, Any]) -> Any | None:
        """Return what the rule would return now if some clients had answered with these rows, (d,).

        For adversaries in a simulation, which may try before they lie. Nothing changes; None if there would be
        no step.
        """
        with self._lock:
            places = {self._roster.row(client): self._state.cache.store.adopt(row) for client, row in rows.items()}
            accepted = {self._roster.row(name) for name in (self._open.accepted if self._open else ())}
            return self._optimizer.preview(self._state, accepted, places)

    def reseat(self, clients: Sequence[ClientId], *, f: int | None = None) -> None:
        """Change who is on the roster, between two rounds.

        Whoever stays keeps its row, as it has decayed. Newcomers get a zero row, as everyone had at the start. The row
        of a client that is not named is forgotten; if it comes back, it is new.

        Args:
            clients: All clients from now on, in the order of their rows.
            f: How many of them may be faulty; as before if not given.

        Raises:
            RoundError: A round is open.
            ConfigError, ToleranceError: The names or f are not allowed, or the rule does not stand f among so many;
                nothing has changed.
        """
        with self._lock:
            if self._open is not None:
                raise RoundError(f"round {self._open.number} is open; end it before the roster changes")
            roster = Roster(clients)
            before = self.aggregator
            aggregator = Aggregator(before.rule, f=before.f if f is None else f, mixing=before.mixing)
            optimizer = Optimizer(self.algorithm, aggregator, len(roster), self.seed)
            places = [self._roster.find(name) for name in roster.names]
            state = reseated(self._state, places, self._state.cache.store.resized(optimizer.rows))
            self._roster, self.aggregator, self._optimizer, self._state = roster, aggregator, optimizer, state

    def begin_round(
        self,
        asked: Iterable[ClientId] | None = None,
        *,
        alpha: float | None = None,
        p: float | Floats | None = None,
        lr: float | None = None,
    ) -> Round:
        """Open a round.

        Args:
            asked: Who is asked for a vector; None asks everyone.
            alpha: This round's alpha, in place of the algorithm's own.
            p: This round's probability of taking part, one for all or one per client, (n,).
            lr: This round's step size.

        Raises:
            RoundError: A round is already open.
            ConfigError: Someone asked is not on the roster, a full first round does not ask everyone, or a value
                is not allowed. Nothing has changed then.
        """
        with self._lock:
            if self._open is not None:
                raise RoundError(f"round {self._open.number} is still open; call end_round() first")
            rows = self._roster.rows(asked)
            state, first, n = self._state, self._state.round == 0, len(self._roster)
            if first and self.algorithm.full_first_round and len(rows) < n:
                raise ConfigError(
                    f"the first round must ask all {n} clients, got {len(rows)}; "
                    "ask everyone, or make the algorithm with full_first_round=False"
                )
            for name, given in (("alpha", alpha), ("p", p)):
                taken = given is None or name in self.algorithm.takes
                require(taken, name, given, f"left out, as {type(self.algorithm).__name__} has none")
            recursion = self.algorithm.recursion(
                first=first,
                alpha=None if alpha is None else share("alpha", alpha),
                p=None if p is None else shares("p", p, n),
            )
            step = self.lr if lr is None else positive("lr", lr)
            scale = state.scale * recursion.decay
            keep = recursion.keep * scale
            names = tuple(self.clients[row] for row in rows)
            task = Round(
                number=state.round + 1,
                parameters=self.parameters,
                asked=names,
                keep={name: float(keep[row]) for name, row in zip(names, rows, strict=True)},
                gain=recursion.gain,
            )
            state.scale, state.round = scale, task.number
            self._open = OpenRound(task.number, frozenset(names), keep, recursion.gain, step)
            return task

    def submit(self, client: ClientId, vector: Any, *, round: int | None = None) -> None:
        """Take one client's vector into its row.

        Args:
            client: Who sent it.
            vector: Its gradient (or its momentum, if clients keep it), (d,). Not kept, not changed.
            round: The round that it is for, to catch late answers.

        Raises:
            UpdateRejected: The vector was refused. The client then counts as absent, unless a later vector of
                its is accepted in the same round; everything else is as before.
        """
        with self._lock:
            state = self._state
            index = self._roster.find(client)
            name = client if index is None else self.clients[index]
            try:
                current = self._gate.check_sender(name, index is not None, self._open, round)
                adopted = self._gate.check_vector(name, vector, state.cache.store)
            except UpdateRejected as refusal:
                if self._open is not None and index is not None:
                    self._open.refuse(name, refusal.reason)
                raise
            keep, gain = (current.keep[index], current.gain) if self.momentum == "server" else (0.0, 1.0)
            state.cache.blend(self._roster.row(name), float(keep), gain, adopted)
            state.scale[index] = 1.0
            state.last_seen[index] = current.number
            current.accepted.append(name)
            current.rejected.pop(name, None)

    def refuse(self, client: ClientId, reason: str) -> None:
        """Note that a client's answer was refused before it became a vector, such as one that could not be read."""
        with self._lock:
            index = self._roster.find(client)
            if self._open is not None and index is not None:
                self._open.refuse(self.clients[index], reason)

    def end_round(self) -> RoundReport:
        """Close the round: aggregate, step, and report. A round without vectors does not fail.

        Raises:
            RoundError: No round is open, or the step would overflow; the round is then closed without one.
        """
        with self._lock:
            current = self._open
            if current is None:
                raise RoundError("no round is open; call begin_round() first")
            try:
                accepted = np.array(sorted(map(self._roster.row, current.accepted)), np.intp)
                step = self._optimizer.aggregate(self._state, accepted)
                direction = None if step is None else self._optimizer.move(self._state, step.aggregate, current.lr)
                return self._report(current, step, direction)
            finally:
                # Whatever a rule of the caller's own may raise, the server can go on with the next round.
                self._open = None

    def _report(self, current: OpenRound, step: Step | None, direction: Any | None) -> RoundReport:
        absent = current.asked - set(current.accepted)
        seen = self._state.last_seen
        return RoundReport(
            number=current.number,
            read_parameters=partial(frozen, self._like, self._state.parameters),
            direction=None if direction is None else like(self._like, direction),
            alignment=None if step is None else self._optimizer.alignment(self._state, step.aggregate),
            accepted=tuple(current.accepted),
            missing=tuple(sorted(absent, key=self._roster.row)),
            rejected=dict(current.rejected),
            f=None if step is None else step.f,
            weights=None if step is None else step.weights,
            staleness=np.where(seen > 0, current.number - seen, -1),
            notes={} if step is None else step.aggregate.notes,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state to a file, between two rounds; a crash leaves the old file or the new.

        Raises:
            RoundError: A round is open.
            StoreError: The file cannot be written.
        """
        with self._lock:
            if self._open is not None:
                raise RoundError(f"round {self._open.number} is open; end it before saving")
            save_state(path, self._state, self._made_with())
            self._state.cache.store.settle()

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take over the state in a file; training then goes on bit for bit as if it had not stopped.

        Settings must agree with those of the server that saved it, but for `lr` and `norm_limit`, which may be
        changed on the way.

        Raises:
            RoundError: A round is open.
            StoreError: The file is unreadable or was saved by a server made otherwise; nothing has changed.
        """
        with self._lock:
            if self._open is not None:
                raise RoundError(f"round {self._open.number} is open; end it before loading")
            self._state = load_state(path, self._state, self._made_with())

    def _made_with(self) -> dict[str, Any]:
        """Return, as JSON holds it, all that must agree between a server that saves and one that loads."""
        return {
            "clients": list(self.clients),
            "entries": self.store.entries(self._gate.width),
            "dtype": self._gate.dtype,
            "f": self.aggregator.f,
            "rule": describe(self.aggregator.rule),
            "mixing": [describe(step) for step in self.aggregator.mixing],
            "algorithm": describe(self.algorithm),
            "momentum": self.momentum,
            "store": self.store.described(),
            "sketch": self.sketch,
            "seed": self.seed,
        }
