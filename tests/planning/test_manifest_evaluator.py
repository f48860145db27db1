"""Manifest pruning by summaries, rule by rule; the expected answers are those of Iceberg's ``ManifestEvaluator``."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, IntegerType, NestedField, StringType
from tests.planning.pictures import COMPARED_WITH_3_TO_7, File, Manifest, picture, raw, spec

from planning_health.planning.expressions import Operation, predicate
from planning_health.planning.scan import simulate_scan

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()), NestedField(2, "s", StringType()), NestedField(3, "x", DoubleType())
)


def opened(column: str, summaries: Any, op: Operation, *values: Any) -> bool:
    """Whether a filter opens the one manifest of a table that is partitioned by the column itself."""
    source = SCHEMA.find_field(column).field_id
    manifest = Manifest([File("f", (None,))], summaries=summaries)
    scan = simulate_scan(picture(SCHEMA, [spec((source, "identity"))], [manifest]), predicate(op, column, *values))
    return scan.report.scanned_data_manifests == 1


def summary(
    column: str, lower: Any = None, upper: Any = None, *, null: bool = False, nan: bool | None = None
) -> list[dict[str, Any]]:
    kind = SCHEMA.find_type(column)
    return [
        {
            "contains_null": null,
            "contains_nan": nan,
            "lower_bound": raw(kind, lower),
            "upper_bound": raw(kind, upper),
        }
    ]


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        *COMPARED_WITH_3_TO_7,
        (Operation.IS_NULL, (), False),
        (Operation.NOT_NULL, (), True),
    ],
)
def test_comparisons_include_the_bounds(op: Operation, values: tuple[int, ...], expected: bool) -> None:
    assert opened("i", summary("i", 3, 7), op, *values) is expected


@pytest.mark.parametrize("op", [Operation.LT, Operation.LT_EQ, Operation.GT, Operation.GT_EQ, Operation.EQ])
def test_without_bounds_all_values_are_null_and_no_comparison_matches(op: Operation) -> None:
    nulls = summary("i", null=True)
    assert not opened("i", nulls, op, 5)
    assert not opened("i", nulls, Operation.IN, 5, 6)
    assert not opened("i", nulls, Operation.IN, *range(201)), "so many literals are not compared with bounds"
    assert not opened("s", summary("s", null=True), Operation.STARTS_WITH, "a")
    assert opened("i", nulls, Operation.IS_NULL)
    assert opened("i", nulls, Operation.NOT_EQ, 5)


def test_nulls_beside_values_leave_the_values() -> None:
    both = summary("i", 3, 7, null=True)
    for op, values in ((Operation.IS_NULL, ()), (Operation.NOT_NULL, ()), (Operation.EQ, (5,)), (Operation.LT, (4,))):
        assert opened("i", both, op, *values)
    assert not opened("i", both, Operation.EQ, 8)


def test_an_in_of_more_than_200_literals_opens_whatever_the_bounds() -> None:
    assert not opened("i", summary("i", 3, 7), Operation.IN, *range(1000, 1200))
    assert opened("i", summary("i", 3, 7), Operation.IN, *range(1000, 1201))


def test_a_single_value_without_nulls_answers_not_equal_and_not_in() -> None:
    one = summary("i", 5, 5)
    assert not opened("i", one, Operation.NOT_EQ, 5)
    assert not opened("i", one, Operation.NOT_IN, 4, 5)
    assert opened("i", one, Operation.NOT_EQ, 4)
    assert opened("i", one, Operation.NOT_IN, 4, 6)
    for op, values in ((Operation.NOT_EQ, (5,)), (Operation.NOT_IN, (4, 5))):
        assert opened("i", summary("i", 5, 5, null=True), op, *values)
        assert opened("i", summary("i", 5, 6), op, *values)


@pytest.mark.parametrize(("nan", "expected"), [(False, False), (True, True), (None, True)])
def test_a_floating_single_value_needs_to_know_that_there_is_no_nan(nan: bool | None, expected: bool) -> None:
    one = summary("x", 5.0, 5.0, nan=nan)
    assert opened("x", one, Operation.NOT_EQ, 5.0) is expected
    assert opened("x", one, Operation.NOT_IN, 4.0, 5.0) is expected


@pytest.mark.parametrize(("nan", "expected"), [(False, False), (True, True), (None, True)])
def test_floating_values_are_all_null_only_where_there_is_known_to_be_no_nan(nan: bool | None, expected: bool) -> None:
    nulls = summary("x", null=True, nan=nan)
    assert opened("x", nulls, Operation.NOT_NULL) is expected
    assert opened("x", nulls, Operation.IS_NAN) is expected
    assert not opened("i", summary("i", null=True, nan=nan), Operation.NOT_NULL), "whole numbers have no NaN"


@pytest.mark.parametrize(("nan", "expected"), [(False, False), (True, True), (None, True)])
def test_is_nan_opens_unless_there_is_known_to_be_none(nan: bool | None, expected: bool) -> None:
    assert opened("x", summary("x", 1.0, 2.0, nan=nan), Operation.IS_NAN) is expected


@pytest.mark.parametrize(
    ("lower", "null", "nan", "expected"),
    [
        (None, False, True, False),  # all are NaN
        (None, True, True, True),
        (1.0, False, True, True),
        (None, False, None, True),
        (None, False, False, True),
    ],
)
def test_not_nan_skips_only_a_manifest_of_nothing_but_nan(
    lower: float | None, null: bool, nan: bool | None, expected: bool
) -> None:
    assert opened("x", summary("x", lower, lower, null=null, nan=nan), Operation.NOT_NAN) is expected


@pytest.mark.parametrize(
    ("lower", "upper", "prefix", "starts", "others"),
    [
        ("abc1", "abd", "abc", True, True),
        ("abc1", "abc9", "abc", True, False),  # all start with it
        ("abd", "abe", "abc", False, True),
        ("aa", "ab", "abc", False, True),
        ("ab", "abz", "abc", True, True),
        ("a", "abc", "abc", True, True),
    ],
)
def test_prefixes_are_compared_with_the_bounds_of_their_length(
    lower: str, upper: str, prefix: str, starts: bool, others: bool
) -> None:
    assert opened("s", summary("s", lower, upper), Operation.STARTS_WITH, prefix) is starts
    assert opened("s", summary("s", lower, upper), Operation.NOT_STARTS_WITH, prefix) is others
    assert opened("s", summary("s", lower, upper, null=True), Operation.NOT_STARTS_WITH, prefix)


def test_one_bound_that_does_not_decode_leaves_everything_possible() -> None:
    for lower, upper in ((b"\x01\x02\x03", 7), (3, b"\x01\x02\x03")):
        for op, values in (
            (Operation.EQ, (100,)),
            (Operation.LT, (0,)),
            (Operation.GT, (100,)),
            (Operation.NOT_EQ, (3,)),
        ):
            assert opened("i", summary("i", lower, upper), op, *values)


def test_summaries_of_another_number_of_fields_say_nothing() -> None:
    two = summary("i", 3, 7) * 2
    assert opened("i", two, Operation.EQ, 100)
    assert opened("i", [], Operation.EQ, 100)
