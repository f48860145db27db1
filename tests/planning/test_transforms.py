"""Transforms of literals: the specification's examples, and Java's rounding of times before 1970."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
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

from planning_health.planning.transforms import bucket_hash, transform_function

SECOND, HOUR, DAY = 1_000_000, 3_600_000_000, 86_400_000_000
INSTANT = 1_510_871_468 * SECOND  # 2017-11-16T22:31:08Z


def apply(transform: str, source: IcebergType, value: Any) -> Any:
    return transform_function(parse_transform(transform), source)(value)


@pytest.mark.parametrize(
    ("source", "value", "hashed"),
    [
        (IntegerType(), 34, 2017239379),
        (LongType(), 34, 2017239379),
        (DecimalType(9, 2), Decimal("14.20"), -500754589),
        (DateType(), (dt.date(2017, 11, 16) - dt.date(1970, 1, 1)).days, -653330422),
        (TimeType(), 81_068 * SECOND, -662762989),  # 22:31:08
        (TimestampType(), INSTANT, -2047944441),
        (TimestampType(), INSTANT + 1, -1207196810),
        (TimestamptzType(), INSTANT, -2047944441),
        (TimestampNanoType(), INSTANT * 1000, -2047944441),
        (TimestampNanoType(), INSTANT * 1000 + 1001, -1207196810),
        (TimestamptzNanoType(), INSTANT * 1000, -2047944441),
        (StringType(), "iceberg", 1210000089),
        (UUIDType(), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1488055340),
        (FixedType(4), b"\x00\x01\x02\x03", -188683207),
        (BinaryType(), b"\x00\x01\x02\x03", -188683207),
    ],
    ids=str,
)
def test_bucket_hashes_are_those_of_the_specification(source: IcebergType, value: Any, hashed: int) -> None:
    assert bucket_hash(value, source) == hashed
    assert apply("bucket[16]", source, value) == (hashed & 0x7FFF_FFFF) % 16


@pytest.mark.parametrize(
    ("source", "width", "value", "truncated"),
    [
        (IntegerType(), 10, 1, 0),
        (IntegerType(), 10, -1, -10),
        (LongType(), 10, -11, -20),
        (DecimalType(9, 2), 50, Decimal("10.65"), Decimal("10.50")),
        (DecimalType(9, 2), 50, Decimal("-0.01"), Decimal("-0.50")),
        (StringType(), 3, "iceberg", "ice"),
        (StringType(), 2, "\U0001f600\U0001f601\U0001f602", "\U0001f600\U0001f601"),
        (BinaryType(), 3, b"\x01\x02\x03\x04", b"\x01\x02\x03"),
        (IntegerType(), 10, -(2**31), 2**31 - 2),  # below the least int Java wraps around
        (LongType(), 10, -(2**63), 2**63 - 2),
    ],
    ids=str,
)
def test_truncation_is_that_of_the_specification(source: IcebergType, width: int, value: Any, truncated: Any) -> None:
    assert apply(f"truncate[{width}]", source, value) == truncated


@pytest.mark.parametrize(
    ("date", "year", "month"),
    [
        ("1970-01-01", 0, 0),
        ("1971-12-31", 1, 23),
        ("1969-12-31", -1, -1),
        ("1969-12-01", -1, -1),
        ("1969-11-30", -1, -2),
        ("1969-01-01", -1, -12),
        ("1968-12-31", -2, -13),
        ("0001-01-01", -1969, -23628),
        ("9999-12-31", 8029, 96359),
    ],
)
def test_dates_fall_into_their_year_and_month(date: str, year: int, month: int) -> None:
    days = (dt.date.fromisoformat(date) - dt.date(1970, 1, 1)).days
    assert apply("year", DateType(), days) == year
    assert apply("month", DateType(), days) == month
    assert apply("day", DateType(), days) == days
    for moment in (days * DAY, days * DAY + 12 * HOUR):
        assert apply("year", TimestampType(), moment) == year
        assert apply("month", TimestampType(), moment) == month
        assert apply("day", TimestampType(), moment) == days
        assert apply("day", TimestampNanoType(), moment * 1000) == days


@pytest.mark.parametrize(
    ("micros", "hour"),
    [
        (0, 0),
        (HOUR - 1, 0),
        (HOUR, 1),
        (-1, -1),
        (-HOUR, -1),
        (-HOUR - 1, -2),
        (-HOUR - SECOND, -2),
        # DateTimeUtil adds a microsecond to the fraction but not to the seconds: the last microsecond of a second is
        # taken for its beginning, and here that is the beginning of the hour
        (-HOUR + SECOND - 1, -2),
        (-HOUR + SECOND - 2, -1),
    ],
)
def test_hours_before_1970_are_rounded_as_java_rounds_them(micros: int, hour: int) -> None:
    assert apply("hour", TimestampType(), micros) == hour


def test_a_date_far_outside_pythons_calendar_has_a_year() -> None:
    assert apply("year", DateType(), 146_097 * 100) == 40_000
    assert apply("year", DateType(), -146_097 * 100) == -40_000
