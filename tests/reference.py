"""Slow definitions in float64, written on the rows themselves: what every fast path is held against.

Nothing here uses the package.
"""

from itertools import combinations

import numpy as np


def distances(rows):
    """Squared distances between rows, from their differences, (n, n)."""
    return ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)


def krum_scores(rows, f):
    """Sum of squared distances to the n - f - 2 nearest others (at least one), (n,)."""
    squares = distances(rows)
    n = len(rows)
    nearest = [sorted(squares[i, j] for j in range(n) if j != i)[: max(1, n - f - 2)] for i in range(n)]
    return np.array([sum(found) for found in nearest])


def diameter(rows, group):
    """Largest squared distance inside a group."""
    return max(((rows[i] - rows[j]) ** 2).sum() for i in group for j in group)


def least_diameter(rows, f):
    return min(diameter(rows, group) for group in combinations(range(len(rows)), len(rows) - f))


def top_variance(rows, group):
    """Largest eigenvalue of the covariance of a group."""
    chosen = rows[list(group)] - rows[list(group)].mean(axis=0)
    return np.linalg.norm(chosen, 2) ** 2 / len(group)


def least_top_variance(rows, f):
    return min(top_variance(rows, group) for group in combinations(range(len(rows)), len(rows) - f))


def main_direction(rows, weights):
    """Top variance of the weighted rows, its direction, and the gap to the next one, relative."""
    centred = rows - weights @ rows
    _, values, vectors = np.linalg.svd(np.sqrt(weights)[:, None] * centred, full_matrices=False)
    gap = (values[0] - values[1]) / values[0] if len(values) > 1 and values[0] > 0 else 1.0
    return values[0] ** 2, vectors[0], gap


def covariance_filter(rows, f):
    """CAF: the mean of least top variance that is met while rows along the widest direction lose weight."""
    n = len(rows)
    c = np.ones(n)
    best, least = rows.mean(axis=0), np.inf
    while f > 0 and c.sum() > n - 2 * f:
        mean = c @ rows / c.sum()
        variance, direction, _ = main_direction(rows, c / c.sum())
        if variance < least:
            best, least = mean, variance
        parts = ((rows - mean) @ direction) ** 2
        if parts[c > 0].max() == 0:
            break
        c = c * np.clip(1 - parts / parts[c > 0].max(), 0, 1)
    return best


def geometric_median(rows, steps=8, nu=0.1):
    centre = np.zeros(rows.shape[1])
    for _ in range(steps):
        weights = 1 / np.maximum(nu, np.linalg.norm(rows - centre, axis=1))
        centre = weights @ rows / weights.sum()
    return centre


def centered_clip(rows, centre, tau=10.0, steps=3):
    for _ in range(steps):
        away = rows - centre
        lengths = np.linalg.norm(away, axis=1)
        shares = np.array([1.0 if length <= tau else tau / length for length in lengths])
        centre = centre + (shares[:, None] * away).mean(axis=0)
    return centre


def trimmed_mean(rows, f):
    return np.sort(rows, axis=0)[f : len(rows) - f].mean(axis=0)


def near_median(rows, keep):
    """Per column, the mean of the `keep` values nearest to the median, the smaller one first in a tie."""
    out = []
    for column in rows.T:
        median = np.median(column)
        out.append(np.mean(sorted(column, key=lambda value: (abs(value - median), value))[:keep]))
    return np.array(out)


def bulyan(rows, f, slack):
    """All answers of Bulyan, each Krum choice being any row whose score is within slack of the best."""
    everyone = frozenset(range(len(rows)))
    choices = {frozenset()}
    for _ in range(len(rows) - 2 * f):
        longer = set()
        for chosen in choices:
            left = sorted(everyone - chosen)
            scores = krum_scores(rows[left], f) if len(left) > 1 else np.zeros(1)
            longer |= {chosen | {row} for row, score in zip(left, scores, strict=True) if score <= scores.min() + slack}
        choices = longer
    return [near_median(rows[sorted(chosen)], len(rows) - 4 * f) for chosen in choices]


def nearest_neighbours(rows, f):
    squares = distances(rows)
    return np.array([rows[np.argsort(line, kind="stable")[: len(rows) - f]].mean(axis=0) for line in squares])


def clip(rows, radius):
    lengths = np.linalg.norm(rows, axis=1)
    return np.array(
        [row if length <= radius else row * (radius / length) for row, length in zip(rows, lengths, strict=True)]
    )


def adaptive_clip(rows, f):
    n = len(rows)
    longest_first = np.sort(np.linalg.norm(rows, axis=1))[::-1]
    return clip(rows, longest_first[int(np.floor(2 * f * (n - f) / n))])
