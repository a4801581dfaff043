"""What is measured: accuracy, and how far the aggregate is from the honest mean."""

from demoa.metrics.accuracy import Evaluation, evaluate
from demoa.metrics.heterogeneity import Heterogeneity, fit_heterogeneity
from demoa.metrics.majority import majority_probability, majority_probability_in_run

__all__ = [
    "Evaluation",
    "Heterogeneity",
    "evaluate",
    "fit_heterogeneity",
    "majority_probability",
    "majority_probability_in_run",
]
