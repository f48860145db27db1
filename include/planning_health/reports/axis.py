"""The partition axis of a figure: where a partition value stands between 0 and 1, and its tick labels.

Values that are numbers (days, months, buckets, …) stand in proportion; other values (strings, …) stand in their order,
evenly spaced.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from planning_health.reports.model import Tick
from planning_health.wording import shortened, visible

T = TypeVar("T")
_TICKS: Final = 4
_TICK_CHARACTERS: Final = 14


@dataclass(frozen=True)
class Point:
    """A partition value: its number where it has one, and how it is written."""

    value: float | None
    display: str

    @classmethod
    def of(cls, value: Any, display: Any) -> Point | None:
        """A point from a result file, or ``None`` where neither is known."""
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        if number is None and display is None:
            return None
        return cls(number, visible(display if display is not None else value))


class Axis:
    """An axis over all points that are to be drawn on it."""

    def __init__(self, points: Iterable[Point]) -> None:
        distinct = list(dict.fromkeys(points))
        self.numeric = bool(distinct) and all(point.value is not None for point in distinct)
        if self.numeric:
            self._points = sorted(distinct, key=lambda point: (point.value or 0.0, point.display))
            values = [point.value or 0.0 for point in self._points]
            self._low, self._high = values[0], values[-1]
            self._unit = 1.0 if all(value.is_integer() for value in values) else 0.0
        else:
            self._points = sorted(distinct, key=lambda point: point.display)
            self._low, self._high, self._unit = 0.0, max(len(self._points) - 1.0, 0.0), 1.0
        self._displays = [point.display for point in self._points]

    def number(self, point: Point) -> float:
        """The point's number on this axis."""
        if self.numeric and point.value is not None:
            return point.value
        return float(bisect_left(self._displays, point.display))

    def start(self, point: Point) -> float:
        """Where the stretch that belongs to the value begins, 0 to 1."""
        return self._fraction(self.number(point))

    def end(self, point: Point) -> float:
        """Where the stretch that belongs to the value ends, 0 to 1."""
        return self._fraction(self.number(point) + self._unit)

    def middle(self, point: Point) -> float:
        """The middle of the value's stretch, 0 to 1."""
        return (self.start(point) + self.end(point)) / 2

    def ticks(self) -> list[Tick]:
        """At most four labelled values, evenly spread, the first and the last among them."""
        if not self._points:
            return []
        chosen = dict.fromkeys(self._nearest(index / (_TICKS - 1)) for index in range(_TICKS))
        return [Tick(at=round(self.middle(p), 4), label=shortened(p.display, _TICK_CHARACTERS)) for p in chosen]

    def _fraction(self, number: float) -> float:
        span = self._high - self._low + self._unit
        return min(max((number - self._low) / span, 0.0), 1.0) if span else 0.0

    def _nearest(self, fraction: float) -> Point:
        target = self._low + fraction * (self._high - self._low)
        return min(self._points, key=lambda point: abs(self.number(point) - target))


def thinned(items: Sequence[T], limit: int) -> list[T]:
    """At most ``limit`` items, evenly picked, the first and the last among them."""
    if len(items) <= limit:
        return list(items)
    return [items[round(index * (len(items) - 1) / (limit - 1))] for index in range(limit)]
