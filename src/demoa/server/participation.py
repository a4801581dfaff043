"""How often each client's vector arrives, learned from who was asked and who answered."""

from __future__ import annotations

from typing import Any

import numpy as np

from demoa.core.types import Floats


class Participation:
    """An estimate of p_i, the probability that client i's vector arrives in a round.

    A server draws clients with a probability that it knows, p, and some of those that it asks do not answer. With a_i
    answers to q_i questions, p_i = p (a_i + k) / (q_i + k): everyone is taken to answer until it is seen not to.

    >>> seen = Participation(["a", "b"])
    >>> for _ in range(10):
    ...     seen.note(asked=["a", "b"], answered=["a"])
    >>> seen.estimate(["a", "b"], 0.5).tolist()
    [0.5, 0.25]
    """

    def __init__(self, clients: Any = (), prior: float = 10.0) -> None:
        """Take the clients, and k: after how many questions what was seen weighs as much as the belief before it."""
        self._prior = prior
        self.asked = dict.fromkeys(clients, 0)
        self.answered = dict.fromkeys(clients, 0)

    def note(self, asked: Any, answered: Any) -> None:
        """Take what happened in a round."""
        for client in asked:
            self.asked[client] = self.asked.get(client, 0) + 1
        for client in answered:
            self.answered[client] = self.answered.get(client, 0) + 1

    def estimate(self, clients: Any, drawn: float | Floats) -> Floats:
        """Return p_i of some clients, (n,), that are drawn with a known probability, one or one for each."""
        asked = np.array([self.asked.get(client, 0) for client in clients], float)
        answered = np.array([self.answered.get(client, 0) for client in clients], float)
        estimate: Floats = drawn * (answered + self._prior) / (asked + self._prior)
        return estimate
