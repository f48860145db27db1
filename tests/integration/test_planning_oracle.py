"""The simulation plans what Iceberg Java plans: files, deletes, counters, residuals, combined tasks.

``PLANNING_ORACLE_PREDICATES`` is the number of random filters per table shape; the full comparison sets 120.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField
from tests.planning.java_tables import JavaTable
from tests.planning.oracle import JavaPlanner, simulated
from tests.planning.random_predicates import PredicateMaker
from tests.planning.shapes import SCHEMA, SHAPES, evolve, fill, spec_of

from planning_health.metadata import SnapshotChoice
from planning_health.planning.expressions import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    Expression,
    Operation,
    bind,
    from_iceberg_json,
    predicate,
    to_iceberg_json,
)
from planning_health.planning.projection import BoundSpec, inclusive_projection, strict_projection
from planning_health.planning.scan import ScanPlanner
from planning_health.planning.splits import MIB, SplitOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMESPACE = "lake.test_planning_oracle"
PREDICATES = int(os.environ.get("PLANNING_ORACLE_PREDICATES", "12"))


TABLES = {
    "position_deletes": "merge_on_read_2_partitioned",
    "deletion_vectors": "merge_on_read_3_partitioned",
    "evolved": "evolved_2",
}


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> None:
    spark._jvm.java.lang.System.setProperty("iceberg.scan.plan-in-worker-pool", "false")  # type: ignore[union-attr]
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")


def _same_plan(planner: ScanPlanner, java: JavaPlanner, expr: Expression, **choice: Any) -> int:
    """Compare one filter; returns the number of result files."""
    theirs = java.plan(expr, **choice)
    ours = simulated(planner.plan(expr, case_sensitive=choice.get("case_sensitive", True)))
    assert ours == theirs, f"filter {expr}"
    return len(theirs.files)


@pytest.mark.parametrize("shape", SHAPES)
def test_random_filters_plan_the_same_files_deletes_and_counters(spark: SparkSession, shape: str) -> None:
    table = SHAPES[shape](spark, NAMESPACE)
    metadata = table.record()
    planner, java = ScanPlanner(metadata), JavaPlanner(spark, table.java)
    maker = PredicateMaker(metadata.info.schema, seed=7)
    sizes = {_same_plan(planner, java, expr) for expr in (ALWAYS_TRUE, ALWAYS_FALSE)}
    sizes |= {_same_plan(planner, java, maker.expression()) for _ in range(PREDICATES)}
    assert len(sizes) > 3, "the random filters do not tell files apart"


@pytest.mark.parametrize("shape", ["position_deletes", "deletion_vectors", "evolved", "months_and_identity"])
def test_residuals_and_combined_tasks_are_icebergs(spark: SparkSession, shape: str) -> None:
    table = JavaTable.load(spark, f"{NAMESPACE}.{TABLES.get(shape, shape)}")
    metadata = table.record()
    planner, java = ScanPlanner(metadata), JavaPlanner(spark, table.java)
    maker = PredicateMaker(metadata.info.schema, seed=3)
    for options in (SplitOptions(), SplitOptions(64 * MIB, 2, 0), SplitOptions(500 * MIB, 1, 40 * MIB)):
        for expr in (ALWAYS_TRUE, maker.expression(), maker.expression()):
            scan = planner.plan(expr)
            tasks, _ = java.tasks(expr)
            paths = scan.paths()
            packed = [
                [(paths[piece.file], piece.offset, piece.length) for piece in task]
                for task in scan.combined_tasks(options)
            ]
            assert packed == java.combined(tasks, paths, options), f"filter {expr}, {options}"
    for _ in range(PREDICATES):
        expr = maker.expression()
        if any(op in str(expr) for op in ("starts with", "nan")):
            continue  # on a null partition value Java's residual evaluator fails there
        scan = planner.plan(expr)
        theirs = java.residuals(java.tasks(expr)[0])
        for path, residual in zip(scan.paths(), scan.residuals(), strict=True):
            expected = bind(from_iceberg_json(theirs[path]), metadata.info.schema)
            assert to_iceberg_json(residual) == to_iceberg_json(expected), f"filter {expr}"


def test_column_names_match_without_case_when_asked(spark: SparkSession) -> None:
    table = JavaTable.load(spark, f"{NAMESPACE}.months_and_identity")
    planner, java = ScanPlanner(table.record()), JavaPlanner(spark, table.java)
    for expr in (predicate(Operation.EQ, "S", "ab"), predicate(Operation.GT, "N.A", 3)):
        _same_plan(planner, java, expr, case_sensitive=False)


def test_time_travel_binds_the_schema_that_iceberg_binds(spark: SparkSession) -> None:
    table = JavaTable(spark, f"{NAMESPACE}.time_travel", SCHEMA, spec_of((10, "identity"), (2, "bucket[4]")))
    fill(table, seed=1, commits=2)
    old = table.java.currentSnapshot().snapshotId()
    table.java.manageSnapshots().createTag("tag", old).createBranch("branch", old).commit()
    types = table._jvm.org.apache.iceberg.types.Types
    evolve(
        table,
        lambda java: (
            java.updateSchema().renameColumn("s", "text").deleteColumn("l").updateColumn("i", types.LongType.get())
        ),
    )
    fill(table, seed=2, commits=2)
    java = JavaPlanner(spark, table.java)
    choices: list[tuple[dict[str, Any], str]] = [
        ({"snapshot_id": old}, "s"),
        ({"ref": "tag"}, "s"),
        ({"ref": "branch"}, "text"),
        ({}, "text"),
    ]
    for choice, text in choices:
        planner = ScanPlanner(table.record(SnapshotChoice(**choice)))
        for expr in (predicate(Operation.EQ, text, "ab"), predicate(Operation.LT, "i", 5), ALWAYS_TRUE):
            _same_plan(planner, java, expr, **choice)
        if text == "s":
            _same_plan(planner, java, predicate(Operation.GT, "l", 5), **choice)


def test_a_dropped_partition_source_still_plans_as_iceberg_does(spark: SparkSession) -> None:
    table = JavaTable(spark, f"{NAMESPACE}.dropped_source", SCHEMA, spec_of((10, "identity"), (2, "identity")))
    fill(table, seed=4, commits=3)
    evolve(table, lambda java: java.updateSpec().removeField("p1"))
    evolve(table, lambda java: java.updateSchema().deleteColumn("i"))
    fill(table, seed=5, commits=2)
    planner, java = ScanPlanner(table.record()), JavaPlanner(spark, table.java)
    for expr in (ALWAYS_TRUE, predicate(Operation.EQ, "s", "ab"), predicate(Operation.IS_NULL, "s")):
        _same_plan(planner, java, expr)


@pytest.mark.parametrize("strict", [False, True], ids=["inclusive", "strict"])
@pytest.mark.parametrize(
    ("transform", "columns"),
    [
        ("identity", ["b", "f", "d", "s", "u"]),
        ("bucket[7]", ["i", "l", "dt", "t", "ts", "tz", "s", "u", "fx", "bin", "dec", "wide"]),
        ("truncate[3]", ["i", "l", "s", "bin", "dec", "wide"]),
        ("year", ["dt", "ts", "tz"]),
        ("month", ["dt", "ts", "tz"]),
        ("day", ["dt", "ts", "tz"]),
        ("hour", ["ts", "tz"]),
        ("void", ["i"]),
    ],
)
def test_projections_of_every_operator_are_icebergs(
    spark: SparkSession, transform: str, columns: list[str], *, strict: bool
) -> None:
    iceberg: Any = spark._jvm.org.apache.iceberg  # type: ignore[union-attr]
    java_schema = iceberg.SchemaParser.fromJson(SCHEMA.model_dump_json())
    projections, parser = iceberg.expressions.Projections, iceberg.expressions.ExpressionParser
    for column in columns:
        spec = spec_of((SCHEMA.find_field(column).field_id, transform))
        java_spec = iceberg.PartitionSpecParser.fromJson(java_schema, spec.model_dump_json())
        projection = projections.strict(java_spec) if strict else projections.inclusive(java_spec)
        ours = BoundSpec(spec, SCHEMA)
        partition = Schema(NestedField(1000, "p0", ours.field_types[0]))
        maker = PredicateMaker(Schema(SCHEMA.find_field(column)), seed=11)
        for _ in range(60):
            expr = maker.predicate()
            theirs = projection.project(parser.fromJson(json.dumps(to_iceberg_json(expr))))
            expected = bind(from_iceberg_json(json.loads(parser.toJson(theirs))), partition)
            project = strict_projection if strict else inclusive_projection
            actual = project(bind(expr, SCHEMA), ours)
            assert _unordered(to_iceberg_json(actual)) == _unordered(to_iceberg_json(expected)), f"{expr}"


def _unordered(node: Any) -> Any:
    """Order does not matter in IN: Java's sets have none."""
    if isinstance(node, dict) and "values" in node:
        return {**node, "values": sorted(map(str, node["values"]))}
    return node
