"""How Byzantine clients lie. `ATTACKS` is the whole list."""

from collections.abc import Mapping

from demoa.attacks.alie import Alie
from demoa.attacks.attack import Attack, AttackView, HonestRows, NoAttack
from demoa.attacks.distance_bound import MinMax, MinSum
from demoa.attacks.flips import BitFlip, Inf, LabelFlip
from demoa.attacks.gaussian import Gaussian
from demoa.attacks.ipm import Ipm
from demoa.attacks.mimic import Mimic
from demoa.attacks.search import AlieSearch, IpmSearch
from demoa.attacks.shift_back import ShiftBack

ATTACKS: Mapping[str, type[Attack]] = {
    "alie": Alie,
    "alie_search": AlieSearch,
    "bit_flip": BitFlip,
    "gaussian": Gaussian,
    "inf": Inf,
    "ipm": Ipm,
    "ipm_search": IpmSearch,
    "label_flip": LabelFlip,
    "mimic": Mimic,
    "min_max": MinMax,
    "min_sum": MinSum,
    "none": NoAttack,
    "shift_back": ShiftBack,
}
"""Every attack by its name."""

ATTACK_ALIASES: Mapping[str, str] = {"BF": "bit_flip", "LF": "label_flip"}
"""The short names of the paper."""

__all__ = [
    "ATTACKS",
    "ATTACK_ALIASES",
    "Alie",
    "AlieSearch",
    "Attack",
    "AttackView",
    "BitFlip",
    "Gaussian",
    "HonestRows",
    "Inf",
    "Ipm",
    "IpmSearch",
    "LabelFlip",
    "Mimic",
    "MinMax",
    "MinSum",
    "NoAttack",
    "ShiftBack",
]
