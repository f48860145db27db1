"""Literals on their way to a column's type, as Iceberg Java's ``Literals`` converts them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.types import (
    BinaryType,
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
    TimestamptzType,
    TimeType,
)

from planning_health.errors import InputError
from planning_health.planning.literals import FLOAT_MAX, Kind, Literal, OutOfRange, convert, literal

DECIMAL = DecimalType(9, 2)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (2**31 - 1, IntegerType(), 2**31 - 1),
        (2**31, IntegerType(), OutOfRange.ABOVE_MAX),
        (-(2**31) - 1, IntegerType(), OutOfRange.BELOW_MIN),
        (5, LongType(), 5),
        (2**31, DateType(), OutOfRange.ABOVE_MAX),
        (19936, DateType(), 19936),
        (5, DoubleType(), 5.0),
        (2**24 + 1, FloatType(), float(2**24)),  # to the nearest float
        (5, DECIMAL, Decimal("5.00")),
        (7, TimeType(), 7),
        (7, TimestampType(), 7),
        (7, TimestampNanoType(), 7000),
        (0.1, FloatType(), 0.10000000149011612),
        (FLOAT_MAX * 2, FloatType(), OutOfRange.ABOVE_MAX),
        (-FLOAT_MAX * 2, FloatType(), OutOfRange.BELOW_MIN),
        (float("inf"), DoubleType(), float("inf")),
        (0.005, DECIMAL, Decimal("0.01")),
        (-0.005, DECIMAL, Decimal("-0.01")),
        (0.0049, DECIMAL, Decimal("0.00")),
        (2.675, DECIMAL, Decimal("2.68")),
        (1e30, DecimalType(38, 2), Decimal("1" + 30 * "0" + ".00")),
        ("1.50", DECIMAL, Decimal("1.50")),
        ("1.5", DECIMAL, Decimal("1.5")),  # the scale stays as it is written
        ("-1.5e3", DECIMAL, Decimal("-1.5e3")),
        (".5", DECIMAL, Decimal(".5")),
        ("2024-08-01", DateType(), 19936),
        ("00:00:01", TimeType(), 1_000_000),
        ("1970-01-01T00:00:01", TimestampType(), 1_000_000),
        ("1970-01-01T01:00:00+01:00", TimestamptzType(), 0),
        ("0aFF", BinaryType(), b"\x0a\xff"),
        (b"ab", FixedType(2), b"ab"),
    ],
)
def test_literals_become_values_of_the_columns_type(value: object, target: IcebergType, expected: Any) -> None:
    found = convert(literal(value), target)
    assert (found.value if isinstance(found, Literal) else found) == expected
    if isinstance(expected, Decimal):
        assert isinstance(found, Literal)
        assert found.value.as_tuple() == expected.as_tuple()


@pytest.mark.parametrize(
    ("value", "target"),
    [
        (True, IntegerType()),
        (5, StringType()),
        (0.5, IntegerType()),
        ("5", IntegerType()),
        (b"abc", FixedType(2)),
        ("0a0", BinaryType()),
    ],
)
def test_conversions_that_java_does_not_know_are_refused(value: object, target: IcebergType) -> None:
    assert convert(literal(value), target) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "NaN",
        "sNaN",
        "Infinity",
        "-Infinity",
        "1_0",
        " 1",
        "1 ",
        "1e",
        ".",
        "1e999999999",
        "1e-999999999",
        1001 * "9",
    ],
)
def test_text_that_is_no_decimal_number_of_a_sane_length_is_named(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a valid decimal\(9, 2\)"):
        convert(literal(text), DECIMAL)


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(InputError, match=r"'\\udc00' is not a valid string"):
        convert(literal("\udc00"), StringType())


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinity_is_no_decimal(value: float) -> None:
    with pytest.raises(InputError, match=r"inf is not a valid decimal\(9, 2\)"):
        convert(Literal(Kind.DOUBLE, value), DECIMAL)
