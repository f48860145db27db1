"""Filters are read back from Iceberg's own description of a scan."""

from __future__ import annotations

from decimal import Decimal

import pytest

from planning_health.advice.filter_text import parse_filters
from planning_health.errors import InputError
from planning_health.planning.expressions import ALWAYS_TRUE, Operation, and_, not_, or_, predicate
from planning_health.planning.literals import Kind, Literal


def test_a_scan_without_filters_reads_everything() -> None:
    assert parse_filters("").expression == ALWAYS_TRUE


def test_all_filters_of_a_scan_hold() -> None:
    found = parse_filters("s IS NOT NULL, id >= 5, NOT (s LIKE 'ab%'), (d = 20456 OR is_nan(v))")
    assert found.expression == and_(
        predicate(Operation.NOT_NULL, "s"),
        predicate(Operation.GT_EQ, "id", 5),
        not_(predicate(Operation.STARTS_WITH, "s", "ab")),
        or_(predicate(Operation.EQ, "d", 20456), predicate(Operation.IS_NAN, "v")),
    )
    assert found.columns == {"s", "id", "d", "v"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 'it's \"q\", AND v = 3'", 'it\'s "q", AND v = 3'),
        ("x = 'a]b) ('", "a]b) ("),
        ("x = ''", ""),
        ("x = -3", -3),
        ("x = 12.50", Decimal("12.50")),
        ("x = 1.5E-7", Decimal("1.5E-7")),
        ("x = true", True),
        ("x = X'00FF'", b"\x00\xff"),
        ("x = f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ],
)
def test_values_are_read_as_they_are_shown(text: str, value: object) -> None:
    assert parse_filters(text).expression == predicate(Operation.EQ, "x", value)


def test_sets_and_names_with_spaces_and_dots_are_read() -> None:
    found = parse_filters("(Item ID IS NOT NULL AND Item ID NOT IN (3, 4)), st.y.z IN ('a', 'b, c')")
    assert found.expression == and_(
        and_(predicate(Operation.NOT_NULL, "Item ID"), predicate(Operation.NOT_IN, "Item ID", 3, 4)),
        predicate(Operation.IN, "st.y.z", "a", "b, c"),
    )


def test_infinity_is_a_number() -> None:
    assert parse_filters("x < -Infinity").expression == predicate(
        Operation.LT, "x", Literal(Kind.DOUBLE, float("-inf"))
    )


def test_a_filter_on_a_transform_tells_its_column_only() -> None:
    found = parse_filters("bucket[16](id) = 3, s = 'a'")
    assert found.transformed
    assert found.columns == {"id", "s"}


@pytest.mark.parametrize("text", ["id", "id = ", "(id = 3", "id = 3)", "s = 'a", "id IN (1, 2", "(" * 400 + "id = 3"])
def test_what_cannot_be_read_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match="filter") as refused:
        parse_filters(text)
    assert "\n" not in str(refused.value)
