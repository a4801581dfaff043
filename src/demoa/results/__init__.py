"""What a run leaves behind."""

from demoa.results.folder import RunFolder

__all__ = ["RunFolder"]
