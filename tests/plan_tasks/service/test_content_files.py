"""Values as Iceberg's ``SingleValueParser`` writes them."""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
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

from planning_health.plan_tasks.service.content_files import single_value

INT, LONG = struct.Struct("<i").pack, struct.Struct("<q").pack


@pytest.mark.parametrize(
    ("raw", "field_type", "written"),
    [
        (None, LongType(), None),
        (LONG(5), None, None),
        (b"\x01", BooleanType(), True),
        (INT(-7), IntegerType(), -7),
        (INT(7), LongType(), 7),
        (LONG(2**63 - 1), LongType(), 2**63 - 1),
        (struct.pack("<f", 1.5), FloatType(), 1.5),
        (struct.pack("<d", float("nan")), DoubleType(), "NaN"),
        (struct.pack("<d", float("-inf")), DoubleType(), "-Infinity"),
        (INT(0), DateType(), "1970-01-01"),
        (INT(-719_529), DateType(), "-0001-12-31"),
        (INT(2_932_897), DateType(), "+10000-01-01"),
        (LONG(0), TimeType(), "00:00:00"),
        (LONG(3_600_000_000 + 10), TimeType(), "01:00:00.00001"),
        (LONG(1_500_000), TimestampType(), "1970-01-01T00:00:01.5"),
        (LONG(-1), TimestamptzType(), "1969-12-31T23:59:59.999999+00:00"),
        (LONG(1), TimestampNanoType(), "1970-01-01T00:00:00.000000001"),
        (LONG(0), TimestamptzNanoType(), "1970-01-01T00:00:00+00:00"),
        (b"\x04\xd2", DecimalType(9, 2), "12.34"),
        (b"\x05", DecimalType(9, 0), "5"),
        (b"\x00", DecimalType(38, 10), "0.0000000000"),
        ("grün".encode(), StringType(), "grün"),
        (UUID(int=5).bytes, UUIDType(), str(UUID(int=5))),
        (b"\x0a\xff", FixedType(2), "0AFF"),
        (b"", BinaryType(), ""),
    ],
)
def test_single_values_are_written_as_in_java(raw: bytes | None, field_type: IcebergType | None, written: Any) -> None:
    assert single_value(raw, field_type) == written


@given(st.dates())
def test_dates_are_iso_dates(day: dt.date) -> None:
    days = (day - dt.date(1970, 1, 1)).days
    assert single_value(INT(days), DateType()) == day.isoformat()


@given(st.datetimes())
def test_timestamps_read_back_as_they_were(moment: dt.datetime) -> None:
    micros = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    written = single_value(LONG(micros), TimestampType())
    assert dt.datetime.fromisoformat(written) == moment
    assert not written.endswith(("0", ".")) or "." not in written
