"""Comparing a column with a constant of another type, as Spark's optimizer rewrites it.

Spark casts both sides to a common type and then moves the cast to the constant where that keeps the answer:
``int_column < 1.5`` becomes ``int_column <= 1``, ``date_column > TIMESTAMP '2024-01-01 12:00'`` becomes
``date_column > DATE '2024-01-01'``, and a comparison that cannot fail becomes IS NOT NULL.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any
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
    IcebergType,
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

from planning_health.errors import InputError
from planning_health.planning.expressions import Operation
from planning_health.planning.literals import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    Kind,
    Literal,
    decimal_of,
    unscaled_of,
)
from planning_health.planning.sql_constants import Clock, parse_boolean, parse_date, parse_timestamp


class Always(Enum):
    """A comparison whose answer does not depend on the column's (non-null) value."""

    TRUE = True
    FALSE = False


Coerced = tuple[Operation, Literal] | Always | None
"""The comparison on the column's type; None where Spark does not push it down."""

_EPOCH_DAY = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)
_ZONED = (TimestamptzType, TimestamptzNanoType)
_TIMESTAMPS = (TimestampType, TimestampNanoType, *_ZONED)
_BELOW = {Operation.LT: Operation.LT_EQ, Operation.GT_EQ: Operation.GT}


def coerce(column_type: IcebergType, op: Operation, value: Any, clock: Clock) -> Coerced:
    """Bring ``column op value`` onto the column's type.

    Args:
        column_type: the column's type.
        op: one of =, !=, <, ≤, >, ≥.
        value: a folded constant, not NULL.
        clock: the session's time zone.

    Raises:
        InputError: Spark refuses to compare the two types, or the text is no value of the column's type.
    """
    for types, rule in _RULES:
        if isinstance(column_type, types):
            return rule(column_type, op, value, clock)
    return None


class MismatchError(InputError):
    """A column is compared with a constant of another kind."""


def _mismatch(column_type: IcebergType, value: Any) -> MismatchError:
    return MismatchError(f"a column of type {column_type} cannot be compared with {value!r}")


def _on_grid(op: Operation, literal: Literal, *, exact: bool) -> Coerced:
    """Compare with the column's greatest value that is not above the constant."""
    if exact:
        return op, literal
    if op is Operation.EQ:
        return Always.FALSE
    return Always.TRUE if op is Operation.NOT_EQ else (_BELOW.get(op, op), literal)


def _boolean(column_type: IcebergType, op: Operation, value: Any, _: Clock) -> Coerced:
    if isinstance(value, str):
        try:
            value = parse_boolean(value)
        except ValueError as error:
            raise InputError(str(error)) from error
    if not isinstance(value, bool):
        raise _mismatch(column_type, value)
    return op, Literal(Kind.BOOLEAN, value)


def _number(column_type: IcebergType, value: Any) -> int | Decimal | float:
    if isinstance(value, str):
        try:
            return int(value) if not isinstance(column_type, FloatType | DoubleType) else float(value)
        except ValueError as error:
            raise InputError(f"{value!r} is not a number, as a column of type {column_type} needs") from error
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        raise _mismatch(column_type, value)
    return value


def _whole(column_type: IcebergType, op: Operation, value: Any, _: Clock) -> Coerced:
    number = _number(column_type, value)
    if isinstance(number, float) and not math.isfinite(number):
        return None
    least, most = (INT_MIN, INT_MAX) if isinstance(column_type, IntegerType) else (LONG_MIN, LONG_MAX)
    floor = math.floor(number)
    if floor > most:
        return Always(op in (Operation.LT, Operation.LT_EQ, Operation.NOT_EQ))
    if floor < least:
        return Always(op in (Operation.GT, Operation.GT_EQ, Operation.NOT_EQ))
    kind = Kind.INT if isinstance(column_type, IntegerType) else Kind.LONG
    return _on_grid(op, Literal(kind, floor), exact=floor == number)


def _float(column_type: IcebergType, op: Operation, value: Any, _: Clock) -> Coerced:
    number = float(_number(column_type, value))
    if math.isnan(number):
        return None
    with np.errstate(over="ignore"):
        nearest = np.float32(number)
    floor = nearest if float(nearest) <= number else np.nextafter(nearest, np.float32(-np.inf))
    return _on_grid(op, Literal(Kind.FLOAT, float(floor)), exact=float(floor) == number)


def _double(column_type: IcebergType, op: Operation, value: Any, _: Clock) -> Coerced:
    number = float(_number(column_type, value))
    return None if math.isnan(number) else (op, Literal(Kind.DOUBLE, number))


def _decimal(column_type: Any, op: Operation, value: Any, _: Clock) -> Coerced:
    if isinstance(value, str | float):
        return None  # compared as doubles, the cast stays on the column
    number = _number(column_type, value)
    unscaled, scale = unscaled_of(Decimal(number))
    if scale <= column_type.scale:
        exact = decimal_of(unscaled * 10 ** (column_type.scale - scale), column_type.scale)
        return op, Literal(Kind.DECIMAL, exact)
    floor, rest = divmod(unscaled, 10 ** (scale - column_type.scale))
    return _on_grid(op, Literal(Kind.DECIMAL, decimal_of(floor, column_type.scale)), exact=rest == 0)


def _text(_: IcebergType, op: Operation, value: Any, __: Clock) -> Coerced:
    return (op, Literal(Kind.STRING, value)) if isinstance(value, str) else None


def _uuid(_: IcebergType, op: Operation, value: Any, __: Clock) -> Coerced:
    try:
        return (op, Literal(Kind.UUID, UUID(value))) if isinstance(value, str) else None
    except ValueError:
        return None


def _binary(column_type: IcebergType, op: Operation, value: Any, _: Clock) -> Coerced:
    if isinstance(value, int | Decimal | float):
        raise _mismatch(column_type, value)
    raw = value.encode() if isinstance(value, str) else value
    if not isinstance(raw, bytes) or (isinstance(column_type, FixedType) and len(raw) != len(column_type)):
        return None
    return op, Literal(Kind.FIXED if isinstance(column_type, FixedType) else Kind.BINARY, raw)


def _date(column_type: IcebergType, op: Operation, value: Any, clock: Clock) -> Coerced:
    exact = True
    if isinstance(value, str):
        value = parse_date(value)
    if isinstance(value, dt.datetime):
        local = clock.local(value) if value.tzinfo else value
        value, exact = local.date(), local.time() == dt.time()
    if not isinstance(value, dt.date):
        raise _mismatch(column_type, value)
    return _on_grid(op, Literal(Kind.DATE, (value - _EPOCH_DAY).days), exact=exact)


def _timestamp(column_type: IcebergType, op: Operation, value: Any, clock: Clock) -> Coerced:
    zoned = isinstance(column_type, _ZONED)
    if isinstance(value, str):
        value = parse_timestamp(value, clock, zoned=zoned)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = clock.midnight(value) if zoned else dt.datetime.combine(value, dt.time())
    if not isinstance(value, dt.datetime):
        raise _mismatch(column_type, value)
    return op, timestamp_literal(column_type, value, clock)


def timestamp_literal(column_type: IcebergType, value: dt.datetime, clock: Clock) -> Literal:
    """Return the literal of a timestamp column for an instant (aware) or a wall-clock time (naive)."""
    zoned = isinstance(column_type, _ZONED)
    instant = value if value.tzinfo else clock.instant(value)
    wall = instant.astimezone(dt.UTC).replace(tzinfo=None) if zoned else clock.local(value) if value.tzinfo else value
    micros = (wall - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(column_type, TimestampNanoType | TimestamptzNanoType):
        return Literal(Kind.TIMESTAMPTZ_NS if zoned else Kind.TIMESTAMP_NS, micros * 1000)
    return Literal(Kind.TIMESTAMPTZ if zoned else Kind.TIMESTAMP, micros)


def _time(column_type: IcebergType, op: Operation, value: Any, _: Clock) -> Coerced:
    if not isinstance(value, str):
        raise _mismatch(column_type, value)
    try:
        time = dt.time.fromisoformat(value)
    except ValueError as error:
        raise InputError(f"{value!r} is not a time of day") from error
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return op, Literal(Kind.TIME, seconds * 1_000_000 + time.microsecond)


_RULES: tuple[tuple[Any, Callable[[Any, Operation, Any, Clock], Coerced]], ...] = (
    (BooleanType, _boolean),
    ((IntegerType, LongType), _whole),
    (FloatType, _float),
    (DoubleType, _double),
    (DecimalType, _decimal),
    (StringType, _text),
    (UUIDType, _uuid),
    ((BinaryType, FixedType), _binary),
    (DateType, _date),
    (_TIMESTAMPS, _timestamp),
    (TimeType, _time),
)
