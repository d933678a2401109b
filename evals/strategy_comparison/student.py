"""Quantiles of Student's t for whole degrees of freedom, without a statistics package.

With few documents the normal quantile makes intervals far too narrow; scipy would cost seconds of
import for this one number.
"""

from functools import cache
from math import atan, cos, pi, sin, sqrt
from statistics import NormalDist


@cache
def t_quantile(probability: float, degrees: int) -> float:
    """The value below which Student's t lies with `probability`, to 1e-9.

    Source: the finite series of Abramowitz & Stegun 26.7.3-4, inverted by bisection.

    >>> [round(t_quantile(0.975, degrees), 3) for degrees in (1, 2, 10, 1000)]
    [12.706, 4.303, 2.228, 1.962]
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    low, high = 0.0, 1.0
    while _cumulative(high, degrees) < probability:
        high *= 2
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        if _cumulative(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def normal_quantile(probability: float) -> float:
    """
    >>> round(normal_quantile(0.975), 3)
    1.96
    """
    return NormalDist().inv_cdf(probability)


def _cumulative(t: float, degrees: int) -> float:
    angle = atan(t / sqrt(degrees))
    square = cos(angle) ** 2
    odd = degrees % 2
    term, total = (cos(angle) if odd else 1.0), 0.0
    for step in range(1 + odd, degrees, 2):
        total += term
        term *= square * step / (step + 1)
    within = sin(angle) * total
    if odd:
        within = 2 / pi * (angle + within)
    return 0.5 + within / 2
