"""Accuracy curves of several runs, with the Byzantine-majority rounds marked."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from demoa.core.errors import StoreError
from demoa.results import RunFolder
from demoa.results.folder import Record

COLOURS = {"demoa": "#0072B2", "fedavg": "#D55E00", "fedcm": "#E69F00", "marina_pp": "#009E73", "hold": "#CC79A7"}
LABELS = {"demoa": "DeMoA", "fedavg": "FedAvg", "fedcm": "FedCM", "marina_pp": "Byz-VR-MARINA-PP"}
TITLES = {"alie": "ALIE", "ipm": "IPM", "none": "no attack"}
MARK = "#999999"


def draw(folders: list[Path], target: Path) -> None:
    """Draw one panel per attack, one curve per run, and a tick for each round in which most clients lied."""
    runs = [(RunFolder(path).spec()[1], RunFolder(path).records()) for path in folders]
    labelled = any("accuracy" in record for _, records in runs for record in records)
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
                points = [(record["round"], _height(record, labelled)) for record in records if "loss" in record]
                panel.plot(*zip(*points, strict=True), label=LABELS.get(name, name), color=COLOURS.get(name), lw=1.6)
                majority |= {record["round"] for record in records if record["majority"]}
            # A tick at the foot of the panel, whatever its scale.
            panel.vlines(sorted(majority), 0, 0.04, color=MARK, lw=0.8, transform=panel.get_xaxis_transform())
            panel.set_title(TITLES.get(attack, attack.replace("_", " ")))
            panel.set_xlabel("round")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            panel.set(**({"ylim": (0, 101)} if labelled else {"yscale": "log"}))
            panel.grid(axis="y", lw=0.3)
        panels[0].set_ylabel("test accuracy, %" if labelled else "test loss")
        panels[0].vlines([], 0, 1, color=MARK, lw=0.8, label="Byzantine-majority round")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=min(len(labels), 1 + 2 * len(attacks)), frameon=False
        )
        try:
            figure.savefig(target, dpi=200)
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot draw into {target}: {error}") from error


def _height(record: Record, labelled: bool) -> float:
    """Return where a record stands on the vertical axis; nowhere if its loss is infinite."""
    if labelled:
        return 100 * float(record.get("accuracy", "nan"))
    return float("nan") if record["loss"] is None else float(record["loss"])
