"""Partition values for people: as Iceberg writes them in its metadata tables, and as plain numbers for charts.

A missing value is ``None``, so that it cannot be taken for the text 'null', as it can in the metadata tables.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform, Transform, YearTransform
from pyiceberg.types import (
    DateType,
    IcebergType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
)

UNITS: Final[dict[type, str]] = {
    YearTransform: "years",
    MonthTransform: "months",
    DayTransform: "days",
    HourTransform: "hours",
}
"""The time transforms and the unit of their values."""


def unit_of(transform: Transform[Any, Any]) -> str | None:
    """The unit of a time transform's values; ``None`` for every other transform."""
    return UNITS.get(type(transform))


def days_since_epoch(transform: Transform[Any, Any], values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where time units begin, in days since 1970-01-01, by the calendar (a month is 28 to 31 days)."""
    unit = unit_of(transform)
    if unit == "hours":
        return values / 24.0
    if unit == "days":
        return values.astype(np.float64)
    calendar = "datetime64[Y]" if unit == "years" else "datetime64[M]"
    return values.astype(calendar).astype("datetime64[D]").astype(np.int64).astype(np.float64)


def display(transform: Transform[Any, Any], value_type: IcebergType, value: Any) -> str | None:
    """A decoded partition value as Iceberg's ``.manifests`` shows it; ``None`` for no value."""
    if value is None:
        return None
    unit = unit_of(transform)
    if unit is not None:
        return _TIME_UNITS[unit](value)
    formatter = _BY_TYPE.get(type(value_type))
    return formatter(value) if formatter else _plain(value)


def number(value: Any) -> int | float | None:
    """A decoded value as a number that JSON can hold; ``None`` for text, bytes, UUIDs, infinities and NaN."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return None


def _day(days: int) -> str:
    return str(np.datetime64(days, "D"))


def _hour(hours: int) -> str:
    return f"{_day(hours // 24)}-{hours % 24:02}"


_TIME_UNITS: Final[dict[str, Callable[[int], str]]] = {
    "years": lambda value: f"{1970 + value:04}",
    "months": lambda value: f"{1970 + value // 12:04}-{value % 12 + 1:02}",
    "days": _day,
    "hours": _hour,
}


def _clock(units: int, per_second: int, digits: int) -> str:
    seconds, fraction = divmod(units, per_second)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{digits}}".rstrip("0") if fraction else text


def _time_of_day(micros: int) -> str:
    """As ``LocalTime.toString``: no seconds where they are zero, else fractions of three or six digits."""
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if not fraction:
        return f"{text}:{seconds % 60:02}" if seconds % 60 else text
    digits = f"{fraction:06}"
    return f"{text}:{seconds % 60:02}.{digits.removesuffix('000')}"


def _timestamp(per_second: int, digits: int, zone: str) -> Callable[[int], str]:
    def shown(value: int) -> str:
        days, rest = divmod(value, 86_400 * per_second)
        return f"{_day(days)}T{_clock(rest, per_second, digits)}{zone}"

    return shown


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN" if math.isnan(value) else repr(value))
    return str(value)


_BY_TYPE: Final[dict[type, Callable[[int], str]]] = {
    DateType: _day,
    TimeType: _time_of_day,
    TimestampType: _timestamp(1_000_000, 6, ""),
    TimestamptzType: _timestamp(1_000_000, 6, "+00:00"),
    TimestampNanoType: _timestamp(1_000_000_000, 9, ""),
    TimestamptzNanoType: _timestamp(1_000_000_000, 9, "+00:00"),
}
