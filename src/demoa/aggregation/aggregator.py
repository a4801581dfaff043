"""A rule behind its mixings, applied to rows of a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from demoa.aggregation.cache import RowCache
from demoa.aggregation.decision import Combination
from demoa.aggregation.mixing import MIXINGS, Mixing
from demoa.aggregation.rules import RULE_ALIASES, RULES, Rule
from demoa.aggregation.rules.rule import check_tolerance
from demoa.aggregation.table import Table, congruence
from demoa.core.registry import build
from demoa.core.types import Floats


@dataclass(frozen=True)
class Aggregate:
    """What came out of one aggregation.

    Attributes:
        vector: The aggregate, (d,), in the library of the store.
        weights: The weight of each row of the store in it, (N,); None where a coordinate-wise rule gives
            each coordinate weights of its own.
        notes: Figures that the rule found worth recording.
    """

    vector: Any
    weights: Floats | None
    notes: Mapping[str, float]


class Aggregator:
    """A rule, the mixings before it, in order, and the number f of faulty rows they must stand."""

    def __init__(self, rule: str | Rule, *, f: int, mixing: Sequence[str | Mixing] | str | Mixing = ()) -> None:
        """Look the parts up by name, or take them ready made."""
        chain = [mixing] if isinstance(mixing, str | Mixing) else mixing
        self.rule = build("rule", RULES, RULE_ALIASES.get(rule, rule) if isinstance(rule, str) else rule)
        self.mixing = tuple(build("mixing", MIXINGS, step) for step in chain)
        self.f = f

    def tolerance(self, rows: int) -> int:
        """Return the largest number of faulty rows out of `rows` that every part admits."""
        most = rows
        for step in self.mixing:
            most = min(most, step.tolerance(rows))
            rows = step.rows_out(rows)
        return min(most, self.rule.tolerance(rows))

    def check(self, rows: int) -> None:
        """Raise ToleranceError if f is beyond what the parts admit for that many rows."""
        parts = [*(type(step).__name__ for step in self.mixing), type(self.rule).__name__]
        check_tolerance(" + ".join(parts), rows, self.f, self.tolerance(rows))

    def apply(
        self,
        cache: RowCache,
        selection: Floats,
        *,
        f: int,
        centre: int | None,
        generator: np.random.Generator,
    ) -> Aggregate:
        """Aggregate the m rows selection @ rows of the cache.

        Args:
            cache: N rows and their inner products.
            selection: Which combinations of them the first mixing sees, (m, N).
            f: How many of the m may be faulty, at most `tolerance(m)`.
            centre: The row of the cache that holds the previous aggregate, if there is one.
            generator: What mixings draw from.
        """
        table = _table_of(cache, selection, centre)
        matrix = selection
        for step in self.mixing:
            mix = step.matrix(table, f, generator)
            table, matrix = table.mixed(mix), mix @ matrix
        decision = self.rule.decide(table, f)
        if not isinstance(decision, Combination):
            return Aggregate(cache.store.coordinatewise(matrix, decision), None, {})
        weights = decision.weights @ matrix
        if centre is not None:
            weights[centre] += decision.centre
        return Aggregate(cache.store.combine(weights), weights, decision.notes)


def _table_of(cache: RowCache, selection: Floats, centre: int | None) -> Table:
    points = np.vstack([selection, np.zeros(selection.shape[1])])
    if centre is not None:
        points[-1, centre] = 1.0
    return Table(len(selection), lambda: congruence(points, cache.products()))
