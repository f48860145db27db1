"""Measures one large table and a whole lake, side by side with Iceberg's own metadata tables.

``python -m benchmarks.scale table --size 1m`` records a table of a million files in 5,000 manifests, and reads the same
columns through ``.manifests`` and ``.entries`` in the same warm session, where Spark computes them and keeps nothing.
Then the weekly steps run on the table, each in a process of its own, as in Airflow.
``python -m benchmarks.scale lake --tables 500`` runs the weekly steps on so many tables. Manifests are generated; data
files do not exist. Tables are made once and kept below ``--home``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.planning.lake import (
    Shape,
    append_manifests,
    create_table,
    ensure_table,
    generated_manifests,
    session,
    settings,
)
from benchmarks.planning.manifests import table_columns
from benchmarks.planning.planners import timed
from benchmarks.usage import Usage, heap_in_use

from planning_health.identifiers import TableName
from planning_health.metadata import load
from planning_health.metadata.record_spark import record_with_spark
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


class Rounds:
    """What the rounds of one way of reading a table took; the first warms Spark up and does not count."""

    def __init__(self) -> None:
        self.all: list[Usage] = []

    def run(self, work: Callable[[], Any]) -> None:
        with Usage() as usage:
            work()
        self.all.append(usage)

    def median(self, what: str) -> float:
        return statistics.median(float(getattr(usage, what)) for usage in self.all[1:])

    def __str__(self) -> str:
        driver, jvm, workers = (
            max(getattr(usage, part) for usage in self.all) for part in ("driver", "jvm", "workers")
        )
        return (
            f"{self.median('seconds'):.1f} s, {self.median('processor'):.1f} s of processors; MB at most: driver's "
            f"Python {driver:,.0f} (before {self.all[0].before:,.0f}), JVM {jvm:,.0f}, Python workers {workers:,.0f}"
        )


def measure_table(spark: SparkSession, home: Path, shape: Shape, rounds: int) -> None:
    """Prints time and memory of the recording, of Iceberg's metadata tables, and of each weekly step."""
    made = timed(ensure_table, spark, shape, home)[0]
    print(f"{shape.files:,} files in {shape.manifests:,} manifests, made in {made:.0f} s")
    ours, theirs, heap = Rounds(), Rounds(), heap_in_use(spark)
    folder = str(home / f"recording-{shape.files}")
    for _ in range(rounds + 1):
        ours.run(lambda: record_with_spark(spark, shape.name, folder, queried=QUERIED))
        theirs.run(lambda: _scan_both(spark, shape.name, shape))
    print(f"  recording: {ours}")
    print(f"  .manifests and .entries: {theirs}")
    print(f"  recording / both: {_ratios(ours, theirs)}; heap {heap:,.0f} -> {heap_in_use(spark):,.0f} MB")
    _load(folder, shape)
    document, run = settings(home), RunFolder(str(home), "benchmark", f"table-{shape.files}")
    start_run(document, run)
    with Usage() as usage:
        measure(document, run, [shape.name], spark=spark)
    print(f"  measure, Iceberg's own planning included: {usage.seconds:.1f} s, {usage.processor:.1f} s of processors")
    for step in ("validate", *(step.__name__ for step in STEPS)):
        seconds, processor, peak = _in_a_process(step, home, run.run_id, None if step == "validate" else shape.name)
        print(f"  {step}: {seconds:.1f} s, {processor:.1f} s of processors, {peak:,.0f} MB at most")


def _ratios(ours: Rounds, theirs: Rounds) -> str:
    by_clock, by_processors = (ours.median(what) / theirs.median(what) for what in ("seconds", "processor"))
    return f"{by_clock:.2f} of the seconds, {by_processors:.2f} of the processor seconds"


def _load(folder: str, shape: Shape) -> None:
    with Usage() as usage:
        metadata = load(folder)
    if (len(metadata.data_files), len(metadata.manifests)) != (shape.files, shape.manifests):
        raise SystemExit(f"recorded {len(metadata.data_files)} files in {len(metadata.manifests)} manifests")
    stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    print(
        f"  loading: {usage.processor:.1f} s of processors, {usage.driver - usage.before:,.0f} MB at most; a file "
        f"takes {metadata.data_files.nbytes / shape.files:,.0f} bytes of memory, {stored / shape.files:,.0f} on disk"
    )


def _in_a_process(step: str, home: Path, run_id: str, table: TableName | None) -> tuple[float, float, float]:
    """Seconds and processor seconds of a step without its imports, and the most MB that its process had."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_step, (step, home, run_id, table))


def _step(name: str, home: Path, run_id: str, table: TableName | None) -> tuple[float, float, float]:
    document, run = settings(home), RunFolder(str(home), "benchmark", run_id)
    work = partial(validate, document, run)
    if table is not None:
        work = partial({step.__name__: step for step in STEPS}[name], document, run, table)
    with Usage() as usage:
        envelope = work()
    if envelope.status != "ok":
        raise SystemExit(f"{name} of {table}: {envelope.reason}")
    return usage.seconds, usage.processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    with Usage() as ours:
        envelope = measure(document, folder, tables, spark=spark)
    if envelope.headline["tables_failed"]:
        raise SystemExit(f"{envelope.headline['tables_failed']} tables were not measured")
    _for_each(lambda table: _scan_both(spark, table, SMALL), tables[:5])
    with Usage() as theirs:
        _for_each(lambda table: _scan_both(spark, table, SMALL), tables)
    print(f"{count} tables; seconds by the clock, of processors, and MB of the driver's Python at most")
    print(f"  .manifests and .entries of each: {_told(theirs)}")
    print(f"  measure: {_told(ours)}")
    steps: dict[str, Callable[[], Any]] = {"validate": lambda: validate(document, folder)}
    steps |= {step.__name__: partial(_for_each, partial(step, document, folder), tables) for step in STEPS}
    steps |= {step.__name__: partial(step, document, folder) for step in (append_history, report)}
    for name, step in steps.items():
        with Usage() as usage:
            step()
        print(f"  {name}: {_told(usage)}")
    page = home / "reports" / "latest" / "index.html"
    print(f"report {page.stat().st_size / 2**20:.1f} MB")


def _told(usage: Usage) -> str:
    return f"{usage.seconds:.0f} s, {usage.processor:.0f} s, {usage.driver:,.0f} MB"


def _for_each(step: Callable[[TableName], Any], tables: list[TableName]) -> None:
    for table in tables:
        step(table)


def _scan_both(spark: SparkSession, name: TableName, shape: Shape) -> None:
    _scan(spark, name, "manifests", ("*",))
    _scan(spark, name, "entries", _entry_columns(shape))


def _small_tables(spark: SparkSession, home: Path, count: int) -> list[TableName]:
    """Tables that share the generated manifests: their metadata is what is measured."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS bench.scale")
    existing = {row.tableName for row in spark.sql("SHOW TABLES IN bench.scale").collect()}
    tables = [TableName("bench", ("scale",), f"table_{number:04}") for number in range(count)]
    folder = home / "manifests" / "scale"
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Any] = []
    for name in tables:
        if name.name in existing:
            continue
        java_table = create_table(spark, name, SMALL)
        written = written or list(generated_manifests(spark, java_table, SMALL, folder))
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
