"""The bounds of files that are yet to be written, drawn from the bounds of the files that their rows come from.

A part of n rows that is spread evenly between two bounds seldom reaches both: its least and greatest value are drawn as
those of n even draws. The random numbers are the same in each run, so that a prediction can be repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyiceberg.types import (
    DateType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)

from planning_health.planning.comparable import Ints, Mask

Floats = NDArray[np.float64]
Numbers = NDArray[Any]
"""Values of one column: whole numbers (int64) or floating-point ones (float64)."""

WHOLE_TYPES = (
    IntegerType,
    LongType,
    DateType,
    TimeType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)
NUMBER_TYPES = (*WHOLE_TYPES, FloatType, DoubleType)


def numbers(values: list[Any], kind: IcebergType) -> tuple[Numbers, Mask]:
    """Bounds as an array, and where they are known; NaN is no bound."""
    known = np.array([value is not None and value == value for value in values], dtype=np.bool_)
    filled = [value if ok else 0 for value, ok in zip(values, known.tolist(), strict=True)]
    return np.array(filled, dtype=np.int64 if isinstance(kind, WHOLE_TYPES) else np.float64), known


def drawn_extremes(
    low: Numbers, high: Numbers, rows: Floats, owner: Ints, owners: int, seed: int
) -> tuple[Numbers, Numbers]:
    """The least and greatest value of each new file, whose rows come in parts from other files.

    Args:
        low: least value of each part's rows, or less.
        high: greatest value of each part's rows, or more.
        rows: about how many rows with a value each part has; a fraction is the chance of one more.
        owner: the new file of each part, from 0.
        owners: number of new files; those without a part keep the type's extremes.
        seed: start of the random numbers.
    """
    random = np.random.default_rng(seed).random((3, len(low)))
    count = np.floor(rows + random[0])
    none = np.bincount(owner, weights=count, minlength=owners) == 0
    count[none[owner]] = 1.0  # it has some row, from any of its parts
    least = 1 - (1 - random[1]) ** (1 / np.maximum(count, 1))
    most = np.where(count > 1, least + (1 - least) * random[2] ** (1 / np.maximum(count - 1, 1)), least)
    drawn = count > 0
    limits = np.iinfo(np.int64) if low.dtype == np.int64 else np.finfo(np.float64)
    new_low = np.full(owners, limits.max, dtype=low.dtype)
    new_high = np.full(owners, limits.min, dtype=low.dtype)
    np.minimum.at(new_low, owner[drawn], _between(low, high, least)[drawn])
    np.maximum.at(new_high, owner[drawn], _between(low, high, most)[drawn])
    return new_low, new_high


def _between(low: Numbers, high: Numbers, share: Floats) -> Numbers:
    """The value at a share of the way from low to high; whole numbers are as likely as each other."""
    if low.dtype != np.int64:
        moved: Numbers = np.clip(low * (1 - share) + high * share, low, high)
        return moved
    width = high.view(np.uint64) - low.view(np.uint64)  # wraps around to the right difference, however large
    steps = np.minimum(share * (width.astype(np.float64) + 1), np.nextafter(2.0**64, 0)).astype(np.uint64)
    values: Numbers = (low.view(np.uint64) + np.minimum(steps, width)).view(np.int64)
    return values
