"""Columns of raw values compared with literals and with each other, in the order of Java's comparators."""

from __future__ import annotations

import struct
from decimal import Decimal
from itertools import combinations, product
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    LongType,
    StringType,
    TimestampType,
    UUIDType,
)

from planning_health.planning.comparable import comparable
from planning_health.planning.literals import Kind, Literal

ASCENDING: list[tuple[IcebergType, Kind, list[Any]]] = [
    (BooleanType(), Kind.BOOLEAN, [False, True]),
    (LongType(), Kind.LONG, [-(2**63), -1, 0, 1, 2**63 - 1]),
    (DateType(), Kind.DATE, [-(2**31), -1, 0, 2**31 - 1]),
    (TimestampType(), Kind.TIMESTAMP, [-(2**62), -1, 0, 2**62]),
    (FloatType(), Kind.FLOAT, [float("-inf"), -1.5, -0.0, 0.0, 0.5, float("inf"), float("nan")]),
    (DoubleType(), Kind.DOUBLE, [float("-inf"), -1e300, -0.0, 0.0, 5e-324, float("inf"), float("nan")]),
    (StringType(), Kind.STRING, ["", "a", "ab", "b", "é", "\ufffd", "\U0001f600"]),
    (BinaryType(), Kind.BINARY, [b"", b"\x00", b"\x7f", b"\x80", b"\xff\x00"]),
    (DecimalType(9, 2), Kind.DECIMAL, [Decimal(n).scaleb(-2) for n in (-32769, -129, -128, -1, 0, 127, 128, 32768)]),
    (
        DecimalType(38, 2),
        Kind.DECIMAL,
        [Decimal(n).scaleb(-2) for n in (-(2**90), -(2**63) - 1, -(2**63), -1, 0, 2**63, 2**90)],
    ),
    (
        UUIDType(),
        Kind.UUID,  # Java compares the two halves as signed numbers
        [
            UUID("80000000-0000-0000-0000-000000000000"),
            UUID("ffffffff-ffff-ffff-ffff-ffffffffffff"),
            UUID("00000000-0000-0000-8000-000000000000"),
            UUID("00000000-0000-0000-0000-000000000000"),
            UUID("00000000-0000-0000-0100-000000000000"),
            UUID("00000000-0000-0000-7fff-ffffffffffff"),
            UUID("00000000-0000-0001-8000-000000000000"),
            UUID("00010000-0000-0000-0000-000000000000"),
            UUID("00020000-0000-0000-0000-000000000000"),
            UUID("01000000-0000-0000-0000-000000000000"),
        ],
    ),
]
NAMES = [str(kind) for kind, _, _ in ASCENDING]


@pytest.mark.parametrize(("kind", "literal", "values"), ASCENDING, ids=NAMES)
def test_values_are_ordered_as_iceberg_orders_them(kind: IcebergType, literal: Kind, values: list[Any]) -> None:
    column = comparable(pa.array([None, *(to_bytes(kind, value) for value in values)], pa.binary()), kind)
    assert column.valid.tolist() == [False, *[True] * len(values)]
    positions = np.arange(-1, len(values))
    present = positions >= 0
    for position, value in enumerate(values):
        lit = Literal(literal, value)
        assert column.lt(lit).tolist() == (present & (positions < position)).tolist()
        assert column.le(lit).tolist() == (present & (positions <= position)).tolist()
        assert column.eq(lit).tolist() == (present & (positions == position)).tolist()
    for one, other in combinations(range(len(values)), 2):
        lits = [Literal(literal, values[one]), Literal(literal, values[other])]
        assert column.is_in(lits).tolist() == [False, *((positions[1:] == one) | (positions[1:] == other)).tolist()]


@pytest.mark.parametrize(("kind", "literal", "values"), ASCENDING, ids=NAMES)
def test_columns_are_compared_row_by_row(kind: IcebergType, literal: Kind, values: list[Any]) -> None:
    pairs = list(product([None, *range(len(values))], repeat=2))
    raw = [None, *(to_bytes(kind, value) for value in values)]
    left, right = (
        comparable(pa.array([raw[0 if pair[side] is None else pair[side] + 1] for pair in pairs], pa.binary()), kind)
        for side in (0, 1)
    )
    assert left.same(right).tolist() == [one is not None and one == other for one, other in pairs]
    assert left.gt_column(right).tolist() == [None not in (one, other) and one > other for one, other in pairs]
    chosen = np.array([5, 0, 5])
    assert left.take(chosen).same(right.take(chosen)).tolist() == left.same(right)[chosen].tolist()


@pytest.mark.parametrize("kind", [DecimalType(9, 2), DecimalType(38, 2)], ids=["narrow", "wide"])
def test_a_decimal_of_a_finer_scale_lies_between_the_columns_values(kind: DecimalType) -> None:
    values = [Decimal("1.20"), Decimal("1.21")] + ([] if kind.precision == 9 else [Decimal("1" + 30 * "0" + ".00")])
    column = comparable(pa.array([to_bytes(kind, value) for value in values], pa.binary()), kind)
    between, exact = Literal(Kind.DECIMAL, Decimal("1.205")), Literal(Kind.DECIMAL, Decimal("1.2"))
    assert column.lt(between).tolist()[:2] == column.le(between).tolist()[:2] == [True, False]
    assert column.eq(between).tolist()[:2] == [False, False]
    assert (column.lt(exact).tolist()[:2], column.le(exact).tolist()[:2]) == ([False, False], [True, False])
    assert column.eq(exact).tolist()[:2] == [True, False]
    assert column.is_in([exact]).tolist()[:2] == [False, False], "BigDecimal.equals tells 1.2 from 1.20"
    assert column.is_in([Literal(Kind.DECIMAL, Decimal("1.20"))]).tolist()[:2] == [True, False]


def test_a_literal_beyond_64_bits_is_above_or_below_every_narrow_decimal() -> None:
    column = comparable(pa.array([b"\x01", b"\xff", None], pa.binary()), DecimalType(18, 0))
    above, below = Literal(Kind.DECIMAL, Decimal(10) ** 30), Literal(Kind.DECIMAL, -(Decimal(10) ** 30))
    assert column.lt(above).tolist() == column.le(above).tolist() == [True, True, False]
    assert column.lt(below).tolist() == column.le(below).tolist() == [False, False, False]
    assert column.eq(above).tolist() == [False, False, False]


def test_shorter_encodings_of_promoted_types_are_read_by_their_length() -> None:
    longs = comparable(pa.array([struct.pack("<i", -5), struct.pack("<q", -5), b"\x01"], pa.binary()), LongType())
    assert longs.eq(Literal(Kind.LONG, -5)).tolist() == [True, True, False]
    assert longs.valid.tolist() == [True, True, False]
    doubles = comparable(pa.array([struct.pack("<f", 0.5), struct.pack("<d", 0.5), b""], pa.binary()), DoubleType())
    assert doubles.eq(Literal(Kind.DOUBLE, 0.5)).tolist() == [True, True, False]
    assert doubles.valid.tolist() == [True, True, False]
    floats = comparable(pa.array([struct.pack("<f", 0.5), struct.pack("<d", 0.5)], pa.binary()), FloatType())
    assert floats.valid.tolist() == [True, False], "no type was promoted to float"
    decimals = comparable(pa.array([b"", b"\x01", b"\0" * 8 + b"\x01"], pa.binary()), DecimalType(38, 0))
    assert decimals.valid.tolist() == [False, True, True]
    assert decimals.eq(Literal(Kind.DECIMAL, Decimal(1))).tolist() == [False, True, True]


def test_only_nan_is_nan() -> None:
    values = [float("nan"), float("inf"), 0.0]
    column = comparable(pa.array([None, *(struct.pack("<d", value) for value in values)], pa.binary()), DoubleType())
    assert column.nan.tolist() == [False, True, False, False]
    assert comparable(pa.array([b"\0" * 8], pa.binary()), LongType()).nan.tolist() == [False]


def test_a_slice_of_a_column_is_read_where_it_begins() -> None:
    raw = pa.array([struct.pack("<q", value) for value in range(6)], pa.binary())
    assert comparable(raw[2:5], LongType()).eq(Literal(Kind.LONG, 3)).tolist() == [False, True, False]
    decimals = pa.array([bytes([value]) for value in range(6)], pa.binary())
    assert comparable(decimals[2:5], DecimalType(4, 0)).eq(Literal(Kind.DECIMAL, Decimal(3))).tolist() == [
        False,
        True,
        False,
    ]
    chunks = pa.chunked_array([raw[:2], raw[2:]])
    assert comparable(chunks, LongType()).eq(Literal(Kind.LONG, 3)).tolist() == [False] * 3 + [True] + [False] * 2


def test_large_and_fixed_binary_columns_are_read_like_binary_ones() -> None:
    raw = [struct.pack("<q", value) for value in (1, 2)]
    for kind in (pa.large_binary(), pa.binary(8)):
        assert comparable(pa.array(raw, kind), LongType()).eq(Literal(Kind.LONG, 2)).tolist() == [False, True]
    assert comparable(pa.chunked_array([], pa.binary()), LongType()).valid.tolist() == []


def test_prefixes_are_those_of_utf8() -> None:
    column = comparable(pa.array(["éa".encode(), b"e", b"\xff", None], pa.binary()), StringType())
    assert column.starts_with("é").tolist() == [True, False, False, False]
    assert column.valid.tolist() == [True, True, False, False]
