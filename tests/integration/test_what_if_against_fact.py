"""Predictions against what really happens: a partition spec changed and the data rewritten by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.identifiers import TableName
from planning_health.metadata import record_with_pyiceberg
from planning_health.planning.respec import with_spec
from planning_health.planning.what_if import Reads, compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

NAMESPACE = "lake.test_what_if_against_fact"
DAYS = [
    "d = DATE '2024-01-10'",
    "d BETWEEN DATE '2024-01-03' AND DATE '2024-01-08'",
    "d >= DATE '2024-02-01'",
    "id = 2017",
    "id > 3900",
]


def close(predicted: int, fact: int, share: float) -> bool:
    return abs(predicted - fact) <= max(1, share * fact)


@pytest.mark.parametrize(
    ("name", "fields", "sql_fields"),
    [
        ("buckets", [("id", "bucket[8]")], "bucket(8, id)"),
        ("months", [("d", "month")], "months(d)"),
        ("days", [("d", "day")], "days(d)"),
    ],
)
def test_another_spec_reads_about_what_was_predicted(
    spark: SparkSession, settings: SettingsDocument, name: str, fields: list[tuple[str, str]], sql_fields: str
) -> None:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {NAMESPACE}")
    table = TableName.parse(f"{NAMESPACE}.{name}")
    partitioning = "truncate(2000, id)" if name == "days" else "days(d)"
    spark.sql(f"CREATE TABLE {table.sql} (id BIGINT, d DATE) USING iceberg PARTITIONED BY ({partitioning})")
    for start in (0, 2000):
        spark.sql(
            f"INSERT INTO {table.sql} SELECT id + {start}, date_add(DATE'2024-01-01', CAST(id % 40 AS INT)) "
            "FROM range(2000)"
        )
    catalog = load_pyiceberg_catalog(settings, "lake")
    before = record_with_pyiceberg(catalog, table, queried=["id", "d"])
    predicted = with_spec(before, fields)

    field = before.info.specs[before.info.default_spec_id].fields[0].name
    spark.sql(f"ALTER TABLE {table.sql} REPLACE PARTITION FIELD {field} WITH {sql_fields}")
    options = "map('rewrite-all', 'true', 'target-file-size-bytes', '536870912')"
    spark.sql(f"CALL lake.system.rewrite_data_files(table => '{'.'.join(table.identifier)}', options => {options})")
    spark.sql(f"CALL lake.system.rewrite_manifests('{'.'.join(table.identifier)}')")
    fact = record_with_pyiceberg(catalog, table, queried=["id", "d"])

    misses: dict[str, tuple[Reads, Reads]] = {}
    for effect in compare(predicted, fact, DAYS):
        manifests = close(effect.before.data_manifests, effect.after.data_manifests, 0.10)
        files = close(effect.before.data_files, effect.after.data_files, 0.20)
        if not (manifests and files):
            misses[effect.where] = (effect.before, effect.after)
    assert not misses
