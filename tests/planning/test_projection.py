"""Projections onto partition values, rule by rule; the comparison with Java covers the combinations."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, NestedField, StringType, TimestampType
from tests.planning.pictures import spec

from planning_health.planning.expressions import BoundPredicate, Expression, Operation, bind, not_, predicate
from planning_health.planning.projection import BoundSpec, inclusive_projection, strict_projection

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "l", LongType()),
    NestedField(3, "s", StringType()),
    NestedField(4, "d", DateType()),
    NestedField(5, "ts", TimestampType()),
    NestedField(6, "dec", DecimalType(9, 2)),
)


def projected_expression(source: int, transform: str, op: Operation, *values: Any, strict: bool = False) -> Expression:
    column = SCHEMA.find_column_name(source)
    assert column is not None
    project = strict_projection if strict else inclusive_projection
    return project(bind(predicate(op, column, *values), SCHEMA), BoundSpec(spec((source, transform)), SCHEMA))


def projected(source: int, transform: str, op: Operation, *values: Any, strict: bool = False) -> str:
    return str(projected_expression(source, transform, op, *values, strict=strict))


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        (Operation.EQ, (34,), "p0 = 3"),  # the specification's example: bucket(16, 34) hashes 2017239379
        (Operation.LT, (34,), "true"),
        (Operation.NOT_EQ, (34,), "true"),
        (Operation.IS_NULL, (), "p0 is null"),
        (Operation.NOT_NULL, (), "p0 is not null"),
    ],
)
def test_bucket_projects_only_equality_in_and_null_tests(op: Operation, values: tuple[Any, ...], expected: str) -> None:
    assert projected(2, "bucket[16]", op, *values) == expected


def test_strict_bucket_projects_only_inequality() -> None:
    assert projected(2, "bucket[16]", Operation.NOT_EQ, 34, strict=True) == "p0 != 3"
    assert projected(2, "bucket[16]", Operation.EQ, 34, strict=True) == "false"


def test_truncated_prefixes() -> None:
    assert projected(3, "truncate[3]", Operation.STARTS_WITH, "ab") == 'p0 starts with "ab"'
    assert projected(3, "truncate[3]", Operation.STARTS_WITH, "abc") == 'p0 = "abc"'
    assert projected(3, "truncate[3]", Operation.STARTS_WITH, "abcd") == 'p0 starts with "abc"'
    assert projected(3, "truncate[3]", Operation.NOT_STARTS_WITH, "ab") == 'p0 not starts with "ab"'
    assert projected(3, "truncate[3]", Operation.NOT_STARTS_WITH, "abcd") == "true"


def test_prefix_length_is_measured_in_utf16_units() -> None:
    # two code points are three UTF-16 units
    assert projected(3, "truncate[3]", Operation.STARTS_WITH, "a\U0001f600") == 'p0 = "a\U0001f600"'


def test_exclusive_bounds_step_to_the_next_value() -> None:
    assert projected(1, "truncate[10]", Operation.LT, 10) == "p0 <= 0"
    assert projected(1, "truncate[10]", Operation.GT, 9) == "p0 >= 10"
    assert projected(1, "truncate[10]", Operation.EQ, -1) == "p0 = -10"
    assert projected(4, "month", Operation.LT, "2024-08-01") == "p0 <= 654"


def test_time_projections_widen_before_1970() -> None:
    assert projected(4, "year", Operation.EQ, "1969-05-01") == "p0 in (-1, 0)"
    assert projected(4, "year", Operation.EQ, "1970-05-01") == "p0 = 0"
    assert projected(5, "day", Operation.LT_EQ, "1969-12-30T00:00:00") == "p0 <= 1969-12-31"
    assert projected(4, "day", Operation.EQ, "1969-12-30") == "p0 = 1969-12-30", "days of dates are exact"
    assert projected(5, "hour", Operation.GT, "1969-12-31T23:00:00", strict=True) == "p0 > 0"


def test_the_unit_of_the_epoch_is_not_widened_but_strictly_narrowed() -> None:
    half_past_midnight = "1970-01-01T00:30:00"
    assert projected(5, "hour", Operation.LT_EQ, half_past_midnight) == "p0 <= 0"
    assert projected(5, "hour", Operation.EQ, half_past_midnight) == "p0 = 0"
    assert projected(5, "hour", Operation.GT, half_past_midnight, strict=True) == "p0 > 1"
    assert projected(5, "hour", Operation.GT, "1970-01-01T01:30:00", strict=True) == "p0 > 1"


def literals(source: int, transform: str, op: Operation, *values: Any, strict: bool = False) -> set[Any]:
    found = projected_expression(source, transform, op, *values, strict=strict)
    assert isinstance(found, BoundPredicate)
    assert found.op is op
    return {lit.value for lit in found.literals}


@pytest.mark.parametrize("op", [Operation.IN, Operation.NOT_IN])
def test_sets_of_times_hold_the_successors_of_those_before_1970(op: Operation) -> None:
    strict = op is Operation.NOT_IN
    assert literals(4, "year", op, "1971-01-01", "1968-01-01", strict=strict) == {1, -2, -1}
    assert literals(4, "year", op, "1971-01-01", "1972-01-01", strict=strict) == {1, 2}
    assert literals(4, "year", op, "1969-01-01", "1970-01-01", strict=strict) == {-1, 0}
    other_way = projected(4, "year", op, "1971-01-01", "1968-01-01", strict=not strict)
    assert other_way == ("true" if strict else "false")


def test_bucket_projects_each_value_of_a_set() -> None:
    assert literals(2, "bucket[16]", Operation.IN, 34, 36) == {3, 14}
    assert literals(2, "bucket[16]", Operation.NOT_IN, 34, 36, strict=True) == {3, 14}
    assert projected(2, "bucket[16]", Operation.NOT_IN, 34, 36) == "true"


@pytest.mark.parametrize(
    ("op", "inclusive", "strict"),
    [
        (Operation.LT, "p0 <= 10", "p0 < 20"),
        (Operation.LT_EQ, "p0 <= 20", "p0 < 20"),
        (Operation.GT, "p0 >= 20", "p0 > 20"),
        (Operation.GT_EQ, "p0 >= 20", "p0 > 10"),
        (Operation.EQ, "p0 = 20", "false"),
        (Operation.NOT_EQ, "true", "p0 != 20"),
    ],
)
def test_comparisons_with_a_value_at_the_edge_of_a_truncated_range(op: Operation, inclusive: str, strict: str) -> None:
    assert projected(1, "truncate[10]", op, 20) == inclusive
    assert projected(1, "truncate[10]", op, 20, strict=True) == strict


@pytest.mark.parametrize(
    ("op", "value", "inclusive", "strict"),
    [
        (Operation.LT, 19, "p0 <= 10", "p0 < 10"),
        (Operation.LT, 21, "p0 <= 20", "p0 < 20"),
        (Operation.LT_EQ, 18, "p0 <= 10", "p0 < 10"),
        (Operation.LT_EQ, 19, "p0 <= 10", "p0 < 20"),  # the whole range is at most 19
        (Operation.GT, 18, "p0 >= 10", "p0 > 10"),
        (Operation.GT, 19, "p0 >= 20", "p0 > 10"),
        (Operation.GT_EQ, 21, "p0 >= 20", "p0 > 20"),
    ],
)
def test_comparisons_with_a_value_beside_the_edge_of_a_truncated_range(
    op: Operation, value: int, inclusive: str, strict: str
) -> None:
    assert projected(1, "truncate[10]", op, value) == inclusive
    assert projected(1, "truncate[10]", op, value, strict=True) == strict


def test_the_next_value_of_a_decimal_is_one_unit_of_its_scale_away() -> None:
    assert projected(6, "truncate[50]", Operation.LT, Decimal("10.50")) == "p0 <= 10.00"
    assert projected(6, "truncate[50]", Operation.GT, Decimal("10.49")) == "p0 >= 10.50"
    assert projected(6, "truncate[50]", Operation.GT_EQ, Decimal("10.50"), strict=True) == "p0 > 10.00"


def test_a_decimal_of_another_scale_is_truncated_in_its_own_scale_as_in_java() -> None:
    # only text literals of Iceberg's API and REST come so; 1.00 < 10, and yet the partition 1.00 is pruned
    assert projected(6, "truncate[10]", Operation.LT, "10") == "p0 <= 0"
    assert projected(6, "truncate[10]", Operation.LT, "10.00") == "p0 <= 9.90"


def test_text_has_no_next_value() -> None:
    assert projected(3, "truncate[3]", Operation.LT, "abcd") == 'p0 <= "abc"'
    assert projected(3, "truncate[3]", Operation.GT, "abcd") == 'p0 >= "abc"'
    assert projected(3, "truncate[3]", Operation.EQ, "abcd") == 'p0 = "abc"'
    assert projected(3, "truncate[3]", Operation.LT_EQ, "abcd", strict=True) == 'p0 < "abc"'


def test_sets_are_truncated_value_by_value() -> None:
    assert literals(1, "truncate[10]", Operation.IN, 5, 25) == {0, 20}
    assert literals(1, "truncate[10]", Operation.NOT_IN, 5, 25, strict=True) == {0, 20}
    assert projected(1, "truncate[10]", Operation.IN, 5, 25, strict=True) == "false"
    assert projected(1, "truncate[10]", Operation.NOT_IN, 5, 25) == "true"


def test_the_least_int_steps_around_to_the_greatest_as_in_java() -> None:
    assert projected(1, "truncate[10]", Operation.LT, -(2**31)) == "p0 <= 2147483640"


def test_strict_prefixes_need_the_whole_range_but_rule_out_by_a_part() -> None:
    assert projected(3, "truncate[3]", Operation.STARTS_WITH, "abcd", strict=True) == "false"
    assert projected(3, "truncate[3]", Operation.STARTS_WITH, "abc", strict=True) == 'p0 = "abc"'
    assert projected(3, "truncate[3]", Operation.NOT_STARTS_WITH, "abcd", strict=True) == 'p0 not starts with "abc"'
    assert projected(3, "truncate[3]", Operation.NOT_STARTS_WITH, "abc", strict=True) == 'p0 != "abc"'


def test_a_predicate_on_another_column_projects_to_the_neutral_constant() -> None:
    bound = bind(predicate(Operation.EQ, "i", 5), SCHEMA)
    days = BoundSpec(spec((4, "day")), SCHEMA)
    assert str(inclusive_projection(bound, days)) == "true"
    assert str(strict_projection(bound, days)) == "false"


def test_not_is_pushed_down_before_projecting() -> None:
    bound = bind(not_(predicate(Operation.LT, "d", "2024-08-01")), SCHEMA)
    assert str(inclusive_projection(bound, BoundSpec(spec((4, "day")), SCHEMA))) == "p0 >= 2024-08-01"


def test_one_source_with_two_fields_projects_onto_both() -> None:
    bound = bind(predicate(Operation.EQ, "d", "2024-08-01"), SCHEMA)
    both = BoundSpec(spec((4, "day"), (4, "month")), SCHEMA)
    assert str(inclusive_projection(bound, both)) == "(p0 = 2024-08-01 and p1 = 655)"
