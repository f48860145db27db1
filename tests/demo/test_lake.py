"""Each table of the demonstration lake shows what it is there to show, as Iceberg itself reports it."""

from __future__ import annotations

import itertools
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

import planning_health.demo
from planning_health.catalogs import TableName, load_pyiceberg_catalog
from planning_health.demo import lake
from planning_health.demo.tables import ORDERS_COMMITS, SENSOR_COMMITS, DemoTable, TableWriter
from planning_health.errors import InputError
from planning_health.settings import SettingsDocument, load_settings
from planning_health.settings.load import DEMO_SETTINGS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

DATA, DELETES = 0, 1
DELETED = 2
DELETE_FILE_PATH = 2147483546  # reserved field id: the data file that a position delete belongs to


def named(text: str) -> TableName:
    return TableName.parse(f"lake.{text}")


def metadata_rows(spark: SparkSession, table: TableName, metadata_table: str) -> list[Row]:
    return spark.table(table.metadata_table_sql(metadata_table)).collect()


def manifests(spark: SparkSession, table: TableName, content: int = DATA) -> list[Row]:
    return [row for row in metadata_rows(spark, table, "manifests") if row.content == content]


def deleted_ratio(manifest: Row) -> float:
    counts = (manifest.added_data_files_count, manifest.existing_data_files_count, manifest.deleted_data_files_count)
    return counts[2] / sum(counts)


def days_covered(manifest: Row) -> int:
    """The range of the first partition field, a days transform, which Iceberg shows as dates."""
    summary = manifest.partition_summaries[0]
    return (date.fromisoformat(summary.upper_bound) - date.fromisoformat(summary.lower_bound)).days


def files(spark: SparkSession, table: TableName, content: int = DATA) -> list[Row]:
    return [row for row in metadata_rows(spark, table, "files") if row.content == content]


def fingerprint(spark: SparkSession, table: TableName) -> tuple[int, int]:
    """The number of rows, and a hash of all values that does not depend on the rows' order."""
    columns = ", ".join(f"`{column}`" for column in spark.table(table.sql).columns)
    return tuple(spark.sql(f"SELECT count(*), bit_xor(xxhash64({columns})) FROM {table.sql}").first() or ())


def test_late_rows_make_nearly_every_manifest_of_orders_wide(spark: SparkSession, demo_lake: list[TableName]) -> None:
    of_orders = manifests(spark, named("sales.orders"))
    assert len(of_orders) == ORDERS_COMMITS >= 40
    assert sum(days_covered(manifest) >= 30 for manifest in of_orders) >= 40
    days = {row.partition.ordered_on_day for row in files(spark, named("sales.orders"))}
    assert (max(days) - min(days)).days >= 120


def test_a_day_of_orders_lies_inside_many_manifests(spark: SparkSession, demo_lake: list[TableName]) -> None:
    bounds = [manifest.partition_summaries[0] for manifest in manifests(spark, named("sales.orders"))]
    assert sum(bound.lower_bound <= "2026-03-20" <= bound.upper_bound for bound in bounds) >= 30


def test_rewriting_orders_would_give_several_manifests(spark: SparkSession, demo_lake: list[TableName]) -> None:
    size = sum(manifest.length for manifest in manifests(spark, named("sales.orders")))
    assert size / 40_960 >= 8


def test_tickets_have_deleted_entries_beside_living_deletes(spark: SparkSession, demo_lake: list[TableName]) -> None:
    tickets = named("ops.tickets")
    ratios = [deleted_ratio(manifest) for manifest in manifests(spark, tickets)]
    assert sum(ratio >= 0.3 for ratio in ratios) >= 2
    assert min(ratios) < 0.3
    assert len(manifests(spark, tickets, DELETES)) >= 2
    dangling, alive = dangling_and_living_deletes(spark, tickets)
    assert dangling > 0
    assert alive > 0
    # The writer keeps bounds of the path column only where they name a single data file.
    of_one_file = {DELETE_FILE_PATH in (row.lower_bounds or {}) for row in files(spark, tickets, DELETES)}
    assert of_one_file == {True, False}


def dangling_and_living_deletes(spark: SparkSession, table: TableName) -> tuple[int, int]:
    """Delete files that are older than all live data of their partition, and the others."""
    entries = [row for row in metadata_rows(spark, table, "entries") if row.status != DELETED]
    oldest: dict[Any, int] = {}
    for entry in entries:
        if entry.data_file.content == DATA:
            partition = entry.data_file.partition
            oldest[partition] = min(entry.sequence_number, oldest.get(partition, entry.sequence_number))
    deletes = [entry for entry in entries if entry.data_file.content == DELETES]
    dangling = sum(entry.sequence_number < oldest[entry.data_file.partition] for entry in deletes)
    return dangling, len(deletes) - dangling


def test_retention_left_a_manifest_of_audit_log_without_live_files(
    spark: SparkSession, demo_lake: list[TableName]
) -> None:
    ratios = sorted(deleted_ratio(manifest) for manifest in manifests(spark, named("ops.audit_log")))
    assert ratios[-1] == 1.0
    assert 0.3 <= ratios[-2] < 1.0
    assert ratios[0] == 0.0


def test_statistics_make_sensor_readings_heavy_while_its_manifests_are_aligned(
    spark: SparkSession, demo_lake: list[TableName]
) -> None:
    readings = named("ops.sensor_readings")
    assert len(spark.table(readings.sql).columns) == 94
    assert len(files(spark, readings)) == 360
    of_readings = manifests(spark, readings)
    assert len(of_readings) == SENSOR_COMMITS >= 4
    assert sum(manifest.length for manifest in of_readings) > 500_000
    bounds = sorted((m.partition_summaries[0].lower_bound, m.partition_summaries[0].upper_bound) for m in of_readings)
    assert all(left[1] < right[0] for left, right in itertools.pairwise(bounds))
    assert all(len(row.lower_bounds) == 94 for row in files(spark, readings))


def test_every_manifest_of_customers_holds_all_sixteen_buckets(spark: SparkSession, demo_lake: list[TableName]) -> None:
    of_customers = manifests(spark, named("sales.customers"))
    assert len(of_customers) >= 6
    summaries = [manifest.partition_summaries[0] for manifest in of_customers]
    assert {(summary.lower_bound, summary.upper_bound) for summary in summaries} == {("0", "15")}


def test_invoices_are_partitioned_by_month_and_a_country_that_is_null_or_called_null(
    spark: SparkSession, demo_lake: list[TableName]
) -> None:
    partitions = {row.partition for row in files(spark, named("sales.invoices"))}
    assert {partition.country for partition in partitions} == {"DE", "FR", None, "null"}
    assert len({partition.issued_on_month for partition in partitions}) >= 5


def test_page_views_have_several_manifests_in_each_of_two_specs(
    spark: SparkSession, demo_lake: list[TableName]
) -> None:
    specs = [manifest.partition_spec_id for manifest in manifests(spark, named("ops.page_views"))]
    assert set(specs) == {0, 1}
    assert min(specs.count(0), specs.count(1)) >= 3


def test_sessions_are_v3_with_deletion_vectors(spark: SparkSession, demo_lake: list[TableName]) -> None:
    sessions = named("ops.sessions")
    assert TableWriter(spark, sessions).java_table().operations().current().formatVersion() == 3
    deletes = files(spark, sessions, DELETES)
    assert {row.file_format for row in deletes} == {"PUFFIN"}
    assert all(row.referenced_data_file and row.content_offset is not None for row in deletes)


def test_file_sizes_of_uploads_are_very_uneven(spark: SparkSession, demo_lake: list[TableName]) -> None:
    sizes = sorted(row.file_size_in_bytes for row in files(spark, named("ops.uploads")))
    assert sizes[-1] > 20 * sizes[len(sizes) // 2]


def test_daily_totals_have_few_manifests_that_do_not_overlap(spark: SparkSession, demo_lake: list[TableName]) -> None:
    totals = named("sales.daily_totals")
    of_totals = sorted(manifests(spark, totals), key=lambda m: m.partition_summaries[0].lower_bound)
    assert len(of_totals) == 4
    assert max(map(days_covered, of_totals)) < 30
    assert max(map(deleted_ratio, of_totals)) == 0
    assert all(
        left.partition_summaries[0].upper_bound < right.partition_summaries[0].lower_bound
        for left, right in itertools.pairwise(of_totals)
    )
    data_bytes = sum(row.file_size_in_bytes for row in files(spark, totals))
    assert sum(manifest.length for manifest in of_totals) < 0.05 * data_bytes


def test_an_unpartitioned_and_an_empty_table_are_there(spark: SparkSession, demo_lake: list[TableName]) -> None:
    assert all(not m.partition_summaries for m in manifests(spark, named("sales.exchange_rates")))
    assert metadata_rows(spark, named("sales.returns"), "snapshots") == []


def test_the_broken_table_names_the_manifest_that_is_missing(spark: SparkSession, demo_lake: list[TableName]) -> None:
    broken = named("broken.missing_manifest")
    assert len(manifests(spark, broken)) == 3, "the manifest list itself can be read"
    with pytest.raises(Exception, match=r"m0\.avro does not exist"):
        spark.table(broken.sql).count()


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("sales.orders", (25200, -3344838471475343125)),
        ("ops.sensor_readings", (2160, -1915373518694458378)),
        ("ops.tickets", (11470, 7613947927349939872)),
    ],
)
def test_every_build_writes_the_same_rows(
    spark: SparkSession, demo_lake: list[TableName], table: str, expected: tuple[int, int]
) -> None:
    assert fingerprint(spark, named(table)) == expected


def test_pyiceberg_opens_every_table_whatever_its_name(settings: SettingsDocument, demo_lake: list[TableName]) -> None:
    catalog = load_pyiceberg_catalog(settings, "lake")
    columns = {table: catalog.load_table(table.identifier).schema().column_names for table in demo_lake}
    assert columns[named("sales.`Order-Items v1.5`")] == ["Item ID", "SKU.code", "ship-date"]


def test_a_finished_lake_is_left_alone(spark: SparkSession, demo_lake: list[TableName]) -> None:
    built: list[TableName] = []
    assert lake.build_lake(spark, progress=lambda table, done, total: built.append(table)) == demo_lake
    assert built == []


def test_the_documentation_describes_every_table(demo_lake: list[TableName]) -> None:
    assert [table for table in demo_lake if table.name not in (planning_health.demo.__doc__ or "")] == []


def test_the_example_queries_select_something_from_tables_of_the_lake(
    spark: SparkSession, demo_lake: list[TableName]
) -> None:
    settings = load_settings(DEMO_SETTINGS)
    matched = {rule.match for table in demo_lake if (rule := settings.rule_for(table))}
    assert matched == {rule.match for rule in settings.tables}
    empty = [
        (table, query.name)
        for table in demo_lake
        if (rule := settings.rule_for(table))
        for query in rule.queries
        if spark.table(table.sql).where(query.where).isEmpty()
    ]
    assert empty == []


def test_only_the_broken_table_may_fail(demo_lake: list[TableName]) -> None:
    settings = load_settings(DEMO_SETTINGS)
    tolerated = [table for table in demo_lake if (rule := settings.rule_for(table)) and rule.tolerate_failure]
    assert tolerated == [named("broken.missing_manifest")]


@pytest.fixture
def other_catalog(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A catalog of its own, and a lake of a single small table."""
    small = DemoTable(("sales", "small"), "id BIGINT", lambda writer: writer.append(3, "id"))
    monkeypatch.setattr(lake, "DEMO_TABLES", (small,))
    catalog = f"other_{tmp_path.name}"
    conf = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".cache-enabled": "false"}
    for key, value in (conf | {".warehouse": str(tmp_path)}).items():
        spark.conf.set(f"spark.sql.catalog.{catalog}{key}", value)
    return catalog


def test_an_unfinished_table_is_built_anew(spark: SparkSession, other_catalog: str) -> None:
    [table] = lake.build_lake(spark, other_catalog)
    spark.sql(f"ALTER TABLE {table.sql} SET TBLPROPERTIES ('{lake.VERSION_PROPERTY}' = 'unfinished')")
    spark.sql(f"INSERT INTO {table.sql} VALUES (99)")
    built: list[tuple[TableName, int, int]] = []
    lake.build_lake(spark, other_catalog, progress=lambda *step: built.append(step))
    assert built == [(table, 1, 1)]
    assert spark.table(table.sql).count() == 3


def test_a_table_of_someone_else_is_never_replaced(spark: SparkSession, other_catalog: str) -> None:
    spark.sql(f"CREATE TABLE {other_catalog}.sales.small USING iceberg AS SELECT 1 AS precious")
    with pytest.raises(InputError, match=r"sales\.small exists and is not the demonstration lake's"):
        lake.build_lake(spark, other_catalog)
    assert spark.table(f"{other_catalog}.sales.small").columns == ["precious"]
