"""Field problems of planning and decoding that need no table; each test cites the public report.

Those that need real tables are in ``tests/integration/test_planning_cases.py``; ``docs/field-problems.md`` lists all.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, FixedType, IcebergType, IntegerType, LongType, NestedField, StringType
from tests.planning.pictures import File, Manifest, picture, spec

from planning_health.health.analysis import analyse
from planning_health.health.thresholds import resolve_thresholds
from planning_health.planning.expressions import Expression, Operation, or_, predicate
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner, simulate_scan

SCHEMA = Schema(
    NestedField(1, "l", LongType()),
    NestedField(2, "s", StringType()),
    NestedField(3, "b", BinaryType()),
    NestedField(4, "f", FixedType(2)),
    NestedField(5, "i", IntegerType()),
)


def summary(lower: bytes | None, upper: bytes | None) -> list[dict[str, Any]]:
    return [{"contains_null": False, "contains_nan": False, "lower_bound": lower, "upper_bound": upper}]


def identity(column: str) -> Any:
    return spec((SCHEMA.find_field(column).field_id, "identity"))


def opened(metadata: Any, filter_: Expression) -> int:
    return simulate_scan(metadata, filter_).report.scanned_data_manifests


@pytest.mark.parametrize(
    ("column", "value", "lower", "upper", "signal"),
    [
        # https://github.com/duckdb/duckdb-iceberg/issues/1047: an upper bound that was cut and not rounded up
        ("s", "abcd", b"abc", b"abc", "entries_outside_summary"),
        # https://github.com/ClickHouse/ClickHouse/issues/118905: no bounds, and no null either
        ("i", 5, None, None, "entries_outside_summary"),
        # https://github.com/ClickHouse/ClickHouse/issues/119171: inverted
        ("i", 5, struct.pack("<i", 9), struct.pack("<i", 1), "inverted_summaries"),
    ],
    ids=["not rounded up", "null bounds", "inverted"],
)
def test_a_summary_that_contradicts_its_entries_is_critical_and_loses_rows_as_in_icebergs_readers(
    column: str, value: Any, lower: bytes | None, upper: bytes | None, signal: str
) -> None:
    manifest = Manifest([File("f", (value,))], summaries=summary(lower, upper))
    metadata = picture(SCHEMA, [identity(column)], [manifest])
    assert opened(metadata, predicate(Operation.EQ, column, value)) == 0
    health = analyse(metadata, resolve_thresholds(None))
    assert health["state"] == "critical"
    assert signal in {finding["signal"] for finding in health["findings"]}


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [("l", struct.pack("<i", -5), struct.pack("<i", 5)), ("l", struct.pack("<q", -5), struct.pack("<q", 5))],
    ids=["before widening", "after it"],
)
def test_summaries_of_a_widened_column_are_decoded_by_their_length(column: str, low: bytes, high: bytes) -> None:
    # https://github.com/apache/iceberg-python/issues/3744
    metadata = picture(SCHEMA, [identity(column)], [Manifest([File("f", (low,))], summaries=summary(low, high))])
    assert opened(metadata, predicate(Operation.EQ, column, -5)) == 1
    assert opened(metadata, predicate(Operation.GT, column, 5)) == 0
    assert opened(metadata, predicate(Operation.EQ, column, 10**12)) == 0


def test_a_summary_that_does_not_decode_might_match() -> None:
    # https://github.com/duckdb/duckdb-iceberg/issues/1334 (text that is no UTF-8) and a number of three bytes
    for column, bound, value in (("s", b"\xff\xfe", "a"), ("l", b"\x01\x02\x03", 7)):
        manifest = Manifest([File("f", (bound,))], summaries=summary(bound, bound))
        metadata = picture(SCHEMA, [identity(column)], [manifest])
        for op in (Operation.EQ, Operation.LT, Operation.GT, Operation.NOT_EQ):
            scan = simulate_scan(metadata, predicate(op, column, value))
            assert scan.report.scanned_data_manifests == scan.report.result_data_files == 1, (column, op)
            assert [str(residual) for residual in scan.residuals()] == [str(scan.filter)]


@pytest.mark.parametrize("column", ["b", "f"])
def test_binary_literals_prune_in_every_operator(column: str) -> None:
    # https://github.com/apache/iceberg/issues/14879
    kind: IcebergType = SCHEMA.find_type(column)
    low, high = (b"\x11\x01", b"\x7f\xff") if isinstance(kind, FixedType) else (b"\x11", b"\x7f\xff\x01")
    file = File("f", lower={column: low}, upper={column: high}, values={column: 9}, nulls={column: 0})
    planner = ScanPlanner(picture(SCHEMA, [spec()], [Manifest([file])]))
    inside, below, above = ("X'1101'", "X'1100'", "X'8000'") if column == "f" else ("X'11'", "X'10'", "X'80'")
    found = {
        f"{column} = {inside}": 1,
        f"{column} = {below}": 0,
        f"{column} IN ({below}, {above})": 0,
        f"{column} IN ({inside}, {above})": 1,
        f"{column} > {above}": 0,
        f"{column} < {inside}": 0,
        f"{column} <> {inside}": 1,
    }
    planned = {where: plan_where(planner, where).report.result_data_files for where in found}
    assert planned == found


def test_an_or_with_a_column_that_no_partition_holds_opens_every_manifest() -> None:
    # what a manifest cannot decide keeps it, even where the other side of the OR is false
    manifests = [Manifest([File(f"f{value}", (value,))]) for value in (1, 9)]
    metadata = picture(SCHEMA, [identity("i")], manifests)
    one = predicate(Operation.EQ, "i", 1)
    assert opened(metadata, one) == 1
    assert opened(metadata, or_(one, predicate(Operation.GT, "l", 10**6))) == 2


def test_a_summary_of_a_dropped_source_is_not_taken_for_the_next_fields() -> None:
    # https://github.com/apache/iceberg-go/issues/1190: summaries are positional in the manifest's own spec
    dropped = spec((99, "identity"), (5, "identity"))
    two = [
        *summary(struct.pack("<i", 500), struct.pack("<i", 500)),
        *summary(struct.pack("<i", 1), struct.pack("<i", 3)),
    ]
    manifest = Manifest([File("f", (struct.pack("<i", 500), 2))], summaries=two)
    metadata = picture(SCHEMA, [dropped], [manifest])
    assert opened(metadata, predicate(Operation.EQ, "i", 2)) == 1
    assert opened(metadata, predicate(Operation.EQ, "i", 500)) == 0
