"""Pre-aggregations, as matrices. `MIXINGS` is the whole list; they compose in any order."""

from collections.abc import Mapping

from demoa.aggregation.mixing.adaptive_clip import AdaptiveClip
from demoa.aggregation.mixing.bucketing import Bucketing
from demoa.aggregation.mixing.clip import Clip
from demoa.aggregation.mixing.mixing import Mixing
from demoa.aggregation.mixing.nearest_neighbours import NearestNeighbours

MIXINGS: Mapping[str, type[Mixing]] = {
    "arc": AdaptiveClip,
    "bucketing": Bucketing,
    "clip": Clip,
    "nnm": NearestNeighbours,
}
"""Every mixing by its name."""

__all__ = ["MIXINGS", "AdaptiveClip", "Bucketing", "Clip", "Mixing", "NearestNeighbours"]
