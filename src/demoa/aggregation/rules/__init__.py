"""Robust aggregation rules, one per file. `RULES` is the whole list."""

from collections.abc import Mapping

from demoa.aggregation.rules.bulyan import Bulyan
from demoa.aggregation.rules.centered_clip import CenteredClip
from demoa.aggregation.rules.covariance_filter import CovarianceFilter
from demoa.aggregation.rules.divide_and_conquer import DivideAndConquer
from demoa.aggregation.rules.geometric_median import GeometricMedian
from demoa.aggregation.rules.krum import Krum, MultiKrum
from demoa.aggregation.rules.mean import Mean
from demoa.aggregation.rules.mean_around_median import MeanAroundMedian
from demoa.aggregation.rules.median import Median
from demoa.aggregation.rules.minimum_diameter import MinimumDiameter
from demoa.aggregation.rules.monna import Monna
from demoa.aggregation.rules.rule import Rule
from demoa.aggregation.rules.smallest_eigenvalue import SmallestEigenvalue
from demoa.aggregation.rules.trimmed_mean import TrimmedMean

RULES: Mapping[str, type[Rule]] = {
    "bulyan": Bulyan,
    "caf": CovarianceFilter,
    "centered_clip": CenteredClip,
    "dnc": DivideAndConquer,
    "geometric_median": GeometricMedian,
    "krum": Krum,
    "mda": MinimumDiameter,
    "mean": Mean,
    "meamed": MeanAroundMedian,
    "median": Median,
    "monna": Monna,
    "multi_krum": MultiKrum,
    "smea": SmallestEigenvalue,
    "trimmed_mean": TrimmedMean,
}
"""Every rule by its name."""

RULE_ALIASES: Mapping[str, str] = {
    "avg": "mean",
    "cclip": "centered_clip",
    "cm": "median",
    "cp": "centered_clip",
    "rfa": "geometric_median",
}
"""The short names of the paper."""

__all__ = [
    "RULES",
    "RULE_ALIASES",
    "Bulyan",
    "CenteredClip",
    "CovarianceFilter",
    "DivideAndConquer",
    "GeometricMedian",
    "Krum",
    "Mean",
    "MeanAroundMedian",
    "Median",
    "MinimumDiameter",
    "Monna",
    "MultiKrum",
    "Rule",
    "SmallestEigenvalue",
    "TrimmedMean",
]
