"""Recording with Spark and without it gives the same picture, and that picture is what Iceberg Java sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.errors import InputError, NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.metadata import SnapshotChoice, load, record_with_pyiceberg, save
from planning_health.metadata.record_spark import load_java_table, record_with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

DAYS = TableName.parse("lake.test_record.days")
MOR = TableName.parse("lake.test_record.`merge-on.read`")
EMPTY = TableName.parse("lake.test_record.empty")
CODECS = {codec: TableName.parse(f"lake.test_record.{codec}") for codec in ("gzip", "snappy", "uncompressed", "zstd")}
"""All that Iceberg compresses manifests in."""
AVRO_NAMES = {"gzip": "deflate", "snappy": "snappy", "uncompressed": "null", "zstd": "zstandard"}
TIMINGS = ("read_ms", "decode_ms")


@pytest.fixture(scope="module", autouse=True)
def tables(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE lake.test_record")
    spark.sql(f"CREATE TABLE {EMPTY.sql} (id BIGINT) USING iceberg")
    spark.sql(f"CREATE TABLE {DAYS.sql} (id BIGINT, d DATE, s STRING) USING iceberg PARTITIONED BY (days(d), s)")
    for shift in (0, 10):
        spark.sql(
            f"INSERT INTO {DAYS.sql} SELECT id, date_add(DATE'2024-01-01', CAST(id % 5 AS INT) + {shift}), "
            "CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN 'null' ELSE 'é' END FROM range(40)"
        )
    spark.sql(f"DELETE FROM {DAYS.sql} WHERE d = DATE'2024-01-02'")
    spark.sql(
        f"CREATE TABLE {MOR.sql} (id BIGINT, v DOUBLE) USING iceberg "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'format-version'='3')"
    )
    spark.sql(f"INSERT INTO {MOR.sql} SELECT id, id / 2 FROM range(20)")
    spark.sql(f"DELETE FROM {MOR.sql} WHERE id % 7 = 3")
    for codec, name in CODECS.items():
        spark.sql(
            f"CREATE TABLE {name.sql} (id BIGINT, d DATE, s STRING) USING iceberg PARTITIONED BY (s) "
            f"TBLPROPERTIES ('write.manifest.compression-codec'='{codec}')"
        )
        spark.sql(f"INSERT INTO {name.sql} SELECT id, DATE'2024-01-01', CAST(id % 9 AS STRING) FROM range(90)")


@pytest.mark.parametrize("name", [DAYS, MOR, EMPTY, *CODECS.values()], ids=str)
def test_spark_and_pyiceberg_record_the_same_picture(
    spark: SparkSession, settings: SettingsDocument, tmp_path: Path, name: TableName
) -> None:
    record_with_spark(spark, name, str(tmp_path), queried=["ID"])
    with_spark = load(str(tmp_path))
    without = record_with_pyiceberg(load_pyiceberg_catalog(settings, "lake"), name, queried=["ID"])
    assert with_spark.manifests.drop_columns(TIMINGS).equals(without.manifests.drop_columns(TIMINGS))
    assert with_spark.data_files.equals(without.data_files)
    assert with_spark.delete_files.equals(without.delete_files)
    assert with_spark.info.snapshot_id == without.info.snapshot_id
    assert (
        with_spark.info.recorded_field_ids
        == without.info.recorded_field_ids
        == {1} | with_spark.info.recorded_field_ids
    )


def test_manifests_are_in_the_codec_of_the_tables_property(settings: SettingsDocument) -> None:
    catalog = load_pyiceberg_catalog(settings, "lake")
    for codec, name in CODECS.items():
        assert record_with_pyiceberg(catalog, name).manifests["codec"].to_pylist() == [AVRO_NAMES[codec]]


@pytest.mark.parametrize("name", [DAYS, *CODECS.values()], ids=str)
def test_recorded_entries_equal_what_iceberg_java_reads(
    spark: SparkSession, settings: SettingsDocument, name: TableName
) -> None:
    metadata = record_with_pyiceberg(load_pyiceberg_catalog(settings, "lake"), name, queried=["id", "s"])
    java: Any = load_java_table(spark, name)
    manifests = list(java.currentSnapshot().allManifests(java.io()))
    factory = spark._jvm.org.apache.iceberg.ManifestFiles  # type: ignore[union-attr]
    lists = spark._jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists  # type: ignore[union-attr]
    rows = metadata.data_files.to_pylist()
    position = 0
    for recorded, manifest in zip(metadata.manifests.to_pylist(), manifests, strict=True):
        assert (recorded["path"], recorded["length"]) == (manifest.path(), manifest.length())
        assert recorded["entries_deleted"] == manifest.deletedFilesCount()
        reader = factory.read(manifest, java.io(), java.specs())
        for file in lists.newArrayList(reader):  # live entries only
            while rows[position]["status"] == 2:
                position += 1
            row = rows[position]
            assert row["file_path"] == file.location()
            assert row["record_count"] == file.recordCount()
            assert row["sequence_number"] == file.dataSequenceNumber()
            assert row["lower_bound.1"] == bytes(file.lowerBounds().get(1).array())
            assert row["null_value_count.3"] == file.nullValueCounts().get(3)
            position += 1
    assert metadata.data_files.num_rows == position + sum(row["status"] == 2 for row in rows[position:])


def test_a_recording_survives_saving_and_loading(settings: SettingsDocument, tmp_path: Path) -> None:
    metadata = record_with_pyiceberg(load_pyiceberg_catalog(settings, "lake"), DAYS)
    save(metadata, str(tmp_path / "metadata"))
    loaded = load(str(tmp_path / "metadata"))
    assert loaded.data_files.equals(metadata.data_files)
    assert loaded.info.specs == metadata.info.specs
    assert loaded.info.schema == metadata.info.schema


def test_an_earlier_snapshot_is_recorded_by_its_id(settings: SettingsDocument) -> None:
    catalog = load_pyiceberg_catalog(settings, "lake")
    first = record_with_pyiceberg(catalog, DAYS).info.metadata.snapshots[0].snapshot_id
    metadata = record_with_pyiceberg(catalog, DAYS, choice=SnapshotChoice(snapshot_id=first))
    assert metadata.info.snapshot_id == first
    assert metadata.manifests.num_rows == 1


def test_unknown_tables_refs_and_snapshots_are_bad_input(spark: SparkSession, settings: SettingsDocument) -> None:
    catalog = load_pyiceberg_catalog(settings, "lake")
    missing = TableName.parse("lake.test_record.missing")
    with pytest.raises(InputError, match=r"lake\.test_record\.missing.*does not exist"):
        record_with_pyiceberg(catalog, missing)
    with pytest.raises(InputError, match=r"lake\.test_record\.missing.*does not exist"):
        record_with_spark(spark, missing, "/nowhere")
    with pytest.raises(InputError, match="ref 'nope' does not exist; known: main"):
        record_with_pyiceberg(catalog, DAYS, choice=SnapshotChoice(ref="nope"))
    with pytest.raises(InputError, match="snapshot 17 does not exist"):
        record_with_pyiceberg(catalog, DAYS, choice=SnapshotChoice(snapshot_id=17))


@pytest.mark.parametrize("damage", ["missing", "truncated", "garbage"])
def test_a_damaged_manifest_is_named_as_the_reason(
    spark: SparkSession, settings: SettingsDocument, tmp_path: Path, damage: str
) -> None:
    name = TableName("lake", ("test_record",), f"damaged_{damage}")
    spark.sql(f"CREATE TABLE {name.sql} (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {name.sql} SELECT id FROM range(10)")
    catalog = load_pyiceberg_catalog(settings, "lake")
    path = Path(record_with_pyiceberg(catalog, name).manifests["path"][0].as_py().removeprefix("file:"))
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"not avro at all")
    with pytest.raises(NotMeasurableError, match=path.name):
        record_with_pyiceberg(catalog, name)
    with pytest.raises(NotMeasurableError, match=path.name):
        record_with_spark(spark, name, str(tmp_path / "metadata"))
    with pytest.raises(NotMeasurableError, match="no complete measurement"):
        load(str(tmp_path / "metadata"))
