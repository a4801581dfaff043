"""Who holds which examples. `PARTITIONS` is the whole list."""

from collections.abc import Mapping

from demoa.partition.by_label import ByLabel, Similarity
from demoa.partition.dirichlet import Dirichlet
from demoa.partition.iid import Iid
from demoa.partition.long_tail import LongTail
from demoa.partition.one_label import OneLabel
from demoa.partition.partition import Partition

PARTITIONS: Mapping[str, type[Partition]] = {
    "by_label": ByLabel,
    "dirichlet": Dirichlet,
    "iid": Iid,
    "long_tail": LongTail,
    "one_label": OneLabel,
    "similarity": Similarity,
}
"""Every partition by its name."""

__all__ = ["PARTITIONS", "ByLabel", "Dirichlet", "Iid", "LongTail", "OneLabel", "Partition", "Similarity"]
