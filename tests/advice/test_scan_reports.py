"""Iceberg's own ScanReports are read: filters with their values where they are there, else their columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.maintenance.pictures import SCHEMA

from planning_health.advice.observed import observe
from planning_health.advice.scan_reports import read_scan_reports
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.metadata.record_spark import load_java_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = TableName("lake", ("test_scan_reports",), "t")


def report_line(filter_: Any, **more: Any) -> str:
    return json.dumps({"table-name": "lake.sales.orders", "snapshot-id": 1, "filter": filter_, "metrics": {}, **more})


@pytest.mark.spark
def test_reports_of_iceberg_tell_the_columns_and_hide_the_values(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.test_scan_reports")
    spark.sql(f"CREATE TABLE {NAME.sql} (id BIGINT, d DATE, s STRING, v DOUBLE, x STRING) USING iceberg")
    spark.sql(f"INSERT INTO {NAME.sql} SELECT id, DATE'2026-01-01', 'a', 1.5, 'b' FROM range(10)")
    iceberg: Any = spark._jvm.org.apache.iceberg
    java_table = load_java_table(spark, NAME)
    expressions = iceberg.expressions.Expressions
    filters = [
        expressions.equal("id", 5),
        expressions.startsWith("s", "ab"),
        expressions.notNull("v"),
        getattr(expressions, "and")(expressions.isNull("x"), expressions.greaterThan("d", "2026-01-01")),
        expressions.alwaysTrue(),
    ]
    lines = []
    for filter_ in filters:
        reporter = iceberg.metrics.InMemoryMetricsReporter()
        java_table.newScan().filter(filter_).metricsReporter(reporter).planFiles().close()
        lines.append(iceberg.metrics.ScanReportParser.toJson(reporter.scanReport()))
    (tmp_path / "reports.jsonl").write_text("\n".join(lines))
    found = list(read_scan_reports([str(tmp_path)]))
    assert {item.table for item in found} == {NAME.dotted}
    assert [sorted(item.hidden) for item in found] == [["id"], ["s"], [], ["d", "x"], []]
    assert [str(item.filter) for item in found] == ["None", "None", "v is not null", "None", "true"]


def test_values_that_are_there_are_planned_with(tmp_path: Path) -> None:
    lines = [
        report_line({"type": "eq", "term": "ID", "value": 34}),
        json.dumps(
            {"report-type": "scan-report", **json.loads(report_line({"type": "eq", "term": "id", "value": 34}))}
        ),
        json.dumps({"report-type": "commit-report", "table-name": "lake.sales.orders", "metrics": {}}),
        "not JSON",
        report_line({"type": "is-null", "term": "site"}, **{"table-name": "lake.sales.other"}),
    ]
    (tmp_path / "reports.jsonl").write_text("\n".join(lines))
    found = observe(TableName("lake", ("sales",), "orders"), SCHEMA, read_scan_reports([str(tmp_path)]))
    assert [(str(item.expression), item.weight, item.sources) for item in found.filters] == [
        ("id = 34", 2, ("scan report",))
    ]
    assert found.other_tables == {"lake.sales.other": 1}


def test_a_filter_that_cannot_be_planned_keeps_the_columns_that_it_names(tmp_path: Path) -> None:
    term = {"type": "transform", "transform": "bucket[16]", "term": "Site"}
    lines = [
        report_line({"type": "eq", "term": term, "value": 3}),
        report_line({"type": "eq", "term": "gone", "value": 3}),
    ]
    (tmp_path / "reports.jsonl").write_text("\n".join(lines))
    found = observe(TableName("lake", ("sales",), "orders"), SCHEMA, read_scan_reports([str(tmp_path)]))
    assert found.hidden == {"Site": 1}
    assert len(found.unread) == 2
    assert any("unknown column 'gone'" in reason for reason in found.unread)


def test_a_file_without_scan_reports_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('{"level": "info"}\n')
    with pytest.raises(InputError, match="holds no ScanReport: expected JSON documents, one a line"):
        list(read_scan_reports([str(tmp_path / "log")]))
