"""The public face: what `import demoa` offers, and what it costs."""

import subprocess
import sys

import demoa


def test_public_names_are_listed_once_and_exist():
    assert demoa.__all__ == sorted(set(demoa.__all__), key=lambda name: (name[0].islower(), name))
    for name in demoa.__all__:
        assert getattr(demoa, name) is not None


def test_every_family_member_has_a_line_of_description():
    for family in (demoa.rules.RULES, demoa.mixing.MIXINGS, demoa.algorithms.ALGORITHMS):
        for member in family.values():
            assert member.__doc__
            assert len(member.__doc__.splitlines()[0]) > 20


def test_torch_is_not_imported_for_numpy_users():
    code = """
import sys, numpy as np, demoa
demoa.aggregate(np.eye(3), "median", f=1)
print("torch" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
