"""Records planning metadata with Spark: executors read the manifests and write the recording.

The driver handles the table metadata and the manifest list only, so that a table of ten million files does not pass
through one process row by row. The result equals what ``record`` makes without Spark.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadata

from planning_health.errors import InputError, NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.metadata.java_errors import causes
from planning_health.metadata.manifest_encoding import EntrySamples, sample_budgets
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.manifest_reader import worth_compiling
from planning_health.metadata.model import DATA, DELETES, TableInfo
from planning_health.metadata.record import ReadBytes, manifests_of, manifests_table, read_and_decode
from planning_health.metadata.recorded_columns import columns_to_record
from planning_health.metadata.snapshot_choice import SnapshotChoice
from planning_health.metadata.storage_options import filesystem_of
from planning_health.metadata.store import (
    DATA_FILES,
    DELETE_FILES,
    clear,
    parse_table_metadata,
    save_table,
    write_parquet,
)
from planning_health.redaction import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MANIFESTS_PER_PART: Final = 16
"""As many are in memory at once, and in one file of the recording."""
_TASKS_PER_CORE: Final = 2
_MOST_PARTS_PER_TASK: Final = 16
"""A task costs PySpark up to half a second, whatever it does; a failed one is repeated as a whole."""


def record_with_spark(
    spark: SparkSession,
    name: TableName,
    folder: str,
    *,
    queried: Iterable[str] = (),
    choice: SnapshotChoice | None = None,
) -> TableInfo:
    """Records a table's planning metadata into a folder.

    Args:
        spark: a session whose catalogs include the table's.
        name: the table.
        folder: fsspec URL that driver and executors can write; what is there already is replaced.
        queried: columns of the queries whose statistics are recorded beside the partition and sort columns.
        choice: another snapshot than the current one.

    Raises:
        InputError: when the table or the snapshot does not exist.
        NotMeasurableError: when its metadata cannot be read, with the reason.
    """
    started = time.perf_counter()
    java_table = load_java_table(spark, name)
    metadata = table_metadata(spark, java_table)
    snapshot_id, schema = (choice or SnapshotChoice()).resolve(metadata)
    manifests, list_bytes = manifests_of(metadata, snapshot_id, java_reader(java_table))
    clear(folder)
    task = _RecordTask(
        folder=folder,
        recorded=columns_to_record(metadata, schema, queried),
        io_properties=dict(java_table.io().properties()),
        compiled=worth_compiling(manifests),
        sample_bytes=sample_budgets([manifest.ordinal for manifest in manifests]),
    )
    deletes = [manifest for manifest in manifests if manifest.content == DELETES]
    rows = _run(spark, task, DELETE_FILES, deletes)
    equality_ids = {field_id for row in rows for field_id in row["equality_ids"]}
    if equality_ids - task.recorded:
        task = replace(task, recorded=task.recorded | equality_ids)
        rows = _run(spark, task, DELETE_FILES, deletes)
    rows += _run(spark, task, DATA_FILES, [manifest for manifest in manifests if manifest.content == DATA])
    info = TableInfo(
        name=name,
        metadata=metadata,
        metadata_location=java_table.operations().current().metadataFileLocation(),
        snapshot_id=snapshot_id,
        ref=choice.ref if choice else None,
        schema=schema,
        recorded_field_ids=task.recorded,
        recorder="spark",
        measured_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        manifest_list_bytes=list_bytes,
        record_ms=(time.perf_counter() - started) * 1000,
    )
    rows.sort(key=lambda row: int(row["ordinal"]))
    samples = EntrySamples.of(row["sample"] for row in rows)
    save_table(info, manifests_table(rows), samples, folder)
    return info


def load_java_table(spark: SparkSession, name: TableName) -> Any:
    """Iceberg's own ``Table`` object, freshly loaded.

    Raises:
        InputError: when the catalog or the table does not exist, or the catalog cannot be reached.
        NotMeasurableError: when the table exists but its metadata cannot be read.
    """
    jvm = spark._jvm
    if jvm is None:
        raise InputError("Spark Connect gives no access to Iceberg's Java API: use a classic Spark session")
    _open_catalog(spark, name.catalog)
    try:
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name.sql)
    except Exception as error:
        java = getattr(error, "java_exception", None)
        text = f"{java.getClass().getSimpleName()}: {java.getMessage()}" if java is not None else str(error)
        if "NoSuchTable" in text or "NoSuchNamespace" in text or "cannot be found" in text:
            raise InputError(f"table {str(name)!r} does not exist in catalog {name.catalog!r}") from error
        raise NotMeasurableError(f"the table cannot be loaded ({first_line(Exception(text))})") from error


def _open_catalog(spark: SparkSession, catalog: str) -> None:
    """Lets Spark open a catalog: looking up a table in one that cannot be opened complains of a namespace instead."""
    session = spark._jsparkSession
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(session)  # a pool's thread has none to configure it
    try:
        session.sessionState().catalogManager().catalog(catalog)
    except Exception as error:
        reasons = [f"{java.getClass().getSimpleName()}: {java.getMessage()}" for java in causes(error)]
        if not reasons:
            raise
        if "CatalogNotFound" in reasons[0]:
            raise InputError(f"catalog {catalog!r} is not configured in this Spark session") from error
        hint = "; is the package that has it among spark.packages?" if _lacks_a_class(reasons) else ""
        cause = first_line(Exception(" ".join(reasons[-1].split())))  # a missing class is named below the first line
        raise InputError(f"catalog {catalog!r} cannot be opened by Spark: {cause}{hint}") from error


def _lacks_a_class(reasons: list[str]) -> bool:
    return any(text in reason for reason in reasons for text in ("ClassNotFound", "NoClassDef", "No suitable driver"))


def table_metadata(spark: SparkSession, java_table: Any) -> TableMetadata:
    """The metadata of a loaded table."""
    parser: Any = spark._jvm.org.apache.iceberg.TableMetadataParser
    return parse_table_metadata(str(parser.toJson(java_table.operations().current())))


def java_reader(java_table: Any) -> ReadBytes:
    """A function that reads whole files through the table's own file IO."""

    def read(path: str) -> bytes:
        try:
            stream = java_table.io().newInputFile(path).newStream()
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Exception as error:
            java = next(causes(error), None)
            told = first_line(error if java is None else Exception(str(java.getMessage())))
            raise NotMeasurableError(f"{path} cannot be read ({told})") from error

    return read


@dataclass(frozen=True)
class _RecordTask:
    """What an executor needs to know; it reads no settings."""

    folder: str
    recorded: frozenset[int]
    io_properties: dict[str, str]
    compiled: bool
    sample_bytes: dict[int, int]

    def reader(self) -> ReadBytes:
        def read(path: str) -> bytes:
            try:
                filesystem, inner = filesystem_of(path, self.io_properties)
                content: bytes = filesystem.cat_file(inner)
            except FileNotFoundError as error:
                raise NotMeasurableError(f"{path} is missing") from error
            except Exception as error:  # each store's library has its own, and not all are OSError
                told = getattr(error, "strerror", None) or f"{type(error).__name__}: {first_line(error)}"
                raise NotMeasurableError(f"{path} cannot be read ({told})") from error
            return content

        return read


def _run(spark: SparkSession, task: _RecordTask, kind: str, manifests: list[ManifestFile]) -> list[dict[str, Any]]:
    if not manifests:
        return []
    parts = [manifests[start : start + _MANIFESTS_PER_PART] for start in range(0, len(manifests), _MANIFESTS_PER_PART)]
    tasks = _tasks(len(parts), spark.sparkContext.defaultParallelism)
    record_part = _part_recorder(task, kind)
    rows: list[dict[str, Any]] = (
        spark.sparkContext.parallelize(list(enumerate(parts)), tasks).flatMap(lambda part: record_part(*part)).collect()
    )
    failures = [row["error"] for row in rows if row["error"]]
    if failures:
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        raise NotMeasurableError(f"{failures[0]}{more}")
    return rows


def _tasks(parts: int, cores: int) -> int:
    """Enough for all cores, yet no longer ones than may be repeated."""
    return max(min(parts, cores * _TASKS_PER_CORE), -(-parts // _MOST_PARTS_PER_TASK))


def _part_recorder(task: _RecordTask, kind: str) -> Callable[[int, list[ManifestFile]], Iterator[dict[str, Any]]]:
    def record_part(part: int, manifests: list[ManifestFile]) -> Iterator[dict[str, Any]]:
        read = task.reader()
        files: list[pa.Table] = []
        for manifest in manifests:
            try:
                decoded, columns = read_and_decode(
                    manifest,
                    task.recorded,
                    read,
                    compiled=task.compiled,
                    sample_bytes=task.sample_bytes.get(manifest.ordinal, 0),
                )
            except NotMeasurableError as error:
                yield {"error": str(error)}
                continue
            files.append(decoded.files)
            yield manifest.columns() | columns | {"equality_ids": sorted(decoded.equality_ids), "error": None}
        if files:
            write_parquet(pa.concat_tables(files), f"{task.folder}/{kind}/part-{part:05}.parquet")
        _keep_what_is_imported()

    return record_part


@cache
def _keep_what_is_imported() -> None:
    """Once a worker: PySpark collects garbage after each task, which would go through all modules every time."""
    gc.freeze()
