"""What is measured: accuracy, and how far the aggregate is from the honest mean."""

from demoa.metrics.accuracy import Evaluation, evaluate
from demoa.metrics.majority import majority_probability, majority_probability_in_run

__all__ = ["Evaluation", "evaluate", "majority_probability", "majority_probability_in_run"]
