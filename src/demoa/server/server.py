"""The embeddable server: begin a round, submit vectors, end the round, get new parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from threading import RLock
from typing import Any

import numpy as np

from demoa.aggregation.aggregator import Aggregate, Aggregator
from demoa.aggregation.cache import RowCache
from demoa.aggregation.mixing import Mixing
from demoa.aggregation.rules import Rule
from demoa.aggregation.stores import DenseStore, Store
from demoa.aggregation.stores.saved import matching
from demoa.core.arrays import check_floats, dtype_name, frozen, on_cpu, to_numpy
from demoa.core.errors import ConfigError, RoundError, StoreError, UpdateRejected
from demoa.core.registry import build, describe, require
from demoa.core.seeding import generator
from demoa.core.types import Floats
from demoa.server import checkpoint
from demoa.server.algorithms import ALGORITHMS, Algorithm
from demoa.server.algorithms.algorithm import RoundView
from demoa.server.gate import Gate
from demoa.server.round import ClientId, OpenRound, Round, RoundReport


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
        seed: What random mixings draw from.

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
        seed: int = 0,
    ) -> None:
        """Start at round 0 with zero rows."""
        check_floats(parameters, 1, "parameters")
        self.clients: tuple[ClientId, ...] = tuple(range(clients) if isinstance(clients, int) else clients)
        self._index = {client: index for index, client in enumerate(self.clients)}
        require(len(self.clients) >= 1, "clients", clients, "at least one")
        require(len(self._index) == len(self.clients), "clients", clients, "names without duplicates")
        require(lr > 0, "lr", lr, "above 0")
        require(momentum in ("server", "client"), "momentum", momentum, "'server' or 'client'")
        require(norm_limit is None or norm_limit > 0, "norm_limit", norm_limit, "above 0, or None")
        self.algorithm = build("algorithm", ALGORITHMS, algorithm)
        self.aggregator = Aggregator(rule, f=f, mixing=mixing)
        self.aggregator.check(len(self.clients))
        self.lr = lr
        self.momentum = momentum
        self.seed = seed
        self._like = parameters[:0]
        self._gate = Gate(len(parameters), dtype_name(parameters), norm_limit)
        self._centre = len(self.clients) if self.aggregator.rule.uses_centre else None
        self._estimate = len(self.clients) + (self._centre is not None) if self.algorithm.uses_estimate else None
        rows = len(self.clients) + (self._centre is not None) + (self._estimate is not None)
        store = _empty_store(rows, parameters)
        self._cache = RowCache(store)
        start = store.adopt(parameters)
        self._parameters = store.blended(start, 1.0, 0.0, start)
        self._scale = np.ones(len(self.clients))
        self._last_seen = np.zeros(len(self.clients), np.int64)
        self._number = 0
        self._open: OpenRound | None = None
        self._lock = RLock()

    @property
    def round(self) -> int:
        """How many rounds have ended."""
        return self._number

    @property
    def parameters(self) -> Any:
        """The current parameters, (d,), in the caller's library: a read-only array, or a new tensor."""
        with self._lock:
            return frozen(self._like, self._parameters)

    def momentum_of(self, client: ClientId) -> Any:
        """Return a copy of the momentum that the server holds for a client, (d,)."""
        with self._lock:
            if client not in self._index:
                raise ConfigError(f"no client {client!r} is on the roster of {len(self.clients)}")
            row = self._cache.store.read(self._index[client])
            scale = float(self._scale[self._index[client]])
            return frozen(self._like, self._cache.store.blended(row, scale, 0.0, row))

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
            ConfigError: Someone asked is not on the roster, or a full first round does not ask everyone.
        """
        with self._lock:
            if self._open is not None:
                raise RoundError(f"round {self._open.number} is still open; call end_round() first")
            names = self.clients if asked is None else tuple(dict.fromkeys(asked))
            strangers = [name for name in names if name not in self._index]
            if strangers:
                raise ConfigError(f"asked clients that are not on the roster: {strangers[:5]}")
            first = self._number == 0
            if first and self.algorithm.full_first_round and len(names) < len(self.clients):
                raise ConfigError(
                    f"the first round must ask all {len(self.clients)} clients, got {len(names)}; "
                    "ask everyone, or make the algorithm with full_first_round=False"
                )
            require(lr is None or lr > 0, "lr", lr, "above 0")
            recursion = self.algorithm.recursion(first=first, alpha=alpha, p=p)
            self._scale = self._scale * recursion.decay
            self._number += 1
            keep = recursion.keep * self._scale
            step = float(self.lr if lr is None else lr)
            self._open = OpenRound(self._number, frozenset(names), keep, recursion.gain, step)
            shares = {name: float(keep[self._index[name]]) for name in names}
            return Round(self._number, self.parameters, names, shares, recursion.gain)

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
            try:
                current = self._gate.check_sender(client, client in self._index, self._open, round)
                adopted = self._gate.check_vector(client, vector, self._cache.store)
            except UpdateRejected as refusal:
                if self._open is not None and client in self._open.asked and client not in self._open.accepted:
                    self._open.rejected[client] = refusal.reason
                raise
            index = self._index[client]
            keep, gain = (current.keep[index], current.gain) if self.momentum == "server" else (0.0, 1.0)
            self._cache.blend(index, float(keep), gain, adopted)
            self._scale[index] = 1.0
            self._last_seen[index] = current.number
            current.accepted.append(client)
            current.rejected.pop(client, None)

    def end_round(self) -> RoundReport:
        """Close the round: aggregate, step, and report. A round without vectors does not fail.

        Raises:
            RoundError: No round is open.
        """
        with self._lock:
            current = self._open
            if current is None:
                raise RoundError("no round is open; call begin_round() first")
            outcome, f = self._aggregate(current)
            if outcome is not None:
                self._step(outcome, current)
            self._open = None
            return self._report(current, outcome, f)

    def _aggregate(self, current: OpenRound) -> tuple[Aggregate | None, int | None]:
        """Return the aggregate of this round's rows and the f that was used; (None, None) for no step."""
        cache = self._cache
        view = RoundView(
            scale=self._scale,
            accepted=np.array(sorted(self._index[client] for client in current.accepted), np.intp),
            rows=cache.store.rows,
            products=cache.products,
            estimate=self._estimate,
            lr=current.lr,
            first=current.number == 1,
        )
        selection = self.algorithm.selection(view)
        if selection is None:
            return None, None
        f = self.aggregator.f
        if not self.algorithm.delayed:
            f = min(f, self.aggregator.tolerance(len(selection)))
        stream = generator(self.seed, "mixing", current.number)
        aggregate = self.aggregator.apply(cache, selection, f=f, centre=self._centre, generator=stream)
        return aggregate, f

    def _step(self, outcome: Aggregate, current: OpenRound) -> None:
        """Keep the server's own rows in step with the aggregate, and move the parameters."""
        direction = outcome.vector
        if self._centre is not None:
            self._cache.blend(self._centre, 0.0, 1.0, outcome.vector)
        if self._estimate is not None:
            self._cache.blend(self._estimate, 1.0, 1.0, outcome.vector)
            direction = self._cache.store.read(self._estimate)
        self._parameters = self._cache.store.blended(self._parameters, 1.0, -current.lr, direction)

    def _report(self, current: OpenRound, outcome: Aggregate | None, f: int | None) -> RoundReport:
        weights = None
        if outcome is not None and outcome.weights is not None:
            # The aggregate weighs stored rows; a client's own weight is that of scale times its row.
            stored, scale = outcome.weights[: len(self.clients)], self._scale
            weights = np.divide(stored, scale, out=np.zeros_like(stored), where=scale > 0)
        absent = current.asked - set(current.accepted)
        return RoundReport(
            number=current.number,
            parameters=self.parameters,
            accepted=tuple(current.accepted),
            missing=tuple(name for name in self.clients if name in absent),
            rejected=dict(current.rejected),
            f=f,
            weights=weights,
            staleness=np.where(self._last_seen > 0, current.number - self._last_seen, -1),
            notes={} if outcome is None else outcome.notes,
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
            arrays = {
                "parameters": to_numpy(self._parameters),
                "scale": self._scale,
                "last_seen": self._last_seen,
                "products": self._cache.known_products,
                **{f"store.{name}": array for name, array in self._cache.store.arrays().items()},
            }
            header = {"round": self._number, "stale": self._cache.stale, "made_with": self._made_with()}
            checkpoint.write(path, header, arrays)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take over the state in a file; training then goes on bit for bit as if it had not stopped.

        Raises:
            RoundError: A round is open.
            StoreError: The file is unreadable or was saved by a server made otherwise; nothing has changed.
        """
        with self._lock:
            if self._open is not None:
                raise RoundError(f"round {self._open.number} is open; end it before loading")
            header, arrays = checkpoint.read(path)
            for key, mine in self._made_with().items():
                if header["made_with"].get(key) != mine:
                    saved = header["made_with"].get(key)
                    raise StoreError(f"{path} was saved by a server with {key} = {saved}, this one has {mine}")
            n, rows = len(self.clients), self._cache.store.rows
            store = self._cache.store.loaded(
                {name.removeprefix("store."): array for name, array in arrays.items() if name.startswith("store.")}
            )
            products = matching(arrays, "products", (rows, rows), np.dtype(np.float64))
            scale = matching(arrays, "scale", (n,), np.dtype(np.float64))
            last_seen = matching(arrays, "last_seen", (n,), np.dtype(np.int64))
            parameters = matching(arrays, "parameters", (self._gate.width,), np.dtype(self._gate.dtype))
            self._cache = RowCache(store, products=products, stale=header["stale"])
            self._parameters = store.adopt(parameters)
            self._scale, self._last_seen, self._number = scale, last_seen, header["round"]

    def _made_with(self) -> dict[str, Any]:
        """Return, as JSON holds it, all that must agree between a server that saves and one that loads."""
        return {
            "clients": list(self.clients),
            "entries": self._gate.width,
            "dtype": self._gate.dtype,
            "f": self.aggregator.f,
            "rule": describe(self.aggregator.rule),
            "mixing": [describe(step) for step in self.aggregator.mixing],
            "algorithm": describe(self.algorithm),
            "momentum": self.momentum,
            "seed": self.seed,
        }


def _empty_store(rows: int, parameters: Any) -> Store:
    """Return a store of zero rows that fit the parameters, in main memory or on their device."""
    if on_cpu(parameters):
        return DenseStore.zeros(rows, len(parameters), np.dtype(dtype_name(parameters)))
    from demoa.aggregation.stores.device import DeviceStore

    return DeviceStore.zeros(rows, parameters)
