import pytest

import demoa
from demoa.aggregation.rules import RULES
from demoa.core.errors import unknown_name
from demoa.core.registry import build, describe


def test_one_hierarchy():
    for error in (
        demoa.ConfigError,
        demoa.ToleranceError,
        demoa.UpdateRejected,
        demoa.RoundError,
        demoa.StoreError,
    ):
        assert issubclass(error, demoa.DemoaError)


def test_unknown_names_point_to_the_closest():
    assert "did you mean 'median'" in str(unknown_name("rule", "medain", RULES))
    assert "did you mean" not in str(unknown_name("rule", "zzzzzz", RULES))


def test_unknown_options_are_refused_not_dropped():
    with pytest.raises(demoa.ConfigError, match="unknown option of rule centered_clip 'tua'; did you mean 'tau'"):
        build("rule", demoa.rules.Rule, RULES, "centered_clip", tua=1.0)
    with pytest.raises(demoa.ConfigError, match="unknown option of rule median 'f'"):
        build("rule", demoa.rules.Rule, RULES, "median", f=1)
    with pytest.raises(demoa.ConfigError, match="already made"):
        build("rule", demoa.rules.Rule, RULES, demoa.rules.Median(), tau=1.0)


def test_describe_names_every_option():
    assert describe(demoa.rules.CenteredClip(tau=2.0)) == {"name": "CenteredClip", "tau": 2.0, "steps": 3}
