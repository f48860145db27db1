"""Bounds of files that are yet to be written, drawn from those of the files that their rows come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.planning.drawn_bounds import drawn_extremes

INT64 = np.iinfo(np.int64)


def draw(low: Any, high: Any, rows: Any, owner: Any, *, dtype: Any = np.int64, seed: int = 1) -> list[Any]:
    files = int(max(owner)) + 1
    found = drawn_extremes(
        np.array(low, dtype), np.array(high, dtype), np.array(rows, np.float64), np.array(owner), files, seed
    )
    return [side.tolist() for side in found]


def test_each_file_spans_as_much_as_files_of_really_drawn_rows_do() -> None:
    files, rows = 4_000, 9
    real = np.random.default_rng(7).integers(0, 1_000, (files, rows), endpoint=True)
    drawn = draw([0] * files, [1_000] * files, [rows] * files, range(files))
    for mine, theirs in zip(drawn, (real.min(axis=1), real.max(axis=1)), strict=True):
        assert np.quantile(mine, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(theirs, [0.1, 0.5, 0.9]), abs=20)


def test_the_extremes_of_several_parts_are_those_of_all_their_rows() -> None:
    files = 4_000
    real = np.random.default_rng(7).integers(0, 1_000, (files, 6), endpoint=True)
    parts = np.repeat(np.arange(files), 3)
    low, _ = draw([0] * len(parts), [1_000] * len(parts), [2] * len(parts), parts)
    assert np.mean(low) == pytest.approx(real.min(axis=1).mean(), rel=0.05)


def test_one_row_has_one_value_and_many_rows_reach_the_bounds() -> None:
    low, high = draw([10] * 50, [99] * 50, [1] * 50, range(50))
    assert low == high
    assert len(set(low)) > 20
    assert draw([10], [99], [1e9], [0]) == [[10], [99]]


def test_a_file_that_gets_less_than_a_row_of_each_part_has_bounds_nevertheless() -> None:
    low, high = draw([5, 50], [6, 60], [0.0, 0.0], [0, 0])
    assert 5 <= low[0] <= 6
    assert 50 <= high[0] <= 60


def test_the_same_prediction_is_made_again() -> None:
    asked = ([0] * 20, [1_000] * 20, [3] * 20, range(20))
    assert draw(*asked) == draw(*asked)
    assert draw(*asked) != draw(*asked, seed=2)


WHOLE = st.integers(INT64.min, INT64.max)
REAL = st.floats(allow_nan=False, allow_infinity=False)


@given(st.tuples(WHOLE, WHOLE) | st.tuples(REAL, REAL), st.floats(0, 1e6), st.integers(0, 9))
def test_drawn_bounds_lie_within_the_part(bounds: tuple[Any, Any], rows: float, seed: int) -> None:
    least, greatest = sorted(bounds)
    dtype = np.int64 if isinstance(least, int) else np.float64
    (low,), (high,) = draw([least], [greatest], [rows], [0], dtype=dtype, seed=seed)
    assert least <= low <= high <= greatest
