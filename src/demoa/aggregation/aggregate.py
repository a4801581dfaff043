"""One call that aggregates rows, for people who want only the rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from demoa.aggregation.aggregator import Aggregator
from demoa.aggregation.cache import RowCache
from demoa.aggregation.mixing import Mixing
from demoa.aggregation.rules import Rule
from demoa.aggregation.stores import DenseStore, Store
from demoa.core.arrays import LARGEST_NORM, check_floats, dtype_name, like, on_cpu, to_numpy
from demoa.core.errors import ConfigError, UpdateRejected
from demoa.core.seeding import generator


def aggregate(
    rows: Any,
    rule: str | Rule,
    *,
    f: int,
    mixing: Sequence[str | Mixing] | str | Mixing = (),
    centre: Any = None,
    seed: int = 0,
) -> Any:
    """Return the robust aggregate of the rows, (d,), in their own library, dtype and device.

    Args:
        rows: One row per client, (n, d): a NumPy array or torch tensor, float32 or float64. Not changed.
        rule: A name, such as "krum", or a rule made with options, such as CenteredClip(tau=1.0).
        f: How many rows may be faulty; there is no default.
        mixing: Pre-aggregations, applied in this order, by name or ready made.
        centre: Where rules that start from the previous aggregate start, (d,); zero if not given.
        seed: What random mixings draw from.

    Raises:
        ToleranceError: The rule cannot stand f faulty rows out of n.
        UpdateRejected: A row holds NaN or infinity.

    >>> import numpy as np
    >>> rows = np.array([[1.0, 1.0], [1.1, 0.9], [0.9, 1.1], [1.0, 1.2], [-80.0, 70.0]])
    >>> aggregate(rows, "geometric_median", f=1, mixing="nnm").round(2).tolist()
    [0.98, 1.07]
    """
    check_floats(rows, 2, "rows")
    count = len(rows)
    aggregator = Aggregator(rule, f=f, mixing=mixing)
    aggregator.check(count)
    if centre is not None:
        _check_centre(centre, rows, aggregator.rule)
    store = _store_of(rows, centre)
    for index, row in enumerate(rows):
        if not np.sqrt(store.squared_norm(store.adopt(row))) <= LARGEST_NORM[dtype_name(rows)]:
            raise UpdateRejected(index, "not_finite", "the row holds NaN, infinity or huge numbers; leave it out")
    result = aggregator.apply(
        RowCache(store, stale=range(store.rows)),
        csr_array((np.ones(count), np.arange(count), np.arange(count + 1)), shape=(count, store.rows)),
        f=f,
        centre=None if centre is None else count,
        generator=generator(seed, "mixing", 0),
    )
    return like(rows, result.vector) if on_cpu(rows) else result.vector


def _store_of(rows: Any, centre: Any) -> Store:
    """Return the rows as a store, with the centre, if there is one, as its last row (which copies them)."""
    if on_cpu(rows):
        array = to_numpy(rows)
        return DenseStore(array if centre is None else np.vstack([array, to_numpy(centre)]))
    import torch

    from demoa.aggregation.stores.device import DeviceStore

    return DeviceStore(rows if centre is None else torch.vstack([rows, centre]))


def _check_centre(centre: Any, rows: Any, rule: Rule) -> None:
    if not rule.uses_centre:
        raise ConfigError(f"{type(rule).__name__} starts from no centre; leave centre out")
    check_floats(centre, 1, "centre")
    if dtype_name(centre) != dtype_name(rows) or centre.shape[0] != rows.shape[1]:
        raise ConfigError(
            f"centre must be {dtype_name(rows)} of {rows.shape[1]} entries, like the rows; "
            f"got {dtype_name(centre)} of {centre.shape[0]}"
        )
    if not bool(abs(centre).max() <= LARGEST_NORM[dtype_name(rows)]):
        raise ConfigError("centre holds NaN, infinity or huge numbers; pass the last finite aggregate, or None")
