"""Compares a trim with Iceberg's rewrite_manifests, and planning before and after; ``python -m benchmarks.trim``.

Both rewrite the same snapshot of one table in one warm session, in turns; each is rolled back before the next. Every
column has random statistics, and files are dealt to manifests at random, so that each manifest spans all days: the
state that a repair is for. Data files do not exist; see ``benchmarks.planning.manifests``.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.planning.lake import Shape, ensure_table, session
from benchmarks.planning.planners import JavaPlanner, timed

from planning_health.maintenance.java_table import RUN_ID_PROPERTY, current_snapshot_id
from planning_health.maintenance.layout import layout_of
from planning_health.maintenance.predicted_state import predicted_state
from planning_health.maintenance.rewrite import RewriteTask, rewrite_with_iceberg
from planning_health.maintenance.trim.metrics_config import trim_rule
from planning_health.maintenance.trim.prediction import TrimPrediction, predict_trim
from planning_health.maintenance.trim.rewrite import trim_manifests
from planning_health.maintenance.trim.verification import compare_trimmed
from planning_health.metadata import PlanningMetadata, SnapshotChoice, load
from planning_health.metadata.record_spark import load_java_table, record_with_spark
from planning_health.planning.predicates import parse_where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT = ("ts", "l00", "d00", "s00", "t00", "l01")
PREFIX = "write.metadata.metrics."
METRICS = {f"{PREFIX}default": "none"} | {f"{PREFIX}column.{name}": "truncate(16)" for name in KEPT}
ALL = {f"{PREFIX}default": "full"}
QUERIES = {
    "one day": "ts >= TIMESTAMP_NTZ '2024-07-04 00:00:00' AND ts < TIMESTAMP_NTZ '2024-07-05 00:00:00'",
    "a kept column": "l01 BETWEEN 500000000000000 AND 500100000000000",
    "a trimmed column": "l05 BETWEEN 500000000000000 AND 500100000000000",
}
PLANS = 5
SCATTERED = "scattered"


@dataclass(frozen=True)
class Table:
    """The table, which each rewrite finds in the same snapshot."""

    spark: SparkSession
    shape: Shape
    target: int

    @property
    def java(self) -> Any:
        return load_java_table(self.spark, self.shape.name)

    def record(self) -> PlanningMetadata:
        with tempfile.TemporaryDirectory() as folder:
            choice = SnapshotChoice(snapshot_id=current_snapshot_id(self.java))
            record_with_spark(self.spark, self.shape.name, folder, queried=KEPT, choice=choice)
            return load(folder)

    def roll_back(self, snapshot_id: int) -> None:
        self.java.manageSnapshots().rollbackTo(snapshot_id).commit()

    def stock(self) -> None:
        rewrite_with_iceberg(self.spark, RewriteTask(self.shape.name, 0, (), "benchmark"), self.java)

    def trim(self, metadata: PlanningMetadata) -> TrimPrediction:
        prediction = predict_trim(metadata, 0, self.target, (), trim_rule(metadata, METRICS))
        self._commit(prediction)
        return prediction

    def scatter(self) -> None:
        """Deals the files to as many manifests as there are, at random; statistics stay."""
        if self.java.currentSnapshot().summary().get(RUN_ID_PROPERTY) == SCATTERED:
            return
        metadata = self.record()
        prediction = predict_trim(metadata, 0, self.target, (), trim_rule(metadata, ALL))
        rows = np.random.default_rng(7).permutation(len(prediction.replacement.entries))
        dealt = replace(prediction.replacement, groups=np.array_split(rows, self.shape.manifests))
        self._commit(replace(prediction, replacement=dealt, metadata=predicted_state(metadata, [dealt])), SCATTERED)

    def _commit(self, prediction: TrimPrediction, run_id: str | None = None) -> None:
        task = RewriteTask(self.shape.name, 0, (), run_id or f"benchmark-{uuid.uuid4()}")
        trim_manifests(self.spark, self.java, prediction, task.summary())

    def plan(self, metadata: PlanningMetadata) -> dict[str, tuple[float, int]]:
        """Each query's warm seconds, a median in the faster of Java's two ways, and the files that it reads."""
        found = {}
        for name, where in QUERIES.items():
            expression = parse_where(where, metadata.info.schema).expression
            planner = JavaPlanner(self.spark, self.java)
            ways = [[planner.plan(expression, pool=pool) for _ in range(PLANS)] for pool in (False, True)]
            seconds = min(statistics.median(plan.seconds for plan in plans) for plans in ways)
            found[name] = seconds, ways[0][-1].counters["result_data_files"]
        return found


def compare(table: Table, rounds: int) -> None:
    """Runs both in turns after a warm-up of each, and prints times, sizes and plans."""
    base = current_snapshot_id(table.java)
    recording, before = timed(table.record)
    recording = min(recording, timed(table.record)[0])
    planned = table.plan(before)
    stock, trim = [], []
    for _ in range(rounds + 1):
        stock.append(timed(table.stock)[0])
        rewritten = table.record()
        table.roll_back(base)
        seconds, prediction = timed(table.trim, before)
        trim.append(seconds)
        after = table.record()
        again = table.plan(after)
        table.roll_back(base)
    report = compare_trimmed(before, after, 0, prediction.rule)
    if not report.success:
        raise SystemExit(f"the trim is not what it should be: {report.failures()}")
    _show(table, before, rewritten, prediction, after)
    _show_times(stock[1:], trim[1:], recording)
    for name, (seconds, files) in planned.items():
        later, files_later = again[name]
        print(
            f"{name}: {seconds * 1000:.0f} → {later * 1000:.0f} ms ({seconds / later:.1f} ×), {files} → {files_later}"
        )


def _show(
    table: Table,
    before: PlanningMetadata,
    rewritten: PlanningMetadata,
    prediction: TrimPrediction,
    after: PlanningMetadata,
) -> None:
    states = {"before": before, "stock": rewritten, "trim, predicted": prediction.metadata, "trim": after}
    for name, state in states.items():
        layout = layout_of(state)
        print(f"{name}: {layout.manifests} manifests, {layout.metadata_bytes / 1e6:.1f} MB (target {table.target})")


def _show_times(stock: list[float], trim: list[float], recording: float) -> None:
    ratio = statistics.median(trim) / statistics.median(stock)
    print(f"stock: {', '.join(f'{seconds:.1f}' for seconds in stock)} s")
    print(f"trim: {', '.join(f'{seconds:.1f}' for seconds in trim)} s: {ratio:.2f} ×")
    print(f"recording, before the trim: {recording:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--manifests", type=int, default=80)
    parser.add_argument("--target", type=int, default=8 * 1024 * 1024, help="target size of a manifest in bytes")
    parser.add_argument("--rounds", type=int, default=3, help="after a warm-up of both")
    parser.add_argument("--home", type=Path, default=Path(".planning-health/benchmarks/trim"))
    options = parser.parse_args()
    home = options.home.resolve()
    spark = session(home)
    shape = Shape(options.files, 94, options.manifests)
    ensure_table(spark, shape, home)
    table = Table(spark, shape, options.target)
    table.scatter()
    compare(table, options.rounds)
    spark.stop()


if __name__ == "__main__":
    main()
