"""What the server notes about each client: who answers, who is refused, and whose row stands against the others."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from demoa.server.round import ClientId, RoundReport
from demoa.server.server import Server


@dataclass
class Standing:
    """What is known of a client: how often it was asked, answered and was refused, and how it stood to the others."""

    asked: int = 0
    answered: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    weight: float = 0.0
    cosine: float | None = None

    @property
    def suspicion(self) -> float:
        """How much speaks against the client, 0 to 1: refusals, and a row that points away from the median client's."""
        refusals = sum(self.refused.values()) / self.asked if self.asked else 0.0
        against = 0.0 if self.cosine is None else (1 - self.cosine) / 2
        return max(refusals, against)


class Audit:
    """Standings of all clients, brought up to date after each round, and a line per round in a file."""

    def __init__(self, folder: Path | None) -> None:
        """Take the folder that the lines go into; None keeps them in memory only."""
        self._path = None if folder is None else folder / "audit.jsonl"
        self.standings: dict[ClientId, Standing] = {}

    def note(self, server: Server, report: RoundReport, facts: dict[str, Any]) -> None:
        """Take what a round came to."""
        asked = [*report.accepted, *report.missing]
        for client in asked:
            standing = self.standings.setdefault(client, Standing())
            standing.asked += 1
            standing.answered += client in report.accepted
            if client in report.rejected:
                reason = report.rejected[client]
                standing.refused[reason] = standing.refused.get(reason, 0) + 1
        if report.weights is not None:
            for client, weight in zip(server.clients, report.weights, strict=True):
                self.standings.setdefault(client, Standing()).weight = float(weight)
        for client, cosine in _cosines(server).items():
            self.standings.setdefault(client, Standing()).cosine = cosine
        self._write(
            {
                "round": report.number,
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "answered": list(report.accepted),
                "missing": list(report.missing),
                "refused": {str(client): reason for client, reason in report.rejected.items()},
                **facts,
            }
        )

    def table(self) -> list[dict[str, Any]]:
        """Return one row per client, the most suspicious first."""
        rows = [
            {
                "client": client,
                "suspicion": round(standing.suspicion, 3),
                "asked": standing.asked,
                "answered": standing.answered,
                "refused": dict(standing.refused),
                "weight": standing.weight,
                "cosine": standing.cosine,
            }
            for client, standing in self.standings.items()
        ]
        return sorted(rows, key=lambda row: -float(str(row["suspicion"])))

    def notes(self) -> list[tuple[ClientId, dict[str, Any]]]:
        """Return all standings, as JSON holds them."""
        return [(client, asdict(standing)) for client, standing in self.standings.items()]

    def restore(self, notes: list[tuple[ClientId, dict[str, Any]]]) -> None:
        """Take over the standings of an earlier run."""
        self.standings = {client: Standing(**standing) for client, standing in notes}

    def _write(self, line: dict[str, Any]) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")


def _cosines(server: Server) -> dict[ClientId, float]:
    """Return the median cosine of each client's row with the others', from the table: no row is read."""
    rows = server.inspect()
    products = rows.products()
    norms = np.sqrt(np.clip(np.diagonal(products), 0, None))
    known = np.flatnonzero(norms > 0)
    if len(known) < 3:
        return {}
    cosines = products[np.ix_(known, known)] / np.outer(norms[known], norms[known])
    np.fill_diagonal(cosines, np.nan)
    middle = np.nanmedian(cosines, axis=1)
    return {server.clients[place]: float(np.clip(value, -1, 1)) for place, value in zip(known, middle, strict=True)}
