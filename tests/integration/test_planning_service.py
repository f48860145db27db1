"""Real clients read the demonstration lake through the planning service, and its answers are those of Iceberg Java.

In the ordinary run some tables are read in batches of 7 with both kinds of tokens; ``PLANNING_SERVICE_FULL=1`` reads
every table in batches of 0, 1, 7 and 100.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from tests.plan_tasks.service.serving import Client, serving, tasks
from tests.planning.random_predicates import PredicateMaker
from tests.planning.shapes import SHAPES

from planning_health.catalogs import TableName, load_pyiceberg_catalog
from planning_health.plan_tasks.service import ServiceOptions, TokenKind
from planning_health.planning.expressions import (
    ALWAYS_TRUE,
    Expression,
    bind,
    from_iceberg_json,
    to_iceberg_json,
)
from planning_health.planning.predicates import parse_where
from planning_health.settings import SettingsDocument, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FULL = os.environ.get("PLANNING_SERVICE_FULL") == "1"
BATCH_SIZES = (0, 1, 7, 100) if FULL else (7,)
FEW = ("tickets", "sessions", "page_views", "invoices", "Order-Items v1.5", "returns")
FEW_SHAPES = ("position_deletes", "odd_identities", "years_and_hours", "changed_columns", "nanoseconds")
NAMESPACE = "lake.test_planning_service"

NULL_PARTITIONS = "partition"
"""PyIceberg's model of a data file has no null partition value: it refuses the whole response and names this field."""


@pytest.fixture(scope="module")
def readable(demo_lake: list[TableName]) -> list[TableName]:
    """The lake's tables but the broken one; in the ordinary run, those with deletes, two specs, nulls, odd names."""
    sound = [name for name in demo_lake if name.namespace != ("broken",)]
    return sound if FULL else [name for name in sound if name.name in FEW]


@pytest.fixture(scope="module", params=[(size, kind) for size in BATCH_SIZES for kind in TokenKind], ids=str)
def client(settings: SettingsDocument, demo_lake: list[TableName], request: pytest.FixtureRequest) -> Iterator[Client]:
    size, kind = request.param
    with serving(settings, ServiceOptions(batch_size=size, tokens=kind)) as running:
        yield running


@pytest.fixture(scope="module")
def whole(settings: SettingsDocument, demo_lake: list[TableName]) -> Iterator[Client]:
    """A service that answers with whole plans."""
    with serving(settings, ServiceOptions(batch_size=0)) as running:
        yield running


def queries(name: TableName) -> list[str]:
    """The queries of the demonstration's settings for a table."""
    rule = load_settings().rule_for(name)
    return [query.where for query in rule.queries] if rule else []


def rest_catalog(spark: SparkSession, client: Client) -> str:
    """A Spark catalog for a service, named after its port."""
    name = "served_" + client.url.rpartition(":")[2]
    keys = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": client.url,
        ".scan-planning-mode": "server",
        ".cache-enabled": "false",
    }
    for key, value in keys.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    return name


def served(name: TableName, catalog: str) -> str:
    return TableName(catalog, name.namespace, name.name).sql


def digest(spark: SparkSession, table: str, where: str = "true") -> tuple[Any, ...]:
    """Number of rows and the sum of their hashes: equal for equal rows in any order."""
    hashes = spark.sql(f"SELECT * FROM {table} WHERE {where}").selectExpr("xxhash64(struct(*)) AS hash")
    return tuple(hashes.selectExpr("count(*)", "sum(CAST(hash AS DECIMAL(38, 0)))").collect()[0])


@pytest.fixture(scope="module")
def direct_digests(spark: SparkSession, readable: list[TableName]) -> dict[tuple[TableName, str], tuple[Any, ...]]:
    """What Spark reads directly, by table and query."""
    return {
        (name, where): digest(spark, name.sql, where) for name in readable for where in ["true", *queries(name)[:2]]
    }


def test_spark_reads_the_same_rows_through_the_service(
    spark: SparkSession, client: Client, direct_digests: dict[tuple[TableName, str], tuple[Any, ...]]
) -> None:
    catalog = rest_catalog(spark, client)
    through = {(name, where): digest(spark, served(name, catalog), where) for name, where in direct_digests}
    assert through == direct_digests
    planned = client.lines(len(direct_digests) - 1, "/plan")
    assert len(planned) >= len(direct_digests) - 1  # an empty table is not planned


def test_spark_filters_on_every_type_find_the_same_rows(spark: SparkSession, client: Client) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
    table = f"{NAMESPACE}.typed_{client.url.rpartition(':')[2]}"
    spark.sql(
        f"CREATE TABLE {table} USING iceberg AS SELECT id, CAST(CHAR(17 + id) AS BINARY) AS bin, "
        "CAST(id + 0.5 AS DECIMAL(9, 2)) AS dec, CAST(DATEADD(DAY, id, DATE'2026-01-01') AS TIMESTAMP_NTZ) AS ts, "
        "CAST(DATEADD(DAY, id, DATE'2026-01-01') AS TIMESTAMP) AS tz, DATEADD(DAY, id, DATE'2026-01-01') AS day, "
        "CAST(id / 10 AS FLOAT) AS real, IF(id = 2, NULL, CONCAT('y', id)) AS text "
        "FROM (SELECT CAST(id AS INT) AS id FROM RANGE(3))"
    )
    through = served(TableName.parse(table), rest_catalog(spark, client))
    for where in (
        "bin = X'11'",
        "bin IN (X'11', X'13')",
        "dec = 1.50",
        "ts > TIMESTAMP_NTZ'2026-01-01 12:00:00'",
        "tz >= TIMESTAMP'2026-01-02 00:00:00+00:00'",
        "day = DATE'2026-01-02'",
        "real < 0.15",
        "text IS NULL OR id = 0",
        "id NOT IN (1, 2)",
        "text LIKE 'y%'",
    ):
        found = digest(spark, through, where)
        assert found == digest(spark, table, where), where
        assert 0 < found[0] < 3, where
    assert {line["status"] for line in client.lines(10, "/plan")} == {200}


def _rows(catalog: Catalog, name: TableName) -> pa.Table:
    read = catalog.load_table(name.identifier).scan().to_arrow()
    return read.sort_by([(column, "ascending") for column in read.column_names])


def test_pyiceberg_reads_the_same_rows_through_the_service(
    settings: SettingsDocument, client: Client, readable: list[TableName]
) -> None:
    direct = load_pyiceberg_catalog(settings, "lake")
    through = load_catalog("served", type="rest", uri=client.url, **{"scan-planning-mode": "server"})
    assert through.supports_server_side_planning()
    for name in readable:
        if name.name == "invoices":  # rows with a null partition value
            with pytest.raises(ValueError, match=NULL_PARTITIONS):
                _rows(through, name)
        else:
            assert _rows(through, name).equals(_rows(direct, name)), name


def test_a_table_whose_manifest_is_missing_fails_to_plan_with_the_reason(whole: Client) -> None:
    answer = whole.plan(("broken", "missing_manifest"))
    assert answer.status_code == 200
    assert answer.json()["status"] == "failed"
    assert "is missing" in answer.json()["error"]["message"]


def test_entry_ranges_fall_back_to_offsets_where_deletes_apply_and_say_so(
    settings: SettingsDocument, demo_lake: list[TableName]
) -> None:
    with serving(settings, ServiceOptions(batch_size=7, tokens=TokenKind.ENTRY_RANGES)) as client:
        for table in ("tickets", "sessions"):
            client.scan(("ops", table))
        assert client.metric("planning_health_serve_entry_range_fallbacks_total") == 2
        notes = [line["note"] for line in client.lines(2, "/plan") if "note" in line]
        assert len(notes) == 2
        assert all("offset tokens instead" in note for note in notes)


STATISTICS = ("value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")


def assert_same(ours: dict[str, Any], theirs: dict[str, Any], schema: Schema) -> None:
    """Compares two responses; a failure shows the first task and member that differ."""
    mine, other = comparable(ours, schema), comparable(theirs, schema)
    assert [task["data-file"]["file-path"] for task in mine] == [task["data-file"]["file-path"] for task in other]
    for one, two in zip(mine, other, strict=True):
        assert one["data-file"] == two["data-file"]
        assert one["delete-file-references"] == two["delete-file-references"]
        assert one == two


class JavaResponses:
    """Plans with Iceberg Java and writes the response with Iceberg's own parser of the REST protocol."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._jvm: Any = spark._jvm
        self._table = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)

    @property
    def schema(self) -> Schema:
        return Schema.model_validate_json(self._jvm.org.apache.iceberg.SchemaParser.toJson(self._table.schema()))

    def plan(self, filter_: Expression, stats: list[str] | None = None) -> dict[str, Any]:
        iceberg = self._jvm.org.apache.iceberg
        expression = iceberg.expressions.ExpressionParser.fromJson(json.dumps(to_iceberg_json(filter_)))
        scan = self._table.newScan().filter(expression)
        if stats:
            columns = self._jvm.java.util.ArrayList()
            for column in stats:
                columns.add(column)
            scan = scan.includeColumnStats(columns)
        iterable = scan.planFiles()
        tasks = iceberg.relocated.com.google.common.collect.Lists.newArrayList(iterable)
        iterable.close()
        response = (
            iceberg.rest.responses.PlanTableScanResponse.builder()
            .withPlanStatus(iceberg.rest.PlanStatus.COMPLETED)
            .withFileScanTasks(tasks)
            .withSpecsById(self._table.specs())
            .build()
        )
        written: dict[str, Any] = json.loads(iceberg.rest.responses.PlanTableScanResponseParser.toJson(response))
        return written


def comparable(answer: dict[str, Any], schema: Schema) -> list[dict[str, Any]]:
    """Tasks in an order of their own, with their deletes and their statistics by field id.

    Column sizes are not recorded by this library, and an empty map of statistics says what an absent one says.
    Iceberg's residuals repeat the literals as the client wrote them: bound to the schema, both say the same.
    """
    found = [json.loads(json.dumps(task)) for task in tasks([answer])]  # tasks share their deletes
    for task in found:
        task["residual-filter"] = to_iceberg_json(bind(from_iceberg_json(task["residual-filter"]), schema))
        for file in (task["data-file"], *task["delete-file-references"]):
            file.pop("column-sizes", None)
            for statistic in STATISTICS:
                written = file.pop(statistic, {"keys": [], "values": []})
                file[statistic] = dict(zip(written["keys"], written["values"], strict=True))
        task["delete-file-references"].sort(key=lambda file: (file["file-path"], file.get("content-offset", 0)))
    return sorted(found, key=lambda task: task["data-file"]["file-path"])


def test_responses_for_the_demonstration_lake_are_those_of_iceberg_java(
    spark: SparkSession, whole: Client, readable: list[TableName]
) -> None:
    for name in readable:
        java = JavaResponses(spark, name.sql)
        schema = java.schema
        for where in [None, *queries(name)]:
            filter_ = parse_where(where, schema).expression if where else ALWAYS_TRUE
            ours = whole.plan(name.identifier, filter=to_iceberg_json(filter_)).json()
            assert_same(ours, java.plan(filter_), schema)


WRITABLE_SHAPES = tuple(shape for shape in SHAPES if shape != "evolved_first_version")
"""All but one: Iceberg's own writer refuses files of a v1 spec whose fields are all void ("Invalid partition data")."""


@pytest.mark.parametrize("shape", WRITABLE_SHAPES if FULL else FEW_SHAPES)
def test_responses_for_every_shape_of_table_are_those_of_iceberg_java(
    spark: SparkSession, whole: Client, shape: str
) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
    table = SHAPES[shape](spark, NAMESPACE)
    identifier, java = table.name.identifier, JavaResponses(spark, table.name.sql)
    maker = PredicateMaker(table.schema, seed=11)
    stats = [table.schema.fields[number].name for number in (1, 5, 13)]
    assert_same(whole.plan(identifier, stats_fields=stats).json(), java.plan(ALWAYS_TRUE, stats), table.schema)
    for _ in range(20 if FULL else 4):
        filter_ = maker.expression()
        if any(op in str(filter_) for op in ("starts with", "nan")):
            continue  # on a null partition value Java's residual evaluator fails there
        ours = whole.plan(identifier, filter=to_iceberg_json(filter_)).json()
        assert_same(ours, java.plan(filter_), table.schema)
