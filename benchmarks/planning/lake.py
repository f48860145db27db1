"""The benchmark's lake: generated tables in an embedded catalog, made once and kept."""

from __future__ import annotations

import shutil
import struct
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.planning.manifests import Column, Manifest, manifest, table_columns

from planning_health.catalogs import TableName, spark_session
from planning_health.maintenance.trim.manifest_file import described
from planning_health.metadata.record_spark import load_java_table
from planning_health.settings import SettingsDocument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL_TYPES = {
    "event time": "timestamp_ntz",
    "timestamp": "timestamp_ntz",
    "long": "bigint",
    "double": "double",
    "string": "string",
}


@dataclass(frozen=True)
class Shape:
    """How large a table is; with ``buckets`` it is partitioned by days and by buckets of ``l00``, else by days."""

    files: int
    columns: int
    manifests: int
    buckets: int = 0

    @property
    def name(self) -> TableName:
        buckets = f"_buckets_{self.buckets}" if self.buckets else ""
        return TableName("bench", ("planning",), f"files_{self.files}_columns_{self.columns}{buckets}")

    @property
    def partitioned_by(self) -> str:
        return f"days(ts), bucket({self.buckets}, l00)" if self.buckets else "days(ts)"


def settings(home: Path) -> SettingsDocument:
    home.mkdir(parents=True, exist_ok=True)
    packages = [*SettingsDocument.model_fields["spark"].default.packages, "org.xerial:sqlite-jdbc:3.50.3.0"]
    properties = {"type": "jdbc", "uri": "jdbc:sqlite:${home}/catalog.db", "warehouse": "${home}/warehouse"}
    # the worker pool is given to a scan explicitly where it is measured
    options = "-Diceberg.scan.plan-in-worker-pool=false"
    return SettingsDocument.model_validate(
        {
            "home": str(home),
            "catalogs": {"bench": {"properties": properties}},
            "spark": {"packages": packages, "conf": {"spark.driver.extraJavaOptions": options}},
            "history": {"catalog": "bench"},
        }
    )


def session(home: Path) -> SparkSession:
    return spark_session(settings(home), "planning benchmark")


def ensure_table(spark: SparkSession, shape: Shape, home: Path) -> Any:
    """Return Iceberg's table object of a shape; the table is made when it is not there."""
    if spark.catalog.tableExists(shape.name.sql):
        java_table = load_java_table(spark, shape.name)
        if java_table.currentSnapshot() is not None:
            return java_table
    spark.sql("CREATE NAMESPACE IF NOT EXISTS bench.planning")
    spark.sql(f"DROP TABLE IF EXISTS {shape.name.sql}")
    return make_table(spark, shape.name, shape, home / "manifests" / shape.name.name)


def make_table(spark: SparkSession, name: TableName, shape: Shape, folder: Path) -> Any:
    """Create a table whose manifests are generated into a folder, and return Iceberg's table object."""
    java_table = create_table(spark, name, shape)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    append_manifests(spark, java_table, shape, generated_manifests(spark, java_table, shape, folder))
    return java_table


def create_table(spark: SparkSession, name: TableName, shape: Shape) -> Any:
    """Create an empty table with a shape's columns and partitioning."""
    ddl = ", ".join(f"{column.name} {SQL_TYPES[column.kind]}" for column in table_columns(shape.columns))
    spark.sql(f"CREATE TABLE {name.sql} ({ddl}) USING iceberg PARTITIONED BY ({shape.partitioned_by})")
    return load_java_table(spark, name)


def generated_manifests(
    spark: SparkSession, java_table: Any, shape: Shape, folder: Path
) -> Iterator[tuple[Path, Manifest]]:
    """Write a shape's manifests into a folder, one after another."""
    empty = empty_manifest(spark, java_table, folder)
    return write_manifests(shape, table_columns(shape.columns), folder, empty)


def empty_manifest(spark: SparkSession, java_table: Any, folder: Path) -> bytes:
    path = folder / "empty.avro"
    files = spark._jvm.org.apache.iceberg.ManifestFiles  # type: ignore[union-attr]
    files.write(2, java_table.spec(), java_table.io().newOutputFile(str(path)), None).close()
    return path.read_bytes()


def write_manifests(shape: Shape, columns: list[Column], folder: Path, empty: bytes) -> Iterator[tuple[Path, Manifest]]:
    bounds = [shape.files * number // shape.manifests for number in range(shape.manifests + 1)]
    with ProcessPoolExecutor(2) as pool:
        made = [
            pool.submit(
                _write,
                folder / f"{uuid.uuid4()}.avro",
                number,
                end - start,
                shape.manifests,
                columns,
                empty,
                shape.buckets,
            )
            for number, (start, end) in enumerate(pairwise(bounds))
        ]
        for future in made:
            yield future.result()


def _write(path: Path, *arguments: Any) -> tuple[Path, Manifest]:
    made = manifest(*arguments)
    path.write_bytes(made.content)
    return path, Manifest(b"", made.entries, made.records, made.first_day, made.last_day)


def append_manifests(
    spark: SparkSession, java_table: Any, shape: Shape, manifests: Iterator[tuple[Path, Manifest]]
) -> None:
    """Append manifests as they are, through Iceberg's API."""
    files = spark._jvm.org.apache.iceberg.ManifestFiles  # type: ignore[union-attr]
    append = java_table.newFastAppend()
    for path, made in manifests:
        append.appendManifest(files.decode(bytearray(_described(path, made, shape.buckets))))
    append.commit()


def _described(path: Path, made: Manifest, buckets: int) -> bytes:
    """Describe a manifest of ADDED entries that the commit assigns to its snapshot."""
    ranges = [(made.first_day, made.last_day)] + ([(0, buckets - 1)] if buckets else [])
    packed = struct.Struct("<i").pack
    return described(
        str(path),
        path.stat().st_size,
        {
            "partition_spec_id": 0,
            "content": 0,
            "min_sequence_number": -1,
            "added_files_count": made.entries,
            "existing_files_count": 0,
            "deleted_files_count": 0,
            "added_rows_count": made.records,
            "existing_rows_count": 0,
            "deleted_rows_count": 0,
            "partitions": [
                {"contains_null": False, "contains_nan": False, "lower_bound": packed(low), "upper_bound": packed(high)}
                for low, high in ranges
            ],
        },
    )
