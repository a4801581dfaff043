"""Rows as hypothesis draws them: any scale, with copies, zero rows and outliers among them."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Sample:
    """Rows to be aggregated and how many of them may be faulty."""

    rows: np.ndarray
    f: int

    @property
    def exact(self):
        """The same numbers in float64."""
        return self.rows.astype(np.float64)

    @property
    def radius(self):
        """The largest norm, below which no error bound is asked to go."""
        return float(np.linalg.norm(self.exact, axis=1).max())


@st.composite
def samples(draw, most_f=lambda n: (n - 1) // 2, dtypes=(np.float32, np.float64), most_rows=11, plain=False):
    """Draw n rows of d numbers and f. Norms run from 1e-6 to 1e6 between samples, and inside one."""
    n = draw(st.integers(3, most_rows))
    d = draw(st.integers(1, 40))
    f = draw(st.integers(0, most_f(n)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = random.standard_normal((n, d)) * 10.0 ** draw(st.floats(-6, 6))
    if not plain:
        rows += draw(st.sampled_from([0.0, 1.0, 100.0])) * rows[0]  # a common offset
        for row, change in draw(st.lists(st.tuples(st.integers(0, n - 1), CHANGES), max_size=4)):
            rows[row] = change(rows, row)
    return Sample(rows.astype(draw(st.sampled_from(dtypes))), f)


CHANGES = st.sampled_from(
    [
        lambda rows, row: rows[row - 1],  # a copy, as the mimic attack sends
        lambda rows, row: 0 * rows[row],
        lambda rows, row: 1e3 * rows[row] if np.abs(rows[row]).max() < 1e12 else rows[row],  # far below overflow
        lambda rows, row: -rows[row - 1],
        lambda rows, row: rows[row - 1] * (1 + 1e-6),  # nearly a copy
    ]
)
