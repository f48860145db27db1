"""Partition transforms of literals, computed as Iceberg Java computes them.

Only literals pass through here (partition values are recorded, never recomputed), so the functions are scalar.
The time transforms keep Java's rounding before 1970, which steps one unit too far for instants within the
last microsecond of a second.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import mmh3
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import (
    DateType,
    IntegerType,
    StringType,
    TimestampNanoType,
    TimestamptzNanoType,
    UnknownType,
)

from planning_health.planning.literals import decimal_of, unscaled_of

if TYPE_CHECKING:
    from pyiceberg.transforms import Transform
    from pyiceberg.types import IcebergType

TIME_TRANSFORMS = (YearTransform, MonthTransform, DayTransform, HourTransform)
_NANO_TYPES = (TimestampNanoType, TimestamptzNanoType)
_EPOCH = dt.date(1970, 1, 1)


def result_type(transform: Transform[Any, Any], source: IcebergType | None) -> IcebergType:
    """Return the type of a transform's partition values; the source is None once its column was dropped."""
    if isinstance(transform, DayTransform):
        return DateType()
    if isinstance(transform, BucketTransform | YearTransform | MonthTransform | HourTransform):
        return IntegerType()
    if isinstance(transform, IdentityTransform | TruncateTransform | VoidTransform):
        return source if source is not None else UnknownType()
    return StringType()


def transform_function(transform: Transform[Any, Any], source: IcebergType) -> Callable[[Any], Any]:
    """Return the function from a literal's value to its partition value.

    Raises:
        TypeError: the transform cannot be applied (identity needs no function; void and unknown have none).
    """
    if isinstance(transform, BucketTransform):
        buckets = transform.num_buckets
        return lambda value: (bucket_hash(value, source) & 0x7FFF_FFFF) % buckets
    if isinstance(transform, TruncateTransform):
        width = transform.width
        bits = 32 if isinstance(source, IntegerType) else 64
        return lambda value: truncate(value, width, bits)
    if isinstance(transform, TIME_TRANSFORMS):
        return _time_function(transform, source)
    raise TypeError(f"transform {transform} cannot be applied to a literal")


def bucket_hash(value: Any, source: IcebergType) -> int:
    """Return Iceberg's 32-bit murmur3 hash of a value."""
    match value:
        case str():
            raw = value.encode()
        case bytes():
            raw = value
        case UUID():
            raw = value.bytes
        case Decimal():
            unscaled = unscaled_of(value)[0]
            raw = unscaled.to_bytes(_minimal_length(unscaled), "big", signed=True)
        case _:
            raw = struct.pack("<q", value // 1000 if isinstance(source, _NANO_TYPES) else value)
    return mmh3.hash(raw)


def _minimal_length(value: int) -> int:
    return (value if value >= 0 else ~value).bit_length() // 8 + 1


def truncate(value: Any, width: int, bits: int = 64) -> Any:
    """Truncate a number down to a multiple of the width, text to code points, binary to bytes.

    Args:
        value: the internal value.
        width: the transform's width.
        bits: size of a whole number; below its minimum the result wraps around, as in Java.
    """
    match value:
        case str() | bytes():
            return value[:width]
        case Decimal():
            unscaled, scale = unscaled_of(value)
            return decimal_of(unscaled - unscaled % width, scale)
    return wrap(value - value % width, bits)


def wrap(value: int, bits: int) -> int:
    """Wrap a whole number around as Java's integers of this size do."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _time_function(transform: Transform[Any, Any], source: IcebergType) -> Callable[[int], int]:
    if isinstance(source, DateType):
        return _DATE_FUNCTIONS[type(transform)]
    convert = _TIMESTAMP_FUNCTIONS[type(transform)]
    per_second = 1_000_000_000 if isinstance(source, _NANO_TYPES) else 1_000_000
    return lambda value: _convert_timestamp(value, per_second, convert)


def _convert_timestamp(value: int, per_second: int, units_since_epoch: Callable[[int, int], int]) -> int:
    """Apply ``DateTimeUtil.convertMicros`` (or Nanos), including its rounding of negative values."""
    seconds = value // per_second
    if value >= 0:
        return units_since_epoch(seconds, value % per_second)
    return units_since_epoch(seconds, (value + 1) % per_second) - 1


def _hours(seconds: int, fraction: int) -> int:
    return _toward_zero(seconds, fraction, 3600)


def _days(seconds: int, fraction: int) -> int:
    return _toward_zero(seconds, fraction, 86_400)


def _toward_zero(seconds: int, fraction: int, unit: int) -> int:
    if seconds >= 0:
        return seconds // unit
    return -((-(seconds + (1 if fraction else 0))) // unit)


def _months(seconds: int, fraction: int) -> int:
    days, rest = divmod(seconds, 86_400)
    if seconds < 0 and (rest or fraction):
        days += 1
    return _months_between(days)


def _years(seconds: int, fraction: int) -> int:
    months = _months(seconds, fraction)
    return months // 12 if months >= 0 else -(-months // 12)


def _months_between(days: int) -> int:
    """Return whole months between the epoch and a day, toward zero."""
    year, month, day = _civil(days)
    packed = ((year - 1970) * 12 + month - 1) * 32 + day - 1
    return packed // 32 if packed >= 0 else -(-packed // 32)


def _civil(days: int) -> tuple[int, int, int]:
    """Return (year, month, day) of a day number in the proleptic calendar of any range."""
    cycles, day_of_cycle = divmod(days, 146_097)  # days of 400 years
    date = _EPOCH + dt.timedelta(days=day_of_cycle)
    return date.year + 400 * cycles, date.month, date.day


def _date_months(days: int) -> int:
    return _months_between(days) if days >= 0 else _months_between(days + 1) - 1


def _date_years(days: int) -> int:
    if days >= 0:
        return _months_between(days) // 12
    return -(-_months_between(days + 1) // 12) - 1


def _same_day(days: int) -> int:
    return days


_DATE_FUNCTIONS: dict[type, Callable[[int], int]] = {
    YearTransform: _date_years,
    MonthTransform: _date_months,
    DayTransform: _same_day,
}
_TIMESTAMP_FUNCTIONS: dict[type, Callable[[int, int], int]] = {
    YearTransform: _years,
    MonthTransform: _months,
    DayTransform: _days,
    HourTransform: _hours,
}
