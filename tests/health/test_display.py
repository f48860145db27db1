"""Partition values as Iceberg's metadata tables show them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.transforms import IdentityTransform, parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from planning_health.health.display import days_since_epoch, display, number

SOME_UUID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")


@pytest.mark.parametrize(
    ("transform", "value", "expected"),
    [
        ("year", 54, "2024"),
        ("year", -1, "1969"),
        ("month", 648, "2024-01"),
        ("month", -1, "1969-12"),
        ("day", 19727, "2024-01-05"),
        ("day", -1, "1969-12-31"),
        ("hour", 473458, "2024-01-05-10"),
        ("hour", -1, "1969-12-31-23"),
        ("bucket[16]", 7, "7"),
        ("truncate[10]", 40, "40"),
    ],
)
def test_values_of_a_transform_are_shown_in_its_unit(transform: str, value: int, expected: str) -> None:
    kind = DateType() if transform == "day" else IntegerType()
    assert display(parse_transform(transform), kind, value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (BooleanType(), True, "true"),
        (DateType(), 19727, "2024-01-05"),
        (TimeType(), 36_775_038_194, "10:12:55.038194"),
        (TimeType(), 3_600_000_000, "01:00"),
        (TimeType(), 3_601_500_000, "01:00:01.500"),
        (TimestampType(), 0, "1970-01-01T00:00:00"),
        (TimestampType(), 1_512_123_175_038_194, "2017-12-01T10:12:55.038194"),
        (TimestamptzType(), 1_512_123_175_038_194, "2017-12-01T10:12:55.038194+00:00"),
        (TimestampType(), -1, "1969-12-31T23:59:59.999999"),
        (TimestampNanoType(), 1_512_123_175_038_194_001, "2017-12-01T10:12:55.038194001"),
        (TimestamptzNanoType(), 0, "1970-01-01T00:00:00+00:00"),
        (DecimalType(9, 2), Decimal("-1.50"), "-1.50"),
        (DecimalType(38, 0), Decimal(10) ** 30, "1" + "0" * 30),
        (DoubleType(), -0.0, "-0.0"),
        (DoubleType(), math.inf, "Infinity"),
        (DoubleType(), math.nan, "NaN"),
        (StringType(), "null", "null"),
        (StringType(), "", ""),
        (BinaryType(), b"\x00\x01\x02", "AAEC"),
        (FixedType(2), b"\xff\x00", "/wA="),
        (UUIDType(), SOME_UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ],
    ids=str,
)
def test_identity_values_are_shown_by_type(kind: Any, value: Any, expected: str) -> None:
    assert display(IdentityTransform(), kind, value) == expected


def test_no_value_is_not_the_text_null() -> None:
    assert display(IdentityTransform(), StringType(), None) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (True, 1),
        (2.5, 2.5),
        (Decimal("1.5"), 1.5),
        (math.nan, None),
        (math.inf, None),
        ("3", None),
        (None, None),
    ],
)
def test_only_finite_numbers_are_charted(value: Any, expected: float | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("transform", "units", "days"),
    [("year", [0, 1, 54], [0, 365, 19723]), ("month", [0, 1, 649], [0, 31, 19754]), ("hour", [24, 36], [1, 1.5])],
)
def test_units_begin_on_calendar_days(transform: str, units: list[int], days: list[float]) -> None:
    assert days_since_epoch(parse_transform(transform), np.array(units)).tolist() == days


@given(st.integers(-800, 2000), st.integers(0, 500))
def test_months_never_differ_by_less_than_28_days_each(month: int, more: int) -> None:
    first, second = days_since_epoch(parse_transform("month"), np.array([month, month + more]))
    assert 28 * more <= second - first <= 31 * more
