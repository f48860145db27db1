"""What real Spark event logs tell: each scan's filter as Iceberg got it, aggregates, and row-level conditions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.advice.event_logs import event_log

from planning_health.advice.event_log import read_event_logs
from planning_health.advice.observed import Observation, ObservedWorkload, observe
from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.planning.expressions import ALWAYS_TRUE, And, Expression, bind, rewrite_not, to_iceberg_json, visit
from planning_health.planning.predicates import parse_where
from planning_health.settings import SettingsDocument

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyspark.sql import SparkSession

NAME = TableName("lake", ("test_event_log",), "t")
OTHER = TableName("lake", ("test_event_log",), "u")

WHERES = (
    "s LIKE 'abc, [x%' AND id > 5",
    "d = DATE'2026-01-03' AND NOT (s LIKE 'ab%')",
    "ts >= TIMESTAMP'2026-01-01 00:00:00.5Z' OR isnan(v)",
    "amount <= 12.50 AND v < 0.1 AND real IN (0.5, 1.5)",
    "s = 'it''s \"q\", AND v = 3' AND raw = X'00FF'",
    "st.`y.z` IS NULL AND st.x IN (1, 2)",
    "id NOT IN (3, 4) AND flag AND `Item ID` <> 7",
    f"id IN ({', '.join(map(str, range(300)))})",
)


@pytest.fixture(scope="module")
def schema(spark: SparkSession, settings: SettingsDocument) -> Schema:
    """Makes the two tables; the schema of the first."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.test_event_log")
    spark.sql(
        f"CREATE TABLE {NAME.sql} (id BIGINT, d DATE, s STRING, v DOUBLE, real FLOAT, amount DECIMAL(12,2), "
        "ts TIMESTAMP, flag BOOLEAN, raw BINARY, `Item ID` INT, st STRUCT<x: INT, `y.z`: STRING>) USING iceberg "
        "PARTITIONED BY (days(d)) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    )
    spark.sql(
        f"INSERT INTO {NAME.sql} SELECT id, date_add(DATE'2026-01-01', CAST(id % 5 AS INT)), concat('abc', id), "
        "id / 2, id / 4, id / 8, timestamp_seconds(id), id % 2 = 0, X'01', id, named_struct('x', 1, 'y.z', 'q') "
        "FROM range(100)"
    )
    spark.sql(f"CREATE TABLE {OTHER.sql} (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {OTHER.sql} SELECT id FROM range(5)")
    return load_pyiceberg_catalog(settings, "lake").load_table(NAME.identifier).schema()


def logged(spark: SparkSession, folder: Path, statements: Sequence[str], **conf: str) -> list[Observation]:
    with event_log(spark, folder, **conf):
        for statement in statements:
            spark.sql(statement).collect()
    return list(read_event_logs([str(folder)]))


def workload(schema: Schema, observations: Sequence[Observation]) -> ObservedWorkload:
    return observe(NAME, schema, observations)


@pytest.mark.spark
def test_every_scans_filter_is_what_spark_pushed_down(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    statements = [f"SELECT * FROM {NAME.sql} WHERE {where}" for where in WHERES]
    found = workload(schema, logged(spark, tmp_path, [*statements, *statements[:2]]))
    conjuncts = _Conjuncts(schema)
    expected = Counter({conjuncts(parse_where(where, schema).expression): 1 for where in WHERES})
    expected.update(conjuncts(parse_where(where, schema).expression) for where in WHERES[:2])
    assert {conjuncts(item.expression): item.weight for item in found.filters} == dict(expected)
    assert not found.unread


@pytest.mark.spark
@pytest.mark.parametrize(
    "conf",
    [
        {"compress": "false", "rolling__enabled": "false"},
        *({"compress": "true", "compression__codec": codec} for codec in ("zstd", "lz4", "snappy")),
        {"compress": "true", "rolling__enabled": "false"},
    ],
)
def test_logs_are_read_in_each_form_that_spark_writes(
    spark: SparkSession, schema: Schema, tmp_path: Path, conf: dict[str, str]
) -> None:
    found = workload(schema, logged(spark, tmp_path, [f"SELECT count(v) FROM {NAME.sql} WHERE id = 5"], **conf))
    assert [(str(item.expression), item.weight) for item in found.filters] == [("(id is not null and id = 5)", 1)]


@pytest.mark.spark
def test_aggregates_of_the_whole_table_count_as_uses(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    found = workload(
        schema,
        logged(
            spark,
            tmp_path,
            [
                f"SELECT max(id), min(v), count(s) FROM {NAME.sql}",
                f"SELECT max(id) FROM {NAME.sql} WHERE amount > 3",
                f"SELECT flag, min(ts) FROM {NAME.sql} GROUP BY flag",
                f"SELECT count(DISTINCT d) FROM {NAME.sql}",
                f"SELECT max(`Item ID`), max(concat(s, 'x')) FROM {NAME.sql}",
            ],
        ),
    )
    assert found.counts_of == {"s": 1}
    assert found.bounds_of == {"id": 1, "v": 1}  # the last one cannot be answered from metadata


@pytest.mark.spark
def test_row_level_operations_name_their_columns(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    found = workload(
        schema,
        logged(
            spark,
            tmp_path,
            [
                f"DELETE FROM {NAME.sql} WHERE id = 3",
                f"UPDATE {NAME.sql} SET v = 3 WHERE s = 'abc4'",
                f"DELETE FROM {NAME.sql} WHERE d = DATE'2026-01-02'",
                f"MERGE INTO {NAME.sql} t USING {OTHER.sql} u ON t.`Item ID` = u.id AND t.amount > 1 "
                "WHEN MATCHED THEN UPDATE SET v = 4",
            ],
        ),
    )
    assert set(found.row_level) == {"id", "s", "d", "Item ID", "amount"}


@pytest.mark.spark
def test_other_tables_and_metadata_tables_are_told_apart(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    found = workload(
        schema,
        logged(
            spark,
            tmp_path,
            [
                f"SELECT * FROM {NAME.metadata_table_sql('files')}",
                f"SELECT a.id FROM {NAME.sql} a JOIN {NAME.sql} b ON a.id = b.id JOIN {OTHER.sql} c ON a.id = c.id",
                f"SELECT * FROM {NAME.sql}",
            ],
        ),
    )
    assert found.other_tables == {"lake.test_event_log.t.files": 1, "lake.test_event_log.u": 1}
    assert {str(item.expression): item.weight for item in found.filters} == {"id is not null": 2, str(ALWAYS_TRUE): 1}


@pytest.mark.spark
def test_a_cached_table_is_scanned_once(spark: SparkSession, schema: Schema, tmp_path: Path) -> None:
    frame = spark.sql(f"SELECT * FROM {NAME.sql} WHERE id < 50").cache()
    with event_log(spark, tmp_path):
        for _ in range(3):
            frame.count()
    frame.unpersist()
    found = workload(schema, list(read_event_logs([str(tmp_path)])))
    assert [item.weight for item in found.filters] == [1]


def test_a_folder_without_event_logs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no events here\n")
    with pytest.raises(InputError, match="holds no Spark event log: expected events as JSON"):
        list(read_event_logs([str(tmp_path)]))


def test_scans_of_older_releases_are_read(tmp_path: Path) -> None:
    text = (
        "BatchScan lake.test_event_log.t[id#1L, s#2] lake.test_event_log.t (branch=null) [filters=s IS NOT NULL, "
        "s = 'a', groupedBy=] RuntimeFilters: []"
    )
    node = {"nodeName": "BatchScan lake.test_event_log.t", "simpleString": text, "children": []}
    event = {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": 1,
        "sparkPlanInfo": node,
    }
    (tmp_path / "log").write_text(json.dumps(event, separators=(",", ":")) + "\n" + '{"Event":"SparkListenerSQL')
    found = list(read_event_logs([str(tmp_path)]))
    assert [(item.table, str(item.filter)) for item in found] == [(NAME.dotted, '(s is not null and s = "a")')]


class _Conjuncts:
    """What a filter means to Iceberg: its conjuncts in any order, bound to the schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __call__(self, expression: Expression) -> frozenset[str]:
        bound = rewrite_not(bind(expression, self._schema, case_sensitive=False))
        return frozenset(json.dumps(to_iceberg_json(_sorted(part)), sort_keys=True) for part in _parts(bound))


def _parts(expression: Expression) -> list[Expression]:
    if isinstance(expression, And):
        return _parts(expression.left) + _parts(expression.right)
    return [expression]


def _sorted(expression: Expression) -> Expression:
    """Spark gives the values of IN in the order of its hash set."""
    return visit(expression, lambda leaf: replace(leaf, literals=tuple(sorted(leaf.literals, key=str))))
