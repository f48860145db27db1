"""File pruning by counts and bounds: the rules that a naive version gets wrong."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    UUIDType,
)
from tests.planning.pictures import COMPARED_WITH_3_TO_7, File, Manifest, picture, spec

from planning_health.planning.expressions import Operation, and_, not_, or_, predicate
from planning_health.planning.metrics_evaluator import MetricsColumns
from planning_health.planning.scan import simulate_scan

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "l", LongType()),
    NestedField(3, "f", FloatType()),
    NestedField(4, "d", DoubleType()),
    NestedField(5, "s", StringType()),
    NestedField(6, "u", UUIDType()),
    NestedField(7, "dec", DecimalType(9, 2)),
    NestedField(8, "dt", DateType()),
)
NAN = float("nan")


def matches(file: File, op: Operation, column: str, *values: Any) -> bool:
    return matches_expression(file, predicate(op, column, *values))


def matches_expression(file: File, expr: Any) -> bool:
    scan = simulate_scan(picture(SCHEMA, [spec()], [Manifest([file])]), expr)
    return scan.report.result_data_files == 1


def bounds(column: str, lower: Any = None, upper: Any = None, **more: Any) -> File:
    low = {} if lower is None else {column: lower}
    high = {} if upper is None else {column: upper}
    counts = {"values": {column: 100}, "nulls": {column: 0}} | more
    return File("f", lower=low, upper=high, **counts)


def test_greater_needs_only_the_upper_bound_and_less_only_the_lower() -> None:
    assert not matches(bounds("i", upper=5), Operation.GT, "i", 5)
    assert matches(bounds("i", lower=5), Operation.GT, "i", 100)
    assert not matches(bounds("i", lower=5), Operation.LT, "i", 5)
    assert matches(bounds("i", upper=5), Operation.LT, "i", -100)


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    COMPARED_WITH_3_TO_7,
)
def test_comparisons_include_the_bounds(op: Operation, values: tuple[int, ...], expected: bool) -> None:
    assert matches(bounds("i", 3, 7), op, "i", *values) is expected


@pytest.mark.parametrize(
    ("lower", "upper", "starts", "others"),
    [
        ("abc1", "abd", True, True),
        ("abc1", "abc9", True, False),  # all start with it
        ("abc", "abc", True, False),
        ("abd", "abe", False, True),
        ("aa", "ab", False, True),
        ("ab", "abz", True, True),
        ("a", "abc", True, True),
        ("b", None, False, True),
        ("abc1", None, True, True),
        (None, "abb", True, True),  # without the lower bound the upper one is not looked at
        (None, None, True, True),
    ],
)
def test_prefixes_are_compared_with_the_bounds_of_their_length(
    lower: str | None, upper: str | None, starts: bool, others: bool
) -> None:
    assert matches(bounds("s", lower, upper), Operation.STARTS_WITH, "s", "abc") is starts
    assert matches(bounds("s", lower, upper), Operation.NOT_STARTS_WITH, "s", "abc") is others


def test_equality_prunes_with_one_bound_but_in_needs_the_lower() -> None:
    only_upper = bounds("i", upper=5)
    assert not matches(only_upper, Operation.EQ, "i", 9)
    assert matches(only_upper, Operation.IN, "i", 9, 10)
    assert not matches(bounds("i", lower=5), Operation.IN, "i", 3, 4)


def test_in_of_one_value_is_equality() -> None:
    assert not matches(bounds("i", upper=5), Operation.IN, "i", 9)


def test_in_beyond_200_literals_is_not_compared_with_bounds() -> None:
    file = bounds("i", 0, 1)
    assert not matches(file, Operation.IN, "i", *range(1000, 1200))
    assert matches(file, Operation.IN, "i", *range(1000, 1201))


def test_a_missing_null_count_may_contain_null() -> None:
    unknown = bounds("i", 1, 2, nulls={})
    assert matches(unknown, Operation.IS_NULL, "i")
    assert not matches(bounds("i", 1, 2), Operation.IS_NULL, "i")


def test_not_starts_with_keeps_a_file_whose_null_count_is_missing() -> None:
    # https://github.com/apache/iceberg-python/pull/3891: PyIceberg 0.12 prunes it and loses rows
    assert matches(bounds("s", "abc1", "abc9", nulls={}), Operation.NOT_STARTS_WITH, "s", "abc")
    assert not matches(bounds("s", "abc1", "abc9"), Operation.NOT_STARTS_WITH, "s", "abc")


def test_all_null_and_all_nan_columns_match_no_comparison() -> None:
    all_null = bounds("d", nulls={"d": 100})
    all_nan = bounds("d", nans={"d": 100})
    for file in (all_null, all_nan):
        for op in (Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ, Operation.EQ):
            assert not matches(file, op, "d", 1.0)
        assert not matches(file, Operation.IN, "d", 1.0, 2.0)
        assert not matches(file, Operation.IN, "d", *map(float, range(201)))
    assert matches(all_null, Operation.NOT_EQ, "d", 1.0)
    assert not matches(all_null, Operation.NOT_NULL, "d")
    assert not matches(all_nan, Operation.NOT_NAN, "d")


def test_a_column_of_nulls_alone_holds_no_nan_and_no_prefix() -> None:
    nulls = {"values": {"d": 100, "s": 100}, "nulls": {"d": 100, "s": 100}}
    assert not matches(File("f", **nulls), Operation.IS_NAN, "d")
    assert not matches(File("f", **nulls), Operation.STARTS_WITH, "s", "a")
    assert matches(File("f", **nulls), Operation.NOT_NAN, "d")
    assert not matches(bounds("d", 0.0, 1.0, nans={"d": 0}), Operation.IS_NAN, "d")
    assert matches(bounds("d", 0.0, 1.0), Operation.IS_NAN, "d"), "the NaN count is missing"


def test_a_column_without_a_single_value_holds_nulls_alone_and_nan_alone() -> None:
    # as that of the elements of lists that are all empty
    nothing = File("f", values={"d": 0}, nulls={"d": 0}, nans={"d": 0})
    assert not matches(nothing, Operation.NOT_NULL, "d")
    assert not matches(nothing, Operation.NOT_NAN, "d")
    assert not matches(File("f", values={"d": 0}, nans={"d": 0}), Operation.EQ, "d", 1.0)


def test_no_record_never_matches_and_an_unknown_record_count_always_does() -> None:
    assert not matches(bounds("i", 1, 9, records=0), Operation.EQ, "i", 5)
    assert matches(bounds("i", 1, 2, records=-1), Operation.EQ, "i", 5)


def test_not_equal_prunes_only_one_value_without_null_and_nan() -> None:
    assert not matches(bounds("i", 5, 5), Operation.NOT_EQ, "i", 5)
    assert matches(bounds("i", 5, 6), Operation.NOT_EQ, "i", 5)
    assert matches(bounds("i", 5, 5, nulls={"i": 1}), Operation.NOT_EQ, "i", 5)
    assert matches(bounds("d", 5.0, 5.0), Operation.NOT_EQ, "d", 5.0), "the NaN count is missing"
    assert not matches(bounds("d", 5.0, 5.0, nans={"d": 0}), Operation.NOT_IN, "d", 5.0, 6.0)


def test_nan_is_outside_bounds() -> None:
    # https://github.com/apache/iceberg/issues/9130: Spark would return the NaN rows, Iceberg prunes the file
    assert not matches(bounds("d", 0.0, 1.0, nans={"d": 3}), Operation.GT_EQ, "d", 2.0)


def test_a_nan_lower_bound_is_unknown_but_the_upper_is_used() -> None:
    file = bounds("d", NAN, 5.0, nans={"d": 1})
    assert matches(file, Operation.LT, "d", -100.0)
    assert not matches(file, Operation.EQ, "d", 9.0)
    assert matches(file, Operation.IN, "d", 9.0, 10.0)


def test_negative_zero_sorts_before_zero() -> None:
    file = bounds("d", -0.0, -0.0, nans={"d": 0})
    assert not matches(file, Operation.EQ, "d", 0.0)
    assert matches(file, Operation.LT, "d", 0.0)


def test_uuids_compare_as_signed_halves() -> None:
    negative = UUID("80000000-0000-0000-0000-000000000000")
    file = bounds("u", negative, UUID(int=0))
    assert matches(file, Operation.EQ, "u", UUID("f0000000-0000-0000-0000-000000000000"))
    assert not matches(file, Operation.EQ, "u", UUID("00000000-0000-0000-0000-000000000001"))


def test_strings_compare_by_code_point_not_by_utf16() -> None:
    # U+FFFD sorts after a surrogate pair in UTF-16, before it by code point
    file = bounds("s", "a", "\ufffd")
    assert not matches(file, Operation.EQ, "s", "\U0001f600")


def test_bounds_that_are_no_utf8_are_unknown() -> None:
    file = File("f", lower={"s": b"\xff\xfe"}, upper={"s": b"\xff\xff"}, values={"s": 1}, nulls={"s": 0})
    assert matches(file, Operation.EQ, "s", "a")


def test_bounds_of_promoted_types_are_decoded_by_their_length() -> None:
    as_int = File("f", lower={"l": struct.pack("<i", -5)}, upper={"l": struct.pack("<i", 5)}, values={"l": 1})
    assert not matches(as_int, Operation.GT, "l", 5)
    assert matches(as_int, Operation.GT, "l", 4)
    as_float = File("f", lower={"d": struct.pack("<f", 0.5)}, upper={"d": struct.pack("<f", 1.5)}, values={"d": 1})
    assert not matches(as_float, Operation.LT, "d", 0.5)
    undecodable = File("f", lower={"l": b"\x01"}, upper={"l": b"\x02"}, values={"l": 1})
    assert matches(undecodable, Operation.EQ, "l", 10**12)


def test_the_bounds_of_a_column_are_decoded_once_for_each_type() -> None:
    files = picture(SCHEMA, [spec()], [Manifest([File("f", lower={"l": struct.pack("<q", 7)})])]).data_files
    columns = MetricsColumns(files, frozenset({2}))
    assert columns.field(2, LongType()) is columns.field(2, LongType())
    assert columns.field(2, IntegerType()).lower.valid.tolist() == [False]
    assert columns.field(2, LongType()).lower.valid.tolist() == [True]


def test_a_column_without_any_statistics_might_match_everything() -> None:
    # https://github.com/apache/iceberg/issues/16690: an absent column, with or without a default, is not "all null"
    file = File("f", values={"l": 100})
    for op, values in ((Operation.EQ, (5,)), (Operation.IS_NULL, ()), (Operation.NOT_NULL, ()), (Operation.IN, (1, 2))):
        assert matches(file, op, "i", *values)


def test_starts_with_compares_truncated_bounds() -> None:
    file = bounds("s", "b", "bz")
    assert matches(file, Operation.STARTS_WITH, "s", "bcd")
    assert not matches(file, Operation.STARTS_WITH, "s", "a")
    assert not matches(file, Operation.STARTS_WITH, "s", "c")


def test_literals_out_of_range_bind_to_constants() -> None:
    file = bounds("i", 1, 2)
    assert not matches(file, Operation.GT, "i", 2**31)
    assert matches(file, Operation.LT, "i", 2**31)
    assert matches(file, Operation.NOT_EQ, "i", -(2**31) - 1)
    assert not matches(file, Operation.IN, "i", 2**31, 2**40)


def test_or_and_not_combine() -> None:
    file = bounds("i", 1, 5)
    low, high = predicate(Operation.LT, "i", 1), predicate(Operation.GT, "i", 5)
    assert not matches_expression(file, or_(low, high))
    assert matches_expression(file, not_(or_(low, high)))
    assert not matches_expression(file, and_(not_(low), not_(predicate(Operation.LT_EQ, "i", 5))))


@pytest.mark.parametrize("op", [Operation.EQ, Operation.LT, Operation.IS_NULL])
def test_a_column_that_was_not_recorded_might_match_and_is_named(op: Operation) -> None:
    values = () if op is Operation.IS_NULL else (-1000,)
    metadata = picture(SCHEMA, [spec()], [Manifest([bounds("i", 1, 2)])], recorded=frozenset({2}))
    scan = simulate_scan(metadata, predicate(op, "i", *values))
    assert scan.report.result_data_files == 1
    assert scan.not_recorded == ("i",)
