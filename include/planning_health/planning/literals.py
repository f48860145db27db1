"""Typed literals of predicates, and their conversion to a column's type.

The conversions are those of Iceberg Java's ``Literals``: a value that the target type cannot hold becomes
``ABOVE_MAX`` or ``BELOW_MIN``, and a conversion that Java does not allow is refused. Values are Iceberg's
internal ones: dates in days, times and timestamps in microseconds (nanoseconds for the ``_ns`` types).
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from pyiceberg.utils import datetime as iceberg_datetime

from planning_health.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.types import IcebergType

MICROS_PER_DAY = 86_400_000_000
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
FLOAT_MAX = float(np.finfo(np.float32).max)
MOST_DECIMAL_DIGITS = 1000
"""Columns hold 38; a text such as ``1e999999999`` would fill the memory as soon as it is compared."""

_DECIMAL_TEXT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Kind(StrEnum):
    """What a literal is before it meets a column."""

    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    TIMESTAMP_NS = "timestamp_ns"
    TIMESTAMPTZ_NS = "timestamptz_ns"
    DECIMAL = "decimal"
    STRING = "string"
    UUID = "uuid"
    FIXED = "fixed"
    BINARY = "binary"


class OutOfRange(Enum):
    """A literal beyond what a column's type can hold."""

    ABOVE_MAX = 1
    BELOW_MIN = -1


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant with its kind.

    Attributes:
        kind: the type that the constant was written in.
        value: the internal value (see the module's docstring).
    """

    kind: Kind
    value: Any

    def __str__(self) -> str:
        return f'"{self.value}"' if self.kind is Kind.STRING else str(to_json_value(self))


def literal(value: object) -> Literal:
    """Make a literal of a Python value; whole numbers become longs and floats doubles.

    Raises:
        InputError: the value is None or NaN, or has a type that no predicate takes.
    """
    if isinstance(value, Literal):
        return value
    if isinstance(value, float) and math.isnan(value):
        raise InputError("NaN cannot be a literal: use IS NAN or IS NOT NAN")
    for python_type, make in _FROM_PYTHON:
        if isinstance(value, python_type):
            return make(value)
    raise InputError(f"{value!r} cannot be a literal: expected a number, text, date, time, UUID or bytes")


def _timestamp_literal(value: dt.datetime) -> Literal:
    if value.tzinfo is None:
        return Literal(Kind.TIMESTAMP, iceberg_datetime.datetime_to_micros(value))
    return Literal(Kind.TIMESTAMPTZ, iceberg_datetime.datetime_to_micros(value))


_FROM_PYTHON: tuple[tuple[type, Callable[[Any], Literal]], ...] = (
    (bool, lambda value: Literal(Kind.BOOLEAN, value)),
    (int, lambda value: Literal(Kind.LONG, value)),
    (float, lambda value: Literal(Kind.DOUBLE, value)),
    (str, lambda value: Literal(Kind.STRING, value)),
    (Decimal, lambda value: Literal(Kind.DECIMAL, value)),
    (dt.datetime, _timestamp_literal),
    (dt.date, lambda value: Literal(Kind.DATE, iceberg_datetime.date_to_days(value))),
    (dt.time, lambda value: Literal(Kind.TIME, iceberg_datetime.time_to_micros(value))),
    (UUID, lambda value: Literal(Kind.UUID, value)),
    (bytes, lambda value: Literal(Kind.BINARY, value)),
)


def identity_key(lit: Literal) -> tuple[object, ...]:
    """Return what tells literals of one type apart in a set, as Java's ``equals`` does.

    -0.0 differs from 0.0, and 1.0 from 1.00.
    """
    if isinstance(lit.value, float):
        return (struct.pack("<d", lit.value),)
    if isinstance(lit.value, Decimal):
        return unscaled_of(lit.value)
    return (lit.value,)


def convert(lit: Literal, target: IcebergType) -> Literal | OutOfRange | None:
    """Convert a literal to a column's type as Iceberg Java does; None when Java refuses.

    Raises:
        InputError: a text does not parse as the target type (Java throws, too).
    """
    conversion = _CONVERSIONS.get(lit.kind)
    return conversion(lit, target) if conversion else None


def _same(kind: Kind, *targets: type) -> Callable[[Literal, IcebergType], Literal | None]:
    return lambda lit, target: Literal(kind, lit.value) if isinstance(target, targets) else None


def _float32(value: float) -> float:
    return float(np.float32(value))


def _scaled(value: Decimal, target: DecimalType) -> Literal:
    return Literal(Kind.DECIMAL, _quantize(value, target.scale))


def _quantize(value: Decimal, scale: int) -> Decimal:
    """Round half up, away from zero."""
    unscaled, own_scale = unscaled_of(value)
    if own_scale <= scale:
        return decimal_of(unscaled * 10 ** (scale - own_scale), scale)
    unit = 10 ** (own_scale - scale)
    magnitude = (2 * abs(unscaled) + unit) // (2 * unit)
    return decimal_of(-magnitude if unscaled < 0 else magnitude, scale)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """Build a decimal of any precision from its unscaled value and its scale."""
    return Decimal((1 if unscaled < 0 else 0, tuple(map(int, str(abs(unscaled)))), -scale))


def unscaled_of(value: Decimal) -> tuple[int, int]:
    """Return (unscaled value, scale) of a decimal."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - infinities are refused when literals are made
    unscaled = int("".join(map(str, digits)) or "0")
    return (-unscaled if sign else unscaled), -exponent


def _from_whole_number(lit: Literal, target: IcebergType) -> Literal | OutOfRange | None:
    value = int(lit.value)
    match target:
        case IntegerType() | DateType():
            kind = Kind.INT if isinstance(target, IntegerType) else Kind.DATE
            return _in_int_range(kind, value)
        case LongType():
            return Literal(Kind.LONG, value)
        case FloatType():
            return Literal(Kind.FLOAT, _float32(value))
        case DoubleType():
            return Literal(Kind.DOUBLE, float(value))
        case DecimalType():
            return _scaled(Decimal(value), target)
        case _ if lit.kind is Kind.LONG:
            return _from_long_time(value, target)
    return None


def _in_int_range(kind: Kind, value: int) -> Literal | OutOfRange:
    if value > INT_MAX:
        return OutOfRange.ABOVE_MAX
    if value < INT_MIN:
        return OutOfRange.BELOW_MIN
    return Literal(kind, value)


def _from_long_time(value: int, target: IcebergType) -> Literal | None:
    match target:
        case TimeType():
            return Literal(Kind.TIME, value)
        case TimestampType():
            return Literal(Kind.TIMESTAMP, value)
        case TimestamptzType():
            return Literal(Kind.TIMESTAMPTZ, value)
        case TimestampNanoType():
            return Literal(Kind.TIMESTAMP_NS, _micros_to_nanos(value))
        case TimestamptzNanoType():
            return Literal(Kind.TIMESTAMPTZ_NS, _micros_to_nanos(value))
    return None


def _micros_to_nanos(micros: int) -> int:
    nanos = micros * 1000
    if not LONG_MIN <= nanos <= LONG_MAX:
        raise InputError(f"{micros} microseconds do not fit a timestamp in nanoseconds")
    return nanos


def _from_fraction(lit: Literal, target: IcebergType) -> Literal | OutOfRange | None:
    value = float(lit.value)
    match target:
        case FloatType():
            if lit.kind is Kind.DOUBLE and value > FLOAT_MAX:
                return OutOfRange.ABOVE_MAX
            if lit.kind is Kind.DOUBLE and value < -FLOAT_MAX:
                return OutOfRange.BELOW_MIN
            return Literal(Kind.FLOAT, _float32(value))
        case DoubleType():
            return Literal(Kind.DOUBLE, value)
        case DecimalType():
            if not math.isfinite(value):
                raise InputError(f"{value} is not a valid {target}")
            return _scaled(Decimal(repr(value)), target)
    return None


def _from_timestamp(lit: Literal, target: IcebergType) -> Literal | None:
    nanos = lit.kind in (Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ_NS)
    micros = lit.value // 1000 if nanos else lit.value
    match target:
        case TimestampType():
            return Literal(Kind.TIMESTAMP, micros)
        case TimestamptzType():
            return Literal(Kind.TIMESTAMPTZ, micros)
        case TimestampNanoType():
            return Literal(Kind.TIMESTAMP_NS, lit.value if nanos else _micros_to_nanos(micros))
        case TimestamptzNanoType():
            return Literal(Kind.TIMESTAMPTZ_NS, lit.value if nanos else _micros_to_nanos(micros))
        case DateType():
            return Literal(Kind.DATE, micros // MICROS_PER_DAY)
    return None


def _from_text(lit: Literal, target: IcebergType) -> Literal | None:
    text = str(lit.value)
    for target_type, kind, parse in _TEXT_PARSERS:
        if isinstance(target, target_type):
            try:
                return Literal(kind, parse(text))
            except (ValueError, InvalidOperation) as error:
                raise InputError(f"{text[:60]!r} is not a valid {target}") from error
    if isinstance(target, FixedType | BinaryType):
        return _from_hex(text, target)
    return None


def _from_hex(text: str, target: IcebergType) -> Literal | None:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    return _from_bytes(Literal(Kind.BINARY, raw), target)


def _unicode(text: str) -> str:
    """Refuse halves of surrogate pairs, which JSON and a command line can carry and UTF-8 cannot."""
    text.encode()
    return text


def _decimal_of_text(text: str) -> Decimal:
    """Read a number as ``BigDecimal`` does, its scale as it is written; one of absurd length is refused."""
    if not _DECIMAL_TEXT.fullmatch(text):
        raise ValueError("not a decimal number")
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    if max(len(digits), abs(int(exponent))) > MOST_DECIMAL_DIGITS:
        raise ValueError(f"more than {MOST_DECIMAL_DIGITS} digits")
    return value


_TEXT_PARSERS: tuple[tuple[type, Kind, Callable[[str], Any]], ...] = (
    (StringType, Kind.STRING, _unicode),
    (DateType, Kind.DATE, iceberg_datetime.date_str_to_days),
    (TimeType, Kind.TIME, iceberg_datetime.time_str_to_micros),
    (TimestampType, Kind.TIMESTAMP, iceberg_datetime.timestamp_to_micros),
    (TimestamptzType, Kind.TIMESTAMPTZ, iceberg_datetime.timestamptz_to_micros),
    (TimestampNanoType, Kind.TIMESTAMP_NS, iceberg_datetime.timestamp_to_nanos),
    (TimestamptzNanoType, Kind.TIMESTAMPTZ_NS, iceberg_datetime.timestamptz_to_nanos),
    (UUIDType, Kind.UUID, UUID),
    (DecimalType, Kind.DECIMAL, _decimal_of_text),
)


def _from_bytes(lit: Literal, target: IcebergType) -> Literal | None:
    if isinstance(target, FixedType):
        return Literal(Kind.FIXED, lit.value) if len(lit.value) == len(target) else None
    return Literal(Kind.BINARY, lit.value) if isinstance(target, BinaryType) else None


_CONVERSIONS: dict[Kind, Callable[[Literal, IcebergType], Literal | OutOfRange | None]] = {
    Kind.BOOLEAN: _same(Kind.BOOLEAN, BooleanType),
    Kind.INT: _from_whole_number,
    Kind.LONG: _from_whole_number,
    Kind.FLOAT: _from_fraction,
    Kind.DOUBLE: _from_fraction,
    Kind.DATE: _same(Kind.DATE, DateType),
    Kind.TIME: _same(Kind.TIME, TimeType),
    Kind.TIMESTAMP: _from_timestamp,
    Kind.TIMESTAMPTZ: _from_timestamp,
    Kind.TIMESTAMP_NS: _from_timestamp,
    Kind.TIMESTAMPTZ_NS: _from_timestamp,
    Kind.DECIMAL: _same(Kind.DECIMAL, DecimalType),
    Kind.STRING: _from_text,
    Kind.UUID: _same(Kind.UUID, UUIDType),
    Kind.FIXED: _from_bytes,
    Kind.BINARY: _from_bytes,
}


def to_json_value(lit: Literal) -> Any:
    """Return the literal as Iceberg's JSON single-value serialization writes it.

    A date or time beyond what Python can write stays the number that it is inside; Iceberg binds that as well.
    """
    writer = _JSON_WRITERS.get(lit.kind)
    try:
        return writer(lit.value) if writer else lit.value
    except OverflowError:
        return lit.value


def _iso_timestamp(micros: int, fraction: int, digits: int) -> str:
    second = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=micros // 1_000_000)
    return f"{second.isoformat()}.{fraction:0{digits}d}"


def _iso_micros(micros: int) -> str:
    return _iso_timestamp(micros, micros % 1_000_000, 6)


def _iso_nanos(nanos: int) -> str:
    return _iso_timestamp(nanos // 1000, nanos % 1_000_000_000, 9)


_JSON_WRITERS: dict[Kind, Callable[[Any], Any]] = {
    Kind.DATE: lambda days: (dt.date(1970, 1, 1) + dt.timedelta(days=days)).isoformat(),
    Kind.TIME: lambda micros: (dt.datetime.min + dt.timedelta(microseconds=micros)).time().isoformat(),
    Kind.TIMESTAMP: _iso_micros,
    Kind.TIMESTAMPTZ: lambda micros: _iso_micros(micros) + "+00:00",
    Kind.TIMESTAMP_NS: _iso_nanos,
    Kind.TIMESTAMPTZ_NS: lambda nanos: _iso_nanos(nanos) + "+00:00",
    Kind.DECIMAL: lambda value: format(value, "f"),
    Kind.UUID: str,
    Kind.FIXED: lambda raw: raw.hex().upper(),
    Kind.BINARY: lambda raw: raw.hex().upper(),
}
