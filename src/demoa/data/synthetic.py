"""Problems whose constants are known, to hold theory against."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from demoa.core.checks import positive, real_number, require, whole_number
from demoa.core.examples import Dataset, Examples
from demoa.core.seeding import generator
from demoa.core.types import Floats


def quadratics(
    clients: int = 20,
    dimension: int = 20,
    smoothness: float = 1.0,
    condition: float = 10.0,
    sigma: float = 1.0,
    zeta: float = 1.0,
    b: float = 0.0,
    examples: int = 256,
    seed: int = 0,
) -> Dataset:
    """Return quadratics f_i of honest clients; the smoothness of f, sigma, zeta and B are exactly those chosen.

        grad f_i(x) = (1 + b_i) l * x + z_i,   b_i = +-B,   sum b_i = sum z_i = sum b_i z_i = 0,   mean |z_i|^2 = zeta^2

    so that grad f(x) = l * x, and the mean of |grad f_i - grad f|^2 is zeta^2 + B^2 |grad f|^2 at every x. Client i
    has examples (1 + b_i) l and z_i + noise; over them the noise has mean 0 and mean square sigma^2. f has its least
    value, 0, at 0. For the model `quadratic` and the partition `one_label`, where label i is client i.

    Args:
        clients: How many honest clients there are.
        dimension: The length of x.
        smoothness: The largest entry of l; the others fall geometrically. That of client i is 1 + b_i times as large.
        condition: The largest entry of l over the smallest.
        sigma: The noise of a gradient of one example, sqrt(E |noise|^2).
        zeta: How far clients differ everywhere.
        b: How far they differ in proportion to the gradient.
        examples: Examples per client.
        seed: What the problem is drawn from.
    """
    clients = whole_number("quadratics: clients", clients, least=1)
    dimension = whole_number("quadratics: dimension", dimension, least=1)
    examples = whole_number("quadratics: examples", examples, least=2)
    positive("quadratics: smoothness", smoothness)
    _at_least(1, "quadratics: condition", condition)
    for name, value in (("sigma", sigma), ("zeta", zeta), ("b", b)):
        _at_least(0, f"quadratics: {name}", value)
    require(clients % 2 == 0 or b == 0, "quadratics: clients", clients, "even where b is not 0")
    require(clients > 2 or zeta == 0, "quadratics: clients", clients, "at least 3 where zeta is not 0")
    draw = generator(whole_number("quadratics: seed", seed), "quadratics")
    curvature = smoothness * condition ** -np.linspace(0.0, 1.0, dimension)
    tilt = b * np.where(np.arange(clients) % 2 == 0, 1.0, -1.0) * (b > 0)
    offsets = _scaled(_without(draw.standard_normal((clients, dimension)), tilt), zeta)
    noise = np.stack([_scaled(_without(draw.standard_normal((examples, dimension))), sigma) for _ in range(clients)])
    images = np.empty((clients, examples, 1, 2, dimension), np.float32)
    images[:, :, 0, 0] = ((1.0 + tilt)[:, None] * curvature)[:, None]
    images[:, :, 0, 1] = offsets[:, None] + noise
    labels = np.repeat(np.arange(clients), examples)
    found = Examples(torch.from_numpy(images.reshape(-1, 1, 2, dimension)), torch.from_numpy(labels))
    return Dataset(found, found, classes=clients, objective="value", held_out=0.0)


def least_squares(dimension: int = 50, examples: int = 2000, noise: float = 0.0, seed: int = 0) -> Dataset:
    """Return a linear regression; without noise one x fits every example: gradients vanish there, for every client.

    The features are standard normal, (N, d), the labels their inner products with a unit vector plus noise. For
    the model `linear`.

    Args:
        dimension: The length of x.
        examples: Training examples; a fifth as many are for testing.
        noise: The standard deviation of the labels' noise.
        seed: What the problem is drawn from.
    """
    dimension = whole_number("least_squares: dimension", dimension, least=1)
    examples = whole_number("least_squares: examples", examples, least=5)
    _at_least(0, "least_squares: noise", noise)
    draw = generator(whole_number("least_squares: seed", seed), "least squares")
    target = draw.standard_normal(dimension)
    target /= np.linalg.norm(target)

    def part(count: int) -> Examples:
        features = draw.standard_normal((count, dimension)).astype(np.float32)
        labels = features @ target + noise * draw.standard_normal(count)
        return Examples(torch.from_numpy(features[:, None, None]), torch.from_numpy(labels.astype(np.float32)))

    return Dataset(part(examples), part(examples // 5), classes=1, objective="number")


def _at_least(least: float, what: str, value: float) -> None:
    allowed = f"a number, at least {least}"
    require(real_number(what, value, allowed) >= least, what, value, allowed)


def _without(rows: Floats, tilt: NDArray[np.float64] | None = None) -> Floats:
    """Return the rows less their mean and, where it is given, less their part along the tilt over rows, (n,)."""
    centred = rows - rows.mean(axis=0)
    if tilt is not None and tilt.any():
        centred -= np.outer(tilt, tilt @ centred) / (tilt @ tilt)
    return np.asarray(centred)


def _scaled(rows: Floats, root_mean_square: float) -> Floats:
    """Return the rows, scaled to a mean square norm."""
    present = np.sqrt((rows**2).sum(axis=1).mean())
    return rows * (root_mean_square / present if root_mean_square > 0 else 0.0)
