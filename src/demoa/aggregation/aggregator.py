"""A rule behind its mixings, applied to rows of a cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from demoa.aggregation.cache import RowCache
from demoa.aggregation.decision import Combination
from demoa.aggregation.lookup import table_of
from demoa.aggregation.mixing import MIXINGS, Mixing
from demoa.aggregation.rules import RULE_ALIASES, RULES, Rule
from demoa.aggregation.rules.rule import check_tolerance
from demoa.core.checks import whole_number
from demoa.core.errors import ConfigError
from demoa.core.registry import build
from demoa.core.types import Floats, Matrix


@dataclass(frozen=True)
class Aggregate:
    """What came out of one aggregation.

    Attributes:
        vector: The aggregate, (d,), in the library of the store.
        weights: The weight in it of each row that was aggregated, (m,); None where a coordinate-wise rule gives
            each coordinate weights of its own.
        notes: Figures that the rule found worth recording.
        stored: The weight in it of each row of the cache, (N,), None where there are no weights.
        products: Its inner products with them, (N,), where the table was looked at.
    """

    vector: Any
    weights: Floats | None
    notes: Mapping[str, float]
    stored: Floats | None = None
    products: Floats | None = None

    @property
    def square(self) -> float | None:
        """Its squared norm, where the inner products are known."""
        return None if self.stored is None or self.products is None else float(self.stored @ self.products)


class Aggregator:
    """A rule, the mixings before it, in order, and the number f of faulty rows they must stand."""

    def __init__(self, rule: str | Rule, *, f: int, mixing: Sequence[str | Mixing] | str | Mixing = ()) -> None:
        """Look the parts up by name, or take them ready made."""
        chain = mixing if isinstance(mixing, list | tuple) else [mixing]
        named = RULE_ALIASES.get(rule, rule) if isinstance(rule, str) else rule
        self.rule = build("rule", Rule, RULES, named)  # type: ignore[type-abstract]
        self.mixing = tuple(build("mixing", Mixing, MIXINGS, step) for step in chain)
        self.f = whole_number("f", f)

    def tolerance(self, rows: int) -> int:
        """Return the largest number of faulty rows out of `rows` that every part admits."""
        most = rows
        for step in self.mixing:
            most = min(most, step.tolerance(rows))
            rows = step.rows_out(rows)
        return min(most, self.rule.tolerance(rows))

    @property
    def looks_at_table(self) -> bool:
        """Whether the inner products of all rows are needed; centered clipping needs them of rows that are mixed."""
        parts = (self.rule, *self.mixing)
        return any(part.looks_at_table for part in parts) or bool(self.mixing and self.rule.uses_centre)

    def check(self, rows: int) -> None:
        """Raise ToleranceError or ConfigError if the parts cannot stand f faulty rows out of so many."""
        parts = [*(type(step).__name__ for step in self.mixing), type(self.rule).__name__]
        check_tolerance(" + ".join(parts), rows, self.f, self.tolerance(rows))
        if self.rule.names_a_row and not all(step.keeps_rows for step in self.mixing):
            raise ConfigError(f"{parts[-1]} points at one client's row, which {' + '.join(parts[:-1])} mixes away")
        for step in self.mixing:
            rows = step.rows_out(rows)
        self.rule.check(rows, self.f)

    def apply(
        self,
        cache: RowCache,
        selection: Matrix,
        *,
        f: int,
        centre: int | None,
        generator: np.random.Generator,
    ) -> Aggregate:
        """Aggregate the m rows selection @ rows of the cache.

        Args:
            cache: N rows and their inner products.
            selection: Which combinations of them the first mixing sees, (m, N), sparse.
            f: How many of the m may be faulty, at most `tolerance(m)`.
            centre: The row of the cache that holds the previous aggregate, if there is one.
            generator: What mixings draw from.
        """
        table = table_of(cache, selection, centre)
        mixed: Matrix = None
        for step in self.mixing:
            mix = step.matrix(table, f, generator)
            table, mixed = table.mixed(mix), mix if mixed is None else mix @ mixed
        matrix = selection if mixed is None else csr_array(mixed @ selection)
        decision = self.rule.decide(table, f)
        if not isinstance(decision, Combination):
            return Aggregate(cache.store.coordinatewise(matrix, decision), None, {})
        weights = decision.weights if mixed is None else decision.weights @ mixed
        stored = decision.weights @ matrix
        if centre is not None:
            stored[centre] += decision.centre
        products = None
        if (known := cache.known_products) is not None:  # a mean needs none, and asks for none
            used = np.flatnonzero(stored)
            products = stored[used] @ known[used]
        return Aggregate(cache.combine(stored), weights, decision.notes, stored, products)
