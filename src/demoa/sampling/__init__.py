"""Who takes part in a round. `SAMPLINGS` is the whole list."""

from collections.abc import Mapping

from demoa.sampling.bernoulli import Bernoulli, PerClient
from demoa.sampling.cyclic import Cyclic
from demoa.sampling.fixed_size import FixedSize
from demoa.sampling.sampling import Sampling
from demoa.sampling.trace import Trace

SAMPLINGS: Mapping[str, type[Sampling]] = {
    "bernoulli": Bernoulli,
    "cyclic": Cyclic,
    "fixed_size": FixedSize,
    "per_client": PerClient,
    "trace": Trace,
}
"""Every sampling by its name."""

__all__ = ["SAMPLINGS", "Bernoulli", "Cyclic", "FixedSize", "PerClient", "Sampling", "Trace"]
