"""Hypothesis profiles: the same examples every time, new ones with HYPOTHESIS_PROFILE=explore. Long tests first."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("ci"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

LONG = ("test_deployment.py", "test_simulation.py", "test_commands.py", "test_sharded.py", "test_mapped.py")
"""Files with tests that take long and mostly wait: they begin first, so that nothing waits for them at the end."""


def pytest_collection_modifyitems(items):
    """Put long tests first."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
