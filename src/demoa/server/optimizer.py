"""The arithmetic of a round's end: which rows are aggregated, and how the parameters move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from demoa.aggregation.aggregator import Aggregate, Aggregator
from demoa.core.errors import ConfigError, RoundError
from demoa.core.seeding import generator
from demoa.core.types import Floats
from demoa.server.algorithms.algorithm import Algorithm, RoundView
from demoa.server.round import Alignment
from demoa.server.state import ServerState


class Step(NamedTuple):
    """What a step was made of: the aggregate, the f that the rule stood, each client's weight, (n,)."""

    aggregate: Aggregate
    f: int
    weights: Floats | None


class Optimizer:
    """An algorithm and an aggregator, over the rows of n clients and the server's own.

    Attributes:
        rows: How many rows are kept: one per client, then the centre of the rule and the running estimate of
            the algorithm, where they have one.
    """

    def __init__(self, algorithm: Algorithm, aggregator: Aggregator, clients: int, seed: int) -> None:
        """Check that the parts fit each other and that many clients."""
        aggregator.check(clients)
        if aggregator.rule.names_a_row and not algorithm.delayed:
            raise ConfigError(
                f"{type(aggregator.rule).__name__} points at one client's row, "
                f"and {type(algorithm).__name__} sees only the clients of a round; use demoa, hold or mifa"
            )
        self.algorithm = algorithm
        self.aggregator = aggregator
        self._clients = clients
        self._seed = seed
        self.rows = clients
        self._centre = self._take_row() if aggregator.rule.uses_centre else None
        self._estimate = self._take_row() if algorithm.estimate else None

    def _take_row(self) -> int:
        self.rows += 1
        return self.rows - 1

    def aggregate(self, state: ServerState, accepted: NDArray[np.intp]) -> Step | None:
        """Return what a step would be made of; None if the algorithm makes none. The parameters stay.

        Args:
            state: Its rows are aggregated.
            accepted: The rows that were written in this round, (k,), sorted.
        """
        view = RoundView(
            scale=state.scale,
            accepted=accepted,
            rows=self.rows,
            products=state.cache.products,
            estimate=self._estimate,
            last_lr=state.last_lr,
        )
        selection = self.algorithm.selection(view)
        if selection is None:
            return None
        f = self.aggregator.f
        if not self.algorithm.delayed:
            f = min(f, self.aggregator.tolerance(selection.shape[0]))
        stream = generator(self._seed, "mixing", state.round)
        found = self.aggregator.apply(state.cache, selection, f=f, centre=self._centre, generator=stream)
        weights = None
        if found.weights is not None:
            weights = np.zeros(self._clients)
            weights[slice(None) if self.algorithm.delayed else accepted] = found.weights
        return Step(found, f, weights)

    def alignment(self, state: ServerState, found: Aggregate) -> Alignment | None:
        """Return how a step along the aggregate stands to the clients' rows, where that costs no pass over them."""
        if found.products is None or found.square is None or self._estimate is not None:
            return None
        return Alignment(found.square, state.scale * found.products[: self._clients])

    def preview(self, state: ServerState, accepted: set[int], rows: Mapping[int, Any]) -> Any | None:
        """Return the aggregate, (d,), if some rows were these; None for no step. The state is put back after it.

        Args:
            state: What the rows are put into for a moment.
            accepted: The rows that were written in this round.
            rows: What others would be, by place, (d,) each.
        """
        store, scale = state.cache.store, state.scale
        before = {place: store.copy_of(place) for place in rows}
        try:
            state.scale = scale.copy()
            for place, row in rows.items():
                state.cache.blend(place, 0.0, 1.0, row)
                state.scale[place] = 1.0
            step = self.aggregate(state, np.array(sorted(accepted | set(rows)), np.intp))
            return None if step is None else step.aggregate.vector
        finally:
            state.scale = scale
            for place, copy in before.items():
                state.cache.put_back(place, copy)

    def move(self, state: ServerState, found: Aggregate, lr: float) -> Any:
        """Make the step and return its direction, (d,); the state is changed at the end, when nothing can fail."""
        store = state.cache.store
        direction = found.vector
        running = self.algorithm.estimate
        if self._estimate is not None and running is not None:
            direction = store.blended(store.read(self._estimate), running.keep, running.gain, found.vector)
        moved, square = store.moved(state.parameters, -lr, direction)
        if not np.isfinite(square):
            raise RoundError(f"round {state.round} would make the parameters infinite; lower lr, or set norm_limit")
        if self._centre is not None:
            state.cache.blend(self._centre, 0.0, 1.0, found.vector)
        if self._estimate is not None:
            state.cache.blend(self._estimate, 0.0, 1.0, direction)
        state.parameters, state.last_lr = moved, lr
        return direction
