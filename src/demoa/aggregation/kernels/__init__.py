"""Compiled loops over rows: the only code that touches all n x d numbers.

Each kernel works on fixed pieces of the columns, so its result does not depend on the number of
threads, and it allocates no more than a cache-sized scratch.
"""
