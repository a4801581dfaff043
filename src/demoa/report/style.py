"""How results look: names as papers write them, and colours that everyone can tell apart."""

from __future__ import annotations

NAMES = {
    "accuracy": "test accuracy, %",
    "aggregation_error": "distance of the step from the honest mean",
    "aggregation.mixing": "mixing",
    "aggregation.rule": "rule",
    "aggregation.rule.name": "rule",
    "algorithm": "algorithm",
    "algorithm.alpha": "alpha",
    "algorithm.clip": "clipped to",
    "algorithm.name": "algorithm",
    "algorithm.radius": "λ",
    "alie": "ALIE",
    "alie_search": "ALIE, searched",
    "attack": "attack",
    "attack.name": "attack",
    "bit_flip": "bit flip",
    "by_label": "by label",
    "byzantine_weight": "Byzantine clients' share of the step's weights",
    "cclip": "centered clipping",
    "centered_clip": "centered clipping",
    "clipped": "share of rows that are clipped",
    "cm": "median",
    "deepest_fall": "how far test accuracy fell at most below its best so far",
    "demoa": "DeMoA",
    "fedavg": "FedAvg",
    "fedcm": "FedCM",
    "gaussian": "Gaussian noise",
    "geometric_median": "geometric median",
    "iid": "IID",
    "ipm": "IPM",
    "ipm_search": "IPM, searched",
    "krum": "Krum",
    "label_flip": "label flip",
    "late_accuracy": "mean test accuracy over the second half of the rounds",
    "late_aggregation_error": "mean distance of a step from the honest mean, over the second half of the rounds",
    "late_byzantine_weight": "Byzantine clients' share of the weights of steps, over the second half of the rounds",
    "late_clipped": "share of rows that are clipped, over the second half of the rounds",
    "late_loss": "mean test loss over the second half of the rounds",
    "late_step_age": "rounds since the clients that the rule weighs last answered, over the second half of the rounds",
    "late_step_length": "mean length of a step beside the honest mean, over the second half of the rounds",
    "late_train_loss": "mean training loss over the second half of the rounds",
    "loss": "test loss",
    "lowest_late_accuracy": "lowest test accuracy that was measured in the second half of the rounds",
    "majority_fall": "how far test accuracy fell from before a Byzantine-majority round to after it",
    "marina_pp": "Byz-VR-MARINA-PP",
    "mifa": "MIFA",
    "min_max": "min-max",
    "min_sum": "min-sum",
    "multi_krum": "Multi-Krum",
    "none": "none",
    "rfa": "geometric median",
    "run.lr": "lr",
    "run.rounds": "rounds",
    "sampling.p": "p",
    "shift_back": "shift-back",
    "step_age": "rounds since the clients that the rule weighs last answered",
    "step_length": "length of the step beside the honest mean",
    "task.partition": "split",
    "test_accuracy": "test accuracy",
    "test_loss": "test loss",
    "task.partition.name": "split",
    "train_loss": "training loss",
    "trimmed_mean": "trimmed mean",
}
"""What a key, a label or a metric is called where people read it."""

COLOURS = {"demoa": "#0072B2", "fedavg": "#D55E00", "fedcm": "#E69F00", "marina_pp": "#009E73", "hold": "#CC79A7"}
OTHER_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#7F7F7F", "#B8A800")
MARK = "#8a8f98"
"""The colour of Byzantine-majority rounds."""


def name_of(word: str) -> str:
    """Return what a key or label is called where people read it.

    >>> name_of("marina_pp"), name_of("my_own.rules:Best")
    ('Byz-VR-MARINA-PP', 'my_own.rules:Best')
    """
    return NAMES.get(word, word)


def is_logarithmic(metric: str) -> bool:
    """Say whether a metric is drawn on a log scale.

    >>> is_logarithmic("late_loss"), is_logarithmic("accuracy"), is_logarithmic("step_age")
    (True, False, False)
    """
    return metric.endswith(("loss", "error"))


def said(labels: dict[str, str]) -> str:
    """Return what some axes are, in words.

    >>> said({"aggregation.rule": "krum", "sampling.p": "0.1"})
    'Krum, p = 0.1'
    """
    return ", ".join(named(axis, label) for axis, label in labels.items())


def named(axis: str | None, label: str) -> str:
    """Return what a label of an axis is called where it stands alone: a number says of what.

    >>> named("sampling.p", "0.1"), named("attack.name", "alie")
    ('p = 0.1', 'ALIE')
    """
    return f"{name_of(axis)} = {label}" if axis and _is_number(label) else name_of(label)


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def colours_of(labels: list[str]) -> dict[str, str]:
    """Return a colour for each label: the well-known ones keep theirs, the others take what is free."""
    taken = {label: COLOURS[label] for label in labels if label in COLOURS}
    free = [colour for colour in OTHER_COLOURS if colour not in taken.values()] or list(OTHER_COLOURS)
    others = [label for label in labels if label not in COLOURS]
    return taken | {label: free[place % len(free)] for place, label in enumerate(others)}


def dashes_of(labels: list[str]) -> dict[str, str]:
    """Return a kind of line for each label: solid, until there are no more colours."""
    kinds = ("solid", "dashed", "dotted")
    return {label: kinds[place // len(OTHER_COLOURS) % len(kinds)] for place, label in enumerate(labels)}
