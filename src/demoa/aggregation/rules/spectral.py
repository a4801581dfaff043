"""Principal directions of a group of rows, found in the table."""

from __future__ import annotations

import numpy as np

from demoa.core.types import Floats


def centred(gram: Floats, weights: Floats) -> Floats:
    """Return the inner products of the rows less their weighted mean, (m, m); weights sum to 1."""
    products = gram @ weights
    return gram - products[:, None] - products[None, :] + weights @ products


def principal(gram: Floats, weights: Floats) -> tuple[float, Floats]:
    """Return the largest variance of the weighted rows and each row's squared part along it, (m,).

    Sigma = sum_i w_i (x_i - mu)(x_i - mu)^T is (d, d); its eigenvalues other than 0 are those of the
    (m, m) matrix sqrt(w_i w_j) <x_i - mu, x_j - mu>.
    """
    products = centred(gram, weights)
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * products * root[None, :])
    if values[-1] <= 0.0:
        return 0.0, np.zeros(len(gram))
    along = products @ (root * vectors[:, -1])
    return float(values[-1]), (along / np.sqrt(values[-1])) ** 2
