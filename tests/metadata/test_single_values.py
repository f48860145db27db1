"""Raw bounds to values: the examples and rules of the Iceberg specification, appendix D, and its type promotions."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
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
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from planning_health.metadata.single_values import decode, decode_array

INT, LONG, FLOAT, DOUBLE = (struct.Struct(layout) for layout in ("<i", "<q", "<f", "<d"))
DAY = 86_400_000_000
VALUES: list[tuple[IcebergType, bytes, Any]] = [
    (BooleanType(), b"\x00", False),
    (BooleanType(), b"\x01", True),
    (IntegerType(), b"\xfe\xff\xff\xff", -2),
    (LongType(), b"\x01\x02\0\0\0\0\0\0", 513),
    (LongType(), INT.pack(-5), -5),  # written as int
    (FloatType(), FLOAT.pack(-1.5), -1.5),
    (DoubleType(), DOUBLE.pack(0.1), 0.1),
    (DoubleType(), FLOAT.pack(0.5), 0.5),  # written as float
    (DateType(), INT.pack(19936), 19936),
    (TimeType(), LONG.pack(DAY - 1), DAY - 1),
    (TimestampType(), LONG.pack(-1), -1),
    (TimestamptzType(), LONG.pack(DAY), DAY),
    (TimestampNanoType(), LONG.pack(DAY * 1000 + 1), DAY * 1000 + 1),
    (StringType(), "é€".encode(), "é€"),
    (StringType(), b"", ""),
    (UUIDType(), bytes(range(16)), UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")),
    (FixedType(2), b"\xff\x00", b"\xff\x00"),
    (BinaryType(), b"", b""),
    (DecimalType(9, 2), b"\x05\x3c", Decimal("13.40")),
    (DecimalType(9, 2), b"\xff", Decimal("-0.01")),
    (DecimalType(38, 4), (10**37).to_bytes(16, "big"), Decimal(10**33)),
]
UNKNOWN: list[tuple[IcebergType, bytes]] = [
    (BooleanType(), b""),
    (IntegerType(), b"\x01\x02\x03"),
    (IntegerType(), LONG.pack(1)),
    (LongType(), b"\x01\x02\x03"),
    (FloatType(), DOUBLE.pack(1.0)),
    (DoubleType(), b"\x01"),
    (DateType(), b""),
    (TimestampType(), b"\x01"),
    (StringType(), b"\xff\xfe"),
    (UUIDType(), b"\x01\x02"),
    (DecimalType(9, 2), b""),
    (UnknownType(), b"\x01"),
]


@pytest.mark.parametrize(("kind", "raw", "value"), VALUES, ids=str)
def test_values_are_decoded_by_their_type_and_length(kind: IcebergType, raw: bytes, value: Any) -> None:
    assert decode(raw, kind) == value
    values, known = decode_array(pa.array([None, raw], pa.binary()), kind)
    assert known.tolist() == [False, True]
    assert values[1] == value


@pytest.mark.parametrize(("kind", "raw"), UNKNOWN, ids=str)
def test_what_cannot_be_decoded_is_unknown(kind: IcebergType, raw: bytes) -> None:
    assert decode(raw, kind) is None
    assert decode_array(pa.array([raw], pa.binary()), kind)[1].tolist() == [False]


def test_an_absent_value_is_unknown() -> None:
    assert decode(None, IntegerType()) is None


@pytest.mark.parametrize("kind", [IntegerType(), StringType()])
def test_a_column_without_rows_has_no_values(kind: IcebergType) -> None:
    values, known = decode_array(pa.chunked_array([], pa.binary()), kind)
    assert (len(values), len(known)) == (0, 0)


@pytest.mark.parametrize(("kind", "factor"), [(TimestampType(), 1), (TimestampNanoType(), 1000)], ids=str)
def test_a_date_that_was_promoted_to_a_timestamp_is_its_midnight(kind: IcebergType, factor: int) -> None:
    # version 3 of the specification allows it
    assert decode(INT.pack(2), kind) == 2 * DAY * factor
    values, known = decode_array(pa.array([INT.pack(2), LONG.pack(7)], pa.binary()), kind)
    assert (values.tolist(), known.tolist()) == ([2 * DAY * factor, 7], [True, True])
