"""A scale on which accuracies that are close to 100 % can be told apart: that of the log odds, log(p / (1 - p))."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from demoa.core.errors import ConfigError
from demoa.core.types import Floats

TICKS = (1, 2, 5, 10, 20, 50, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9)
"""In percent; accuracies that lie outside are drawn at the edge. Bands of standard deviation are cut off there."""
NOTE = "(log odds)"
"""What stands beside an axis that is stretched."""
FEW = 4
"""Where there would be fewer ticks, there are more of them, at even distances."""


def stretch(axis: Any, values: Floats) -> None:
    """Give the vertical axis this scale, from the tick below all values, in percent, to the tick above them."""
    low = max([tick for tick in TICKS[:-1] if tick < min(values, default=50)], default=TICKS[0])
    high = min([tick for tick in TICKS[1:] if tick > max(values, default=50)], default=TICKS[-1])
    axis.set_yscale("function", functions=(_odds, _percent))
    axis.set_ylim(low, high)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    if len(ticks) < FEW:
        ticks = [
            tick for tick in MaxNLocator(2 * FEW, steps=[1, 2, 5, 10]).tick_values(low, high) if low <= tick <= high
        ]
    axis.yaxis.set_major_locator(FixedLocator(ticks))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter("{x:g}")


def not_stretched(metric: str) -> ConfigError:
    """Return what is wrong with asking for this scale for something else."""
    return ConfigError(f"--stretch spreads accuracies out near 100 %, and {metric} is none; leave it out")


def _odds(percent: Floats) -> Floats:
    inside = np.clip(percent, TICKS[0], TICKS[-1])
    return np.log(inside / (100 - inside))


def _percent(odds: Floats) -> Floats:
    return np.asarray(100 / (1 + np.exp(-odds)))
