"""What clients do when they are asked."""

from demoa.clients.worker import Worker

__all__ = ["Worker"]
