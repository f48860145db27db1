"""Layout advice against fact: candidate manifest layouts are predicted, made, and planned in Iceberg Java.

``python -m benchmarks.layout`` makes three tables of generated manifests, rewrites each into every candidate layout
with Iceberg's own ``rewrite_manifests``, and plans a workload in a warm session, one manifest after another. It prints
predicted and measured times, their rank correlation, and what the prices of planning are on this machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.planning.lake import Shape, ensure_table, session, settings
from benchmarks.planning.planners import JavaPlanner
from rich.console import Console
from rich.table import Table

from planning_health.advice.layout import Layout, LayoutAdvice, PlanningPrice, advise_layout
from planning_health.advice.observed import Observation, ObservedFilter, ObservedWorkload, observe
from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.maintenance import commands
from planning_health.maintenance.prediction import DEFAULT_TARGET_SIZE, TARGET_SIZE_PROPERTY
from planning_health.metadata import PlanningMetadata, record_with_pyiceberg
from planning_health.planning.predicates import parse_where
from planning_health.planning.scan import ScanPlanner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 15
WARM_UP = 3
KB = 1024
ONE_THREAD = PlanningPrice(threads=1)
console = Console(width=150)


@dataclass(frozen=True)
class Case:
    """A table, its workload, and the target sizes that are compared."""

    name: str
    shape: Shape
    wheres: dict[str, float]
    targets: tuple[int, ...]


CASES = (
    Case(
        "one day of many",
        Shape(20_000, 94, 40),
        {f"ts >= TIMESTAMP_NTZ'2024-{m:02}-10' AND ts < TIMESTAMP_NTZ'2024-{m:02}-11'": 1.0 for m in range(1, 13)},
        tuple(size * KB for size in (512, 1024, 2048, 4096, 8192, 16384)),
    ),
    Case(
        "a key in one of 16 buckets",
        Shape(20_000, 94, 40, buckets=16),
        {f"l00 = {key}": 1.0 for key in np.random.default_rng(0).integers(0, 10**15, 6)},
        tuple(size * KB for size in (1024, 2048, 8192)),
    ),
    Case(
        "mostly every file",
        Shape(40_000, 5, 400),
        {"d00 > 999000": 5.0, "l00 < 1000000000": 5.0, "ts < TIMESTAMP_NTZ'2024-02-01'": 1.0},
        tuple(size * KB for size in (6, 9, 14, 22, 40, 8192)),
    ),
)


@dataclass(frozen=True)
class Measured:
    """One candidate: as predicted, and as it is."""

    layout: Layout
    manifests: int
    opened: float
    planning_ms: float


def measure(
    spark: SparkSession, java_table: Any, filters: Sequence[ObservedFilter], snapshot_ids: Sequence[int]
) -> list[tuple[float, float]]:
    """For each snapshot the mean planning time of a scan in ms and the manifests that it opens.

    Snapshots take turns in changing order, so that whatever else the machine does meets all of them; each filter
    counts by the median of its runs.
    """
    java_table.refresh()
    planner = JavaPlanner(spark, java_table)
    times = np.zeros((len(snapshot_ids), len(filters), RUNS))
    opened = np.zeros((len(snapshot_ids), len(filters)))
    for run in range(-WARM_UP, RUNS):
        for row in np.random.default_rng(run + WARM_UP).permutation(len(snapshot_ids)):
            for column, item in enumerate(filters):
                plan = planner.plan(item.expression, pool=False, snapshot_id=snapshot_ids[row])
                opened[row, column] = plan.counters["scanned_data_manifests"]
                if run >= 0:
                    times[row, column, run] = 1000 * plan.seconds
    weights = np.array([item.weight for item in filters]) / sum(item.weight for item in filters)
    means = zip(np.median(times, axis=2) @ weights, opened @ weights, strict=True)
    return [(float(planning_ms), float(manifests)) for planning_ms, manifests in means]


def apply(spark: SparkSession, shape: Shape, layout: Layout) -> None:
    """Set the target size and rewrite, with Iceberg's own procedure."""
    target = {TARGET_SIZE_PROPERTY: str(layout.target_bytes)}
    for statement in commands.property_changes(shape.name, target):
        spark.sql(statement)
    spark.sql(commands.rewrite_manifests(shape.name, 0, layout.sort_by)).collect()


def recorded(home: Path, shape: Shape) -> PlanningMetadata:
    catalog = load_pyiceberg_catalog(settings(home), "bench")
    return record_with_pyiceberg(catalog, shape.name, queried=["d00", "l00"])


def workload(metadata: PlanningMetadata, wheres: dict[str, float]) -> ObservedWorkload:
    name, schema = metadata.info.name, metadata.info.schema
    return observe(
        name,
        schema,
        [
            Observation("benchmark", name.dotted, weight, filter=parse_where(where, schema).expression)
            for where, weight in wheres.items()
        ],
    )


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Spearman's, with mean ranks for equal values."""
    return float(np.corrcoef(_ranks(predicted), _ranks(measured))[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    rounded = [round(value, 6) for value in values]
    return [
        sum(other < value for other in rounded) + (sum(other == value for other in rounded) - 1) / 2
        for value in rounded
    ]


def compare(spark: SparkSession, home: Path, case: Case) -> tuple[LayoutAdvice, list[Measured], list[list[float]]]:
    """Predict the candidates, make each of them a snapshot, and measure all snapshots."""
    java_table = ensure_table(spark, case.shape, home)
    before = recorded(home, case.shape)
    filters = workload(before, case.wheres).filters
    advice = advise_layout(before, filters, price=ONE_THREAD, targets=case.targets)
    if advice is None:
        raise RuntimeError(f"{case.shape.name} has no manifests to rewrite")
    states = []
    for layout in advice.candidates:
        apply(spark, case.shape, layout)
        states.append(recorded(home, case.shape))
    measured = measure(spark, java_table, filters, [int(state.info.snapshot_id or 0) for state in states])
    found = [
        Measured(layout, len(state.manifests), opened, planning_ms)
        for layout, state, (planning_ms, opened) in zip(advice.candidates, states, measured, strict=True)
    ]
    facts = [[*_work(state, filters), item.planning_ms] for state, item in zip(states, found, strict=True)]
    return advice, found, facts


def _work(state: PlanningMetadata, filters: Sequence[ObservedFilter]) -> list[float]:
    """What a scan works through on average: manifests opened, megabytes decoded, files matched."""
    planner = ScanPlanner(state)
    size = state.manifests["uncompressed_bytes"].to_numpy() / 1e6
    scans = [planner.plan(item.expression) for item in filters]
    done = [(len(s.scanned_manifests), size[s.scanned_manifests].sum(), len(s.data_rows)) for s in scans]
    return [float(value) for value in np.average(done, axis=0, weights=[item.weight for item in filters])]


def show(case: Case, advice: LayoutAdvice, found: Sequence[Measured]) -> None:
    table = Table(title=f"{case.name}: {case.shape.files:,} files × {case.shape.columns} columns")
    for column in ("target", "sorted by", "manifests", "opened", "predicted ms", "measured ms", "of the default"):
        table.add_column(column, justify="right")
    default = next(
        item for item in found if item.layout.target_bytes == DEFAULT_TARGET_SIZE and not item.layout.sort_by
    )
    for item in found:
        mark = " (advised)" if item.layout == advice.advised else ""
        table.add_row(
            f"{item.layout.target_bytes // KB:,} KB{mark}",
            ", ".join(item.layout.sort_by) or "the spec",
            f"{item.layout.manifests} → {item.manifests}",
            f"{item.layout.opened:.1f} → {item.opened:.1f}",
            f"{item.layout.planning_ms:.1f}",
            f"{item.planning_ms:.1f}",
            f"{item.planning_ms / default.planning_ms:.2f}",
        )
    console.print(table)
    correlation = rank_correlation([m.layout.planning_ms for m in found], [m.planning_ms for m in found])
    console.print(f"rank correlation {correlation:.2f}; advice: {advice.why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path(".planning-health/benchmarks"))
    home = parser.parse_args().home.resolve()
    spark = session(home)
    facts: list[list[float]] = []
    for case in CASES:
        advice, found, rows = compare(spark, home, case)
        show(case, advice, found)
        facts += rows
    spark.stop()
    _show_prices(facts)


def _show_prices(facts: Sequence[Sequence[float]]) -> None:
    """What the times say of the prices: least squares over all candidates of all tables, relative errors."""
    measured = np.array([row[-1] for row in facts])
    shape = np.array([[1.0, *row[:-1]] for row in facts]) / measured[:, None]
    prices, *_ = np.linalg.lstsq(shape, np.ones(len(facts)), rcond=None)
    names = ("a scan", "opening a manifest", "decoding a megabyte", "a matched file")
    for name, value in zip(names, prices, strict=True):
        console.print(f"{name}: {value:.4f} ms")


if __name__ == "__main__":
    main()
