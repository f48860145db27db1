"""Residuals: what a file's partition value leaves of the filter, by the rules of Iceberg's ``ResidualEvaluator``."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, NestedField, StringType, TimestampType
from tests.planning.pictures import File, Manifest, picture, spec

from planning_health.planning.expressions import Expression, Operation, and_, not_, or_, predicate
from planning_health.planning.scan import ScanPlanner

SCHEMA = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "d", DateType()),
    NestedField(4, "ts", TimestampType()),
)
I5 = predicate(Operation.EQ, "i", 5)
KEPT = None
"""The predicate stays as it is."""


def residual(expr: Expression, own: PartitionSpec, *partition: Any) -> str:
    planner = ScanPlanner(picture(SCHEMA, [own], [Manifest([File("f", partition)])]))
    return str(planner.residuals(planner.plan(expr)._bound, planner.plan().data_rows)[0])


@pytest.mark.parametrize(
    ("fields", "op", "column", "values", "partition", "expected"),
    [
        # an identity field decides everything
        (((1, "identity"),), Operation.EQ, "i", (5,), (5,), "true"),
        (((1, "identity"),), Operation.EQ, "i", (5,), (6,), "false"),
        (((1, "identity"),), Operation.NOT_EQ, "i", (5,), (6,), "true"),
        (((1, "identity"),), Operation.GT, "i", (5,), (5,), "false"),
        (((1, "identity"),), Operation.IN, "i", (4, 5), (5,), "true"),
        (((1, "identity"),), Operation.NOT_IN, "i", (4, 5), (5,), "false"),
        (((1, "identity"),), Operation.IS_NULL, "i", (), (None,), "true"),
        (((1, "identity"),), Operation.NOT_NULL, "i", (), (None,), "false"),
        (((2, "identity"),), Operation.STARTS_WITH, "s", ("ab",), ("abc",), "true"),
        (((2, "identity"),), Operation.NOT_STARTS_WITH, "s", ("ab",), ("abc",), "false"),
        # a bucket excludes, and assures inequality (34 is in bucket 3 of 16)
        (((1, "bucket[16]"),), Operation.EQ, "i", (34,), (3,), KEPT),
        (((1, "bucket[16]"),), Operation.EQ, "i", (34,), (4,), "false"),
        (((1, "bucket[16]"),), Operation.NOT_EQ, "i", (34,), (4,), "true"),
        (((1, "bucket[16]"),), Operation.NOT_EQ, "i", (34,), (3,), KEPT),
        (((1, "bucket[16]"),), Operation.GT, "i", (34,), (4,), KEPT),
        # a range is decided except at its edge
        (((1, "truncate[10]"),), Operation.LT, "i", (25,), (10,), "true"),
        (((1, "truncate[10]"),), Operation.LT, "i", (25,), (20,), KEPT),
        (((1, "truncate[10]"),), Operation.LT, "i", (25,), (30,), "false"),
        (((1, "truncate[10]"),), Operation.LT, "i", (20,), (10,), "true"),
        (((1, "truncate[10]"),), Operation.GT_EQ, "i", (20,), (20,), "true"),
        (((3, "month"),), Operation.LT, "d", ("2024-08-01",), (654,), "true"),  # July
        (((3, "month"),), Operation.LT_EQ, "d", ("2024-08-01",), (655,), KEPT),
        (((2, "truncate[3]"),), Operation.STARTS_WITH, "s", ("abc",), ("abc",), "true"),
        (((2, "truncate[3]"),), Operation.STARTS_WITH, "s", ("abcd",), ("abc",), KEPT),
        (((2, "truncate[3]"),), Operation.STARTS_WITH, "s", ("abcd",), ("abd",), "false"),
        (((2, "truncate[3]"),), Operation.NOT_STARTS_WITH, "s", ("abcd",), ("abd",), "true"),
        # what no field comes from stays
        (((3, "day"),), Operation.EQ, "i", (5,), (1,), KEPT),
        (((1, "void"),), Operation.EQ, "i", (5,), (None,), KEPT),
        # the first field that decides wins, though another one contradicts it
        (((1, "identity"), (1, "bucket[16]")), Operation.EQ, "i", (34,), (34, 4), "true"),
        (((1, "bucket[16]"), (1, "identity")), Operation.EQ, "i", (34,), (4, 34), "false"),
        (((1, "bucket[16]"), (1, "identity")), Operation.EQ, "i", (34,), (3, 34), "true"),
    ],
)
def test_a_predicate_is_decided_by_the_partition_or_stays(
    fields: tuple[tuple[int, str], ...],
    op: Operation,
    column: str,
    values: tuple[Any, ...],
    partition: tuple[Any, ...],
    expected: str | None,
) -> None:
    expr = predicate(op, column, *values)
    found = residual(expr, spec(*fields), *partition)
    assert found == (str(expr) if expected is KEPT else expected) or (
        expected is KEPT and found not in ("true", "false")
    )


def test_residuals_of_parts_are_joined_again() -> None:
    own = spec((1, "identity"))
    other = predicate(Operation.EQ, "s", "a")
    assert residual(and_(I5, other), own, 5) == residual(or_(I5, other), own, 6) == str(other)
    assert residual(and_(I5, other), own, 6) == "false"
    assert residual(or_(I5, other), own, 5) == "true"
    assert residual(not_(or_(I5, other)), own, 6) == str(not_(other))


def test_each_file_has_the_residual_of_its_own_partition_and_spec() -> None:
    specs = [spec((1, "identity")), spec(spec_id=1), spec((2, "identity"), spec_id=2)]
    files = [File("i=5", (5,)), File("i=6", (6,)), File("also 5", (5,))]
    manifests = [
        Manifest(files),
        Manifest([File("any")], spec_id=1),
        Manifest([File("s=b", ("b",)), File("s=a", ("a",))], spec_id=2),
    ]
    planner = ScanPlanner(picture(SCHEMA, specs, manifests))
    scan = planner.plan(or_(I5, predicate(Operation.EQ, "s", "a")))
    assert dict(zip(scan.paths(), map(str, scan.residuals()), strict=True)) == {
        "i=5": "true",
        "i=6": 's = "a"',
        "also 5": "true",
        "any": '(i = 5 or s = "a")',
        "s=b": "i = 5",
        "s=a": "true",
    }
