"""Where the jobs of a sweep are done."""

from demoa.sweep.engines.engine import Engine
from demoa.sweep.engines.local import LocalEngine

__all__ = ["Engine", "LocalEngine"]
