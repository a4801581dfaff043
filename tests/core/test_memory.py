"""Memory that is kept for what comes next, and given back."""

import subprocess
import sys

CODE = """
import resource
import numpy as np
from demoa.core.memory import give_back_memory, keep_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**22, np.float32)  # 16 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

fetched = faults()
keep_memory()
np.ones(2**22, np.float32)
kept = faults()
held = resident()
give_back_memory()
print(fetched, kept, held - resident())
"""


def test_kept_memory_is_not_fetched_again_and_can_be_given_back():
    found = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    fetched, kept, given_back = map(float, found.stdout.split())
    assert kept < 0.1 * fetched
    assert given_back > 12
