"""What runs and studies leave behind, and how to read it."""

from demoa.results.folder import RunFolder
from demoa.results.frames import export, load
from demoa.results.reader import read_results
from demoa.results.run import Results, RunResult

__all__ = ["Results", "RunFolder", "RunResult", "export", "load", "read_results"]
