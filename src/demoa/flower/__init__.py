"""DeMoA on Flower: a strategy for the server, and apps for the clients."""

from demoa.flower.client import make_client_app
from demoa.flower.strategy import DelayedMomentumStrategy, NobodyAnswers

__all__ = ["DelayedMomentumStrategy", "NobodyAnswers", "make_client_app"]
