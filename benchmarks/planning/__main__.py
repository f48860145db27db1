"""Compares the simulation with Iceberg Java and PyIceberg in one run; ``python -m benchmarks.planning --help``.

Every plan is checked: all give the same files, and Java's ScanReport the same counters. Java plans in its faster way
of the two, with or without its worker pool, which is found on the first predicates.
"""

from __future__ import annotations

import argparse
import resource
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.planning.lake import Shape, ensure_table, session, settings
from benchmarks.planning.planners import JavaPlanner, counters, pyiceberg_plan, same_plan, timed
from benchmarks.planning.predicates import COLUMNS, FEWER_COLUMNS, BenchmarkPredicate, predicates

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.metadata.model import PlanningMetadata
from planning_health.metadata.record import record_with_pyiceberg
from planning_health.planning.expressions import Expression
from planning_health.planning.predicates import parse_where
from planning_health.planning.scan import ScanPlanner

SHAPES = {
    "10k": Shape(10_000, 94, 10),
    "100k": Shape(100_000, 94, 80),
    "1m": Shape(1_000_000, 94, 200),
}
REPLAYS = 5
"""The simulation's time of a predicate is the median of so many replays for each of Java's."""
SAMPLE = 20
"""So many predicates find Java's faster way and have its combined tasks timed; one in five skips manifests."""


@dataclass
class Timings:
    """Seconds of one predicate: one number a run."""

    predicate: BenchmarkPredicate
    expression: Expression
    ours: list[float] = field(default_factory=list)
    ours_tasks: list[float] = field(default_factory=list)
    java: list[float] = field(default_factory=list)
    java_tasks: list[float] = field(default_factory=list)
    opens_all: bool = False

    @property
    def ratio(self) -> float:
        return statistics.median(self.java) / statistics.median(self.ours)

    @property
    def tasks_ratio(self) -> float:
        return statistics.median(self.java_tasks) / statistics.median(self.ours_tasks)


@dataclass(frozen=True)
class Table:
    """A generated table and the columns that its predicates are about."""

    home: Path
    shape: Shape

    @property
    def columns(self) -> tuple[str, ...]:
        return FEWER_COLUMNS if self.shape.files >= 1_000_000 else COLUMNS

    def record(self, columns: Iterable[str]) -> PlanningMetadata:
        catalog = load_pyiceberg_catalog(settings(self.home), "bench")
        return record_with_pyiceberg(catalog, self.shape.name, queried=columns)

    def parsed(self, metadata: PlanningMetadata, count: int) -> list[Timings]:
        chosen = predicates(count, self.columns)
        return [Timings(item, parse_where(item.where, metadata.info.schema).expression) for item in chosen]


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def replay(planner: ScanPlanner, timings: list[Timings]) -> float:
    """Plan all predicates once with the simulation; return the seconds without combined tasks."""
    for item in timings:
        seconds, scan = timed(planner.plan, item.expression)
        item.ours.append(seconds)
        item.ours_tasks.append(seconds + timed(scan.combined_tasks)[0])
    return sum(item.ours[-1] for item in timings)


def faster_with_pool(java: JavaPlanner, timings: list[Timings]) -> bool:
    """Warm Java up, and find whether its worker pool makes it faster here."""
    java.plan(timings[0].expression, pool=True)
    seconds = {pool: sum(java.plan(item.expression, pool=pool).seconds for item in timings) for pool in (False, True)}
    print(f"Java, {len(timings)} predicates: {seconds[False]:.1f} s, with its worker pool {seconds[True]:.1f} s")
    return seconds[True] < seconds[False]


def replay_java(java: JavaPlanner, planner: ScanPlanner, timings: list[Timings], *, pool: bool) -> None:
    """Plan all predicates once with Java and compare each result with the simulation's."""
    for number, item in enumerate(timings):
        plan = java.plan(item.expression, pool=pool)
        item.java.append(plan.seconds)
        item.opens_all = plan.counters["skipped_data_manifests"] == 0
        scan = planner.plan(item.expression)
        if counters(scan.report) != plan.counters or not same_plan(scan, java.paths(plan)):
            raise SystemExit(f"the plans differ: {item.predicate.where}")
        if number < SAMPLE:
            item.java_tasks.append(java.combined(item.expression, pool=pool))


def spread(found: list[float]) -> str:
    return f"{statistics.median(found):,.0f} x (least {min(found):,.0f} x, {len(found)} predicates)" if found else "-"


def compare(table: Table, runs: int, pyiceberg: int) -> None:
    spark = session(table.home)
    java = JavaPlanner(spark, ensure_table(spark, table.shape, table.home))
    first, metadata = timed(table.record, table.columns)  # the first run loads the compiled decoder
    record_seconds, metadata = timed(table.record, table.columns)
    planner, timings = ScanPlanner(metadata), table.parsed(metadata, 100)
    cold = replay(planner, table.parsed(metadata, 100))  # decodes the columns; not among the warm times
    shape = table.shape
    print(f"{shape.files:,} files x {shape.columns} columns in {shape.manifests} manifests; {len(timings)} predicates")
    print(f"recording {record_seconds:.2f} s, first in the process {first:.2f} s; first replay {cold:.2f} s")
    print(f"peak memory of recording and simulation: {peak_mb():,.0f} MB", flush=True)
    pool = faster_with_pool(java, timings[:SAMPLE])
    for _ in range(runs):
        replay_java(java, planner, timings, pool=pool)
        for _ in range(REPLAYS):
            replay(planner, timings)
    theirs = sum(statistics.median(item.java) for item in timings)
    ours = sum(statistics.median(item.ours) for item in timings)
    print(f"all predicates: Java {theirs:.1f} s, simulation {ours:.3f} s: {theirs / ours:,.0f} x")
    for title, every in (("opens every manifest", True), ("skips manifests", False)):
        chosen = [item for item in timings if item.opens_all is every]
        print(f"  Java {title}: {spread([item.ratio for item in chosen])}")
        print(f"    combined tasks: {spread([item.tasks_ratio for item in chosen if item.java_tasks])}")
    print(f"  with recording, all {len(timings)}: {theirs / (record_seconds + cold):,.0f} x", flush=True)
    report_single(table, timings, java, pool=pool)
    report_pyiceberg(table, timings[:pyiceberg], planner)


def report_single(table: Table, timings: list[Timings], java: JavaPlanner, *, pool: bool) -> None:
    """Print what one predicate takes when the picture is recorded for it alone."""
    item = next(item for item in timings if item.opens_all)
    column = item.predicate.where.split()[0]
    ours, theirs = [], []
    for _ in range(5):
        theirs.append(java.plan(item.expression, pool=pool).seconds)
        ours.append(timed(lambda: ScanPlanner(table.record([column])).plan(item.expression))[0])
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"  one predicate with recording: {ratio:.2f} x Java's time", flush=True)


def report_pyiceberg(table: Table, timings: list[Timings], planner: ScanPlanner) -> None:
    opened = load_pyiceberg_catalog(settings(table.home), "bench").load_table(table.shape.name.identifier)
    found = []
    for item in timings:
        seconds, paths = timed(pyiceberg_plan, opened, item.expression)
        if not same_plan(planner.plan(item.expression), sorted(paths)):
            raise SystemExit(f"PyIceberg plans other files: {item.predicate.where}")
        found.append(seconds / statistics.median(item.ours))
    print(f"  PyIceberg: {spread(found)}")


def grow(table: Table) -> None:
    """Print the time of 1, 10 and 100 predicates and the recording of their columns."""
    seconds, metadata = timed(table.record, table.columns)
    for count in (1, 10, 100):
        planner, timings = ScanPlanner(metadata), table.parsed(metadata, count)
        cold = replay(planner, timings)
        warm = min(replay(planner, timings) for _ in range(3))
        print(
            f"{table.shape.files:>9,} files, {count:>3} predicates: recording {seconds:.2f} s, "
            f"first {cold * 1e3:.0f} ms, warm {warm * 1e3:.1f} ms, peak {peak_mb():,.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning", description=__doc__)
    parser.add_argument("task", choices=("compare", "grow", "generate"), nargs="?", default="compare")
    parser.add_argument("--size", choices=tuple(SHAPES), default="100k", help="files of the table")
    parser.add_argument("--home", type=Path, default=Path(".planning-health/benchmarks"), help="where tables are kept")
    parser.add_argument("--runs", type=int, default=1, help="replays, in turn with Java")
    parser.add_argument("--pyiceberg", type=int, default=3, help="predicates that PyIceberg plans as well")
    arguments = parser.parse_args()
    table = Table(arguments.home.absolute(), SHAPES[arguments.size])
    if arguments.task == "compare":
        compare(table, arguments.runs, arguments.pyiceberg)
    elif arguments.task == "grow":
        grow(table)
    else:
        seconds, _ = timed(ensure_table, session(table.home), table.shape, table.home)
        print(f"{table.shape.name}: {seconds:.0f} s")


if __name__ == "__main__":
    main()
