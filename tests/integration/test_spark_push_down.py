"""Predicates in Spark SQL read what Spark itself reads: same manifests, same files, through its own planning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)
from tests.planning.java_tables import JavaTable
from tests.planning.shapes import fill, spec_of

from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMESPACE = "lake.test_spark_push_down"
NESTED = StructType(NestedField(18, "a", IntegerType()), NestedField(19, "c", StringType()))
SCHEMA = Schema(
    NestedField(1, "b", BooleanType()),
    NestedField(2, "i", IntegerType()),
    NestedField(3, "l", LongType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "d", DoubleType()),
    NestedField(6, "dt", DateType()),
    NestedField(8, "tn", TimestampType()),
    NestedField(9, "ts", TimestamptzType()),
    NestedField(10, "s", StringType()),
    NestedField(13, "bin", BinaryType()),
    NestedField(14, "de", DecimalType(9, 2)),
    NestedField(16, "r", IntegerType(), required=True),
    NestedField(17, "n", NESTED),
)
PREDICATES = """
i = 5; i <> 5; i != 5 AND l < 3; i = 5 OR l = 3; NOT (i = 5 OR l = 3); NOT (i = 5 AND l = 3); i IN (1, 5)
i NOT IN (1, 5)
i NOT IN (5); i IN (1, NULL); i <=> 5; i IS NULL; i IS NOT NULL; i BETWEEN 1 AND 9; i NOT BETWEEN 1 AND 9; -1 < i
s LIKE 'a%'; s NOT LIKE 'a%'; s LIKE '%a'; s LIKE 'ab'; s LIKE 'a_%'; s LIKE '%'; s LIKE 'a%b'; NOT (s LIKE 'a%b')
startswith(s, 'ab'); s = 'ab'; s IN ('a', 'zz'); s >= 'a' AND s < 'b'; s <> 'ab'; upper(s) = 'A'; s = 5; s ILIKE 'a%'
isnan(d); d = double('nan'); d != double('nan'); d < 1; f < 1.5; f = 0.1; f <= 0.1; f > 0.1; f > 1; d = 0.5; d > 1e3
i = 1.5; i < 1.5; i >= 1.5; i < 5000000000; i = 5000000000; l < 1.5; l = 1099511627776; i < 2147483648 OR l = 1; i = '5'
de = 1; de < 0.999; de > -1; de = 1.00; de = '1.0'; de IN (1, 0.99)
dt = '2024-08-01'; dt > TIMESTAMP '2024-08-01 12:00:00'; dt >= TIMESTAMP '2024-08-01 00:00:00'; dt < DATE '1970-01-01'
dt >= date_sub(DATE '2024-08-08', 7); dt = to_date('2022-01-01'); dt > make_date(2024, 1, 1)
year(dt) = 2024; dt > '2024'
dt BETWEEN '2024-01-01' AND '2024-12-31'; dt IN ('2024-08-01', '2022-01-01'); dt <> TIMESTAMP '2024-08-01 12:00:00'
ts >= '2024-08-01'; ts >= DATE '2024-08-01'; ts = '1970-01-01 03:00:00+02:00'; ts < TIMESTAMP '1970-01-01 00:00:00'
CAST(ts AS DATE) = DATE '2024-08-01'; date(ts) >= DATE '2024-08-01'; CAST(ts AS DATE) <> DATE '1970-01-01'
CAST(ts AS DATE) <= DATE '1969-12-31'; to_date(tn) = '2024-08-01'; tn >= TIMESTAMP_NTZ '2024-08-01 00:00:00'
ts >= date_trunc('MONTH', TIMESTAMP '2024-08-15 10:00:00'); dt >= DATE '2024-06-30' + INTERVAL 1 MONTH
n.a = 5; n.a <> 5; n.c LIKE 'a%'; n.a IS NULL; n IS NULL; n.a > 1 AND n.c IS NOT NULL
r = 5; r IS NULL; r IS NOT NULL; r <> 5; b; NOT b; b = true; b IS TRUE; b IS NOT TRUE; b <> true; b OR i = 5
bin = X'0102'; bin > X'01'; bin = 'a'; CAST(i AS BIGINT) = 5; CAST(i AS STRING) = '5'; CAST(dt AS STRING) > '2024'
i + 1 = 6; i = 2 + 3; i = l; i = 5 AND upper(s) = 'A'; i = 5 OR upper(s) = 'A'; (i = 5 AND upper(s) = 'A') OR l = 3
coalesce(i, 0) = 5; i IS DISTINCT FROM 5; i IS DISTINCT FROM NULL; i = 5 OR i > NULL; i = 10 / 2; s = 'a' || 'b'
i > 5 AND (l < 3 OR upper(s) = 'A'); i NOT IN (1, 5) OR l = 3; I = 5; length(s) = 2; i % 2 = 0
"""
METRICS = {
    "result_data_files": "resultDataFiles",
    "skipped_data_files": "skippedDataFiles",
    "scanned_data_manifests": "scannedDataManifests",
    "skipped_data_manifests": "skippedDataManifests",
}


def predicates() -> list[str]:
    return [where for line in PREDICATES.strip().splitlines() for where in line.split("; ")]


def spark_counters(spark: SparkSession, table: str, where: str) -> dict[str, int] | None:
    """What Spark's own scan plans; None where its optimizer already knows that nothing matches."""
    plan = spark.table(table).where(where)._jdf.queryExecution().optimizedPlan()  # type: ignore[operator]
    leaf = plan.collectLeaves().apply(0)
    if leaf.getClass().getSimpleName() != "DataSourceV2ScanRelation":
        return None
    scan: Any = leaf.scan()
    scan.toBatch().planInputPartitions()
    values = {metric.name(): metric.value() for metric in scan.reportDriverMetrics()}
    return {ours: values[theirs] for ours, theirs in METRICS.items()}


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> JavaTable:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
    table = JavaTable(spark, f"{NAMESPACE}.t", SCHEMA, spec_of((6, "month"), (10, "identity"), (2, "identity")))
    fill(table, seed=8, commits=8, files=8)
    return table


def test_predicates_prune_as_spark_prunes(spark: SparkSession, table: JavaTable) -> None:
    planner = ScanPlanner(table.record())
    different = {}
    for where in predicates():
        theirs = spark_counters(spark, table.name.sql, where)
        scan = plan_where(planner, where)
        ours = {name: getattr(scan.report, name) for name in METRICS}
        if theirs is None:
            theirs = ours | {"result_data_files": 0}
        if ours != theirs:
            different[where] = (str(scan.filter), ours, theirs)
    assert not different
