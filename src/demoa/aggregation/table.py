"""The table: inner products between the rows that a rule sees. Rules decide from it alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from demoa.aggregation.kernels.neighbours import nearest_sums
from demoa.core.types import Floats, Matrix


class Table:
    """Inner products of m rows and of one more point, the centre (the previous aggregate, or zero).

    The products are asked for when a rule first looks at them, and a rule that never does costs
    nothing. All distances, norms and angles between rows, and between a row and any combination of
    rows, follow in O(m^2).

    >>> table = Table(2, lambda: np.diag([9.0, 16.0, 0.0]))
    >>> float(table.squared_distances[0, 1])
    25.0
    """

    def __init__(self, rows: int, products: Callable[[], Floats], terms: int = 1) -> None:
        """Take the number of rows, what computes the (m + 1, m + 1) products, and how many terms each sums."""
        self.rows = rows
        self._products = products
        self._terms = terms

    @cached_property
    def points(self) -> Floats:
        """Inner products of the rows and, last, the centre: (m + 1, m + 1)."""
        return self._products()

    @property
    def gram(self) -> Floats:
        """Inner products of the rows: (m, m)."""
        return self.points[: self.rows, : self.rows]

    @cached_property
    def squared_norms(self) -> Floats:
        """Squared norm of each row: (m,)."""
        return np.maximum(np.diag(self.gram), 0.0)

    @cached_property
    def squared_distances(self) -> Floats:
        """Squared distance between each pair of rows, (m, m): exactly 0 between equal rows."""
        sums = self.squared_norms[:, None] + self.squared_norms[None, :]
        squares = sums - 2.0 * self.gram
        # What is left of a sum that cancels down to its last bits is noise, not distance.
        squares[squares <= 4.0 * self._terms * np.finfo(float).eps * sums] = 0.0
        return squares

    def squared_distances_to(self, weights: Floats) -> Floats:
        """Squared distance of each row to the combination of all points with these weights: (m,).

        Args:
            weights: One per row, then that of the centre: (m + 1,).
        """
        products = self.points @ weights
        squares = self.squared_norms - 2.0 * products[: self.rows] + weights @ products
        return np.maximum(squares, 0.0)

    def nearest(self, neighbours: int) -> int:
        """Return the row with the least sum of squared distances to its nearest other rows; of several, the first."""
        return int(np.argmin(nearest_sums(self.squared_distances, neighbours))) if self.rows > 1 else 0

    def distances_beyond(self, weights: Floats, radius: float) -> Floats:
        """Distance of each row to a combination of all points, (m,): exact where it is more than `radius`.

        Where it is not, any number up to `radius` may be returned: there are tables that find out no more.

        Args:
            weights: As in `squared_distances_to`.
            radius: What is asked about.
        """
        return np.asarray(np.sqrt(self.squared_distances_to(weights)))

    def mixed(self, matrix: Matrix) -> Table:
        """Return the table of the rows matrix @ rows, (m', m); the centre stays as it is."""
        rows = matrix.shape[0]
        if issparse(matrix):
            extended: Matrix = with_centre(matrix, self.rows, self.rows + 1)
            terms = int(np.diff(extended.indptr).max())
        else:
            extended = np.zeros((rows + 1, self.rows + 1))
            extended[:-1, :-1] = matrix
            extended[-1, -1] = 1.0
            terms = int(np.count_nonzero(matrix, axis=1).max())
        return Table(rows, lambda: congruence(extended, self.points), self._terms * terms)


def with_centre(matrix: csr_array, centre: int | None, width: int) -> csr_array:
    """Return a matrix, padded to `width` columns, with one more row that picks the centre, or nothing."""
    padded = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))
    place = [] if centre is None else [centre]
    last = csr_array((np.ones(len(place)), ([0] * len(place), place)), shape=(1, width))
    return vstack([padded, last], format="csr")


def congruence(matrix: Matrix, products: Floats) -> Floats:
    """Return matrix @ products @ matrix.T, the inner products of the mixed rows."""
    if issparse(matrix) and (np.diff(matrix.indptr) <= 1).all():
        # A scaled selection of rows, the common case: O(m^2) in place of O(m^3), and exact.
        used = np.flatnonzero(np.diff(matrix.indptr))
        source, scale = np.zeros(matrix.shape[0], np.intp), np.zeros(matrix.shape[0])
        source[used], scale[used] = matrix.indices, matrix.data
        picked: Floats = products[np.ix_(source, source)]
        picked *= scale[:, None]
        picked *= scale[None, :]
        return picked
    mixed: Floats = np.asarray(matrix @ products @ matrix.T)
    return 0.5 * (mixed + mixed.T)  # two rows that are each other's nearest are so at one and the same distance
