"""Accuracy curves of several runs, with the Byzantine-majority rounds marked."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from demoa.core.errors import StoreError
from demoa.results import RunFolder

COLOURS = {"demoa": "#0072B2", "fedavg": "#D55E00", "fedcm": "#E69F00", "marina_pp": "#009E73", "hold": "#CC79A7"}
LABELS = {"demoa": "DeMoA", "fedavg": "FedAvg", "fedcm": "FedCM", "marina_pp": "Byz-VR-MARINA-PP"}
MARK = "#999999"


def draw(folders: list[Path], target: Path) -> None:
    """Draw one panel per attack, one curve per run, and a tick for each round in which most clients lied."""
    runs = [(RunFolder(path).spec()[1], RunFolder(path).records()) for path in folders]
    attacks = list(dict.fromkeys(spec["attack"]["name"] for spec, _ in runs))
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(4.2 * len(attacks), 3.2), layout="constrained")
        panels = figure.subplots(1, len(attacks), sharey=True, squeeze=False)[0]
        for panel, attack in zip(panels, attacks, strict=True):
            majority: set[int] = set()
            for spec, records in runs:
                if spec["attack"]["name"] != attack:
                    continue
                name = spec["algorithm"]["name"]
                points = [(record["round"], 100 * record["accuracy"]) for record in records if "accuracy" in record]
                panel.plot(*zip(*points, strict=True), label=LABELS.get(name, name), color=COLOURS.get(name), lw=1.6)
                majority |= {record["round"] for record in records if record["majority"]}
            panel.vlines(sorted(majority), 0, 4, color=MARK, lw=0.8)
            panel.set_title(attack)
            panel.set_xlabel("round")
            panel.set_ylim(0, 101)
            panel.grid(axis="y", lw=0.3)
        panels[0].set_ylabel("test accuracy, %")
        panels[0].vlines([], 0, 1, color=MARK, lw=0.8, label="Byzantine-majority round")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 1 + 2 * len(attacks)), frameon=False
        )
        try:
            figure.savefig(target, dpi=200)
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot draw into {target}: {error}") from error
