"""DeMoA on Flower: a strategy for the server, and apps for the clients."""

try:
    import flwr  # noqa: F401
except ImportError as error:
    raise ImportError("demoa.flower needs Flower: pip install 'demoa[flower]'") from error

from demoa.flower.client import make_client_app
from demoa.flower.strategy import DelayedMomentumStrategy, NobodyAnswers

__all__ = ["DelayedMomentumStrategy", "NobodyAnswers", "make_client_app"]
