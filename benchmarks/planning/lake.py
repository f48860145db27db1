"""The benchmark's lake: generated tables in an embedded catalog, made once and kept."""

from __future__ import annotations

import io
import json
import shutil
import struct
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
from benchmarks.planning.manifests import Column, Manifest, manifest, table_columns

from planning_health.catalogs import TableName, spark_session
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
    """How large a table is."""

    files: int
    columns: int
    manifests: int

    @property
    def name(self) -> TableName:
        return TableName("bench", ("planning",), f"files_{self.files}_columns_{self.columns}")


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
    columns = table_columns(shape.columns)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS bench.planning")
    spark.sql(f"DROP TABLE IF EXISTS {shape.name.sql}")
    ddl = ", ".join(f"{column.name} {SQL_TYPES[column.kind]}" for column in columns)
    spark.sql(f"CREATE TABLE {shape.name.sql} ({ddl}) USING iceberg PARTITIONED BY (days(ts))")
    java_table = load_java_table(spark, shape.name)
    folder = home / "manifests" / shape.name.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _commit(spark, java_table, _written(shape, columns, folder, _empty_manifest(spark, java_table, folder)))
    return java_table


def _empty_manifest(spark: SparkSession, java_table: Any, folder: Path) -> bytes:
    path = folder / "empty.avro"
    files = spark._jvm.org.apache.iceberg.ManifestFiles  # type: ignore[union-attr]
    files.write(2, java_table.spec(), java_table.io().newOutputFile(str(path)), None).close()
    return path.read_bytes()


def _written(shape: Shape, columns: list[Column], folder: Path, empty: bytes) -> Iterator[tuple[Path, Manifest]]:
    bounds = [shape.files * number // shape.manifests for number in range(shape.manifests + 1)]
    with ProcessPoolExecutor(2) as pool:
        made = [
            pool.submit(_write, folder / f"{uuid.uuid4()}.avro", number, end - start, shape.manifests, columns, empty)
            for number, (start, end) in enumerate(pairwise(bounds))
        ]
        for future in made:
            yield future.result()


def _write(path: Path, *arguments: Any) -> tuple[Path, Manifest]:
    made = manifest(*arguments)
    path.write_bytes(made.content)
    return path, Manifest(b"", made.entries, made.records, made.first_day, made.last_day)


def _commit(spark: SparkSession, java_table: Any, manifests: Iterator[tuple[Path, Manifest]]) -> None:
    """Append manifests as they are, through Iceberg's API."""
    files = spark._jvm.org.apache.iceberg.ManifestFiles  # type: ignore[union-attr]
    append = java_table.newFastAppend()
    for path, made in manifests:
        append.appendManifest(files.decode(bytearray(_described(path, made))))
    append.commit()


def _described(path: Path, made: Manifest) -> bytes:
    """Describe an unassigned manifest in the framing that ``ManifestFiles.decode`` reads."""
    schema = json.dumps(_DESCRIPTION).encode()
    day = struct.Struct("<i").pack
    datum = {
        "manifest_path": str(path),
        "manifest_length": path.stat().st_size,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": -1,
        "min_sequence_number": -1,
        "added_snapshot_id": None,
        "added_files_count": made.entries,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": made.records,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [
            {
                "contains_null": False,
                "contains_nan": False,
                "lower_bound": day(made.first_day),
                "upper_bound": day(made.last_day),
            }
        ],
        "key_metadata": None,
        "first_row_id": None,
    }
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(_DESCRIPTION), datum)
    return b"\xc2\x01" + struct.pack(">H", len(schema)) + schema + out.getvalue()


def _field(field_id: int, name: str, avro_type: Any, *, optional: bool = False) -> dict[str, Any]:
    return {"name": name, "type": ["null", avro_type] if optional else avro_type, "field-id": field_id}


_SUMMARY = {
    "type": "record",
    "name": "org.apache.iceberg.GenericPartitionFieldSummary",
    "fields": [
        _field(509, "contains_null", "boolean"),
        _field(518, "contains_nan", "boolean", optional=True),
        _field(510, "lower_bound", "bytes", optional=True),
        _field(511, "upper_bound", "bytes", optional=True),
    ],
}
_DESCRIPTION = {
    "type": "record",
    "name": "org.apache.iceberg.GenericManifestFile",
    "fields": [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long", optional=True),
        _field(504, "added_files_count", "int"),
        _field(505, "existing_files_count", "int"),
        _field(506, "deleted_files_count", "int"),
        _field(512, "added_rows_count", "long"),
        _field(513, "existing_rows_count", "long"),
        _field(514, "deleted_rows_count", "long"),
        _field(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}, optional=True),
        _field(519, "key_metadata", "bytes", optional=True),
        _field(520, "first_row_id", "long", optional=True),
    ],
}
