"""Measures one large table and a whole lake, side by side with Iceberg's own metadata tables.

``python -m benchmarks.scale table --size 1m`` records a table of a million files in 5,000 manifests, and reads the same
columns through ``.manifests`` and ``.entries`` in the same warm session, where Spark computes them and keeps nothing.
``python -m benchmarks.scale lake --tables 500`` runs the weekly steps on so many tables. Manifests are generated; data
files do not exist.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.planning.lake import (
    SQL_TYPES,
    Shape,
    append_manifests,
    empty_manifest,
    ensure_table,
    session,
    settings,
    write_manifests,
)
from benchmarks.planning.manifests import table_columns
from benchmarks.planning.planners import timed

from planning_health.identifiers import TableName
from planning_health.metadata.record_spark import load_java_table, record_with_spark
from planning_health.metadata.store import load
from planning_health.run_folder import RunFolder
from planning_health.stages.append_history import append_history
from planning_health.stages.diagnose import diagnose
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose
from planning_health.stages.report import report
from planning_health.stages.run_record import start_run
from planning_health.stages.simulate_assignment import simulate_assignment
from planning_health.stages.simulate_plan_tasks import simulate_plan_tasks
from planning_health.stages.simulate_planning import simulate_planning
from planning_health.stages.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZES = {
    "10k": Shape(10_000, 24, 50),
    "100k": Shape(100_000, 24, 500),
    "1m": Shape(1_000_000, 24, 5_000),
}
QUERIED = ("ts", "l00", "d00", "s00")
SMALL = Shape(240, 12, 6)
STEPS = (diagnose, simulate_planning, simulate_assignment, simulate_plan_tasks, propose)


@dataclass(frozen=True)
class Peaks:
    """Largest memory so far, in MB: of this process, and the heap that the JVM's collector left behind."""

    python: float
    heap: float

    @classmethod
    def now(cls, spark: SparkSession) -> Peaks:
        jvm: Any = spark._jvm
        jvm.System.gc()
        runtime = jvm.Runtime.getRuntime()
        used = (runtime.totalMemory() - runtime.freeMemory()) / 2**20
        return cls(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, used)


def measure_table(spark: SparkSession, home: Path, shape: Shape, rounds: int) -> None:
    """Prints the times of the recording and of Iceberg's metadata tables, and the driver's memory."""
    ensure_table(spark, shape, home)
    before = Peaks.now(spark)
    ours, manifests, entries = [], [], []
    folder = str(home / "recording")
    for _ in range(rounds + 1):
        ours.append(timed(lambda: record_with_spark(spark, shape.name, folder, queried=QUERIED))[0])
        manifests.append(timed(lambda: _scan(spark, shape.name, "manifests", ("*",)))[0])
        entries.append(timed(lambda: _scan(spark, shape.name, "entries", _entry_columns(shape)))[0])
    after = Peaks.now(spark)
    seconds, metadata = timed(lambda: load(folder))
    if (len(metadata.data_files), len(metadata.manifests)) != (shape.files, shape.manifests):
        raise SystemExit(f"recorded {len(metadata.data_files)} files in {len(metadata.manifests)} manifests")
    both = [listed + read for listed, read in zip(manifests, entries, strict=True)]
    taken, theirs = (statistics.median(times[1:]) for times in (ours, both))
    print(
        f"{shape.files:,} files in {shape.manifests:,} manifests: recording {taken:.1f} s, .manifests and .entries "
        f"{theirs:.1f} s ({theirs / taken:.2f} × the recording); loading {seconds:.1f} s; peak memory of the driver's "
        f"Python {before.python:,.0f} → {after.python:,.0f} MB while recording, heap kept {before.heap:,.0f} → "
        f"{after.heap:,.0f} MB"
    )


def _entry_columns(shape: Shape) -> tuple[str, ...]:
    """What a recording keeps of an entry, as ``.entries`` names it."""
    ids = {column.name: column.field_id for column in table_columns(shape.columns)}
    maps = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    file = ("content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes", "split_offsets")
    return (
        *("status", "snapshot_id", "sequence_number", "file_sequence_number"),
        *(f"data_file.{name}" for name in file),
        *(f"data_file.{name}[{ids[column]}] AS {name}_{column}" for name in maps for column in QUERIED),
    )


def _scan(spark: SparkSession, name: TableName, metadata_table: str, columns: tuple[str, ...]) -> None:
    frame = spark.sql(f"SELECT {', '.join(columns)} FROM {name.metadata_table_sql(metadata_table)}")
    frame.write.format("noop").mode("overwrite").save()


def measure_lake(spark: SparkSession, home: Path, count: int) -> None:
    """Prints what each weekly step takes on so many tables."""
    tables = _small_tables(spark, home, count)
    document = settings(home)
    folder = RunFolder(str(home), "benchmark", f"scale-{time.strftime('%Y%m%dT%H%M%S')}")
    start_run(document, folder)
    measure(document, RunFolder(str(home), "benchmark", "warm-up"), tables[:5], spark=spark)
    seconds, envelope = timed(lambda: measure(document, folder, tables, spark=spark))
    if envelope.headline["tables_failed"]:
        raise SystemExit(f"{envelope.headline['tables_failed']} tables were not measured")
    theirs = timed(lambda: [_scan_both(spark, table) for table in tables])[0]
    print(f"{count} tables measured: {seconds:.0f} s; .manifests and .entries of each: {theirs:.0f} s")
    steps: dict[str, Callable[[], Any]] = {"validate": lambda: validate(document, folder)}
    steps |= {step.__name__: partial(_for_each, step, document, folder, tables) for step in STEPS}
    steps |= {step.__name__: partial(step, document, folder) for step in (append_history, report)}
    for name, step in steps.items():
        print(f"  {name}: {timed(step)[0]:.1f} s")
    page = home / "reports" / "latest" / "index.html"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"report {page.stat().st_size / 2**20:.1f} MB; peak memory of the driver's Python {peak:,.0f} MB")


def _for_each(step: Callable[..., Any], settings: Any, folder: RunFolder, tables: list[TableName]) -> None:
    for table in tables:
        step(settings, folder, table)


def _scan_both(spark: SparkSession, name: TableName) -> None:
    _scan(spark, name, "manifests", ("*",))
    _scan(spark, name, "entries", _entry_columns(SMALL))


def _small_tables(spark: SparkSession, home: Path, count: int) -> list[TableName]:
    """Tables that share the generated manifests: their metadata is what is measured."""
    columns = table_columns(SMALL.columns)
    ddl = ", ".join(f"{column.name} {SQL_TYPES[column.kind]}" for column in columns)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS bench.scale")
    existing = {row.tableName for row in spark.sql("SHOW TABLES IN bench.scale").collect()}
    tables = [TableName("bench", ("scale",), f"table_{number:04}") for number in range(count)]
    folder = home / "manifests" / "scale"
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Any] = []
    for name in tables:
        if name.name in existing:
            continue
        spark.sql(f"CREATE TABLE {name.sql} ({ddl}) USING iceberg PARTITIONED BY ({SMALL.partitioned_by})")
        java_table = load_java_table(spark, name)
        written = written or list(write_manifests(SMALL, columns, folder, empty_manifest(spark, java_table, folder)))
        append_manifests(spark, java_table, SMALL, iter(written))
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "lake"])
    parser.add_argument("--home", type=Path, default=Path(".planning-health/benchmarks"))
    parser.add_argument("--size", choices=SIZES, default="1m")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tables", type=int, default=500)
    options = parser.parse_args()
    home = options.home.resolve()
    spark = session(home)
    try:
        if options.what == "table":
            measure_table(spark, home, SIZES[options.size], options.rounds)
        else:
            measure_lake(spark, home, options.tables)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
