"""Layout advice on copies of three demonstration tables: each candidate is made, and opens what was predicted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from planning_health.advice.layout import LayoutAdvice, PlanningPrice, advise_layout
from planning_health.advice.observed import Observation, ObservedFilter, observe
from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.demo.tables import DEMO_TABLES, TableWriter
from planning_health.identifiers import TableName
from planning_health.maintenance import commands
from planning_health.maintenance.prediction import DEFAULT_TARGET_SIZE
from planning_health.metadata import PlanningMetadata, record_with_pyiceberg
from planning_health.metadata.planning_times import measure_planning
from planning_health.metadata.record_spark import load_java_table
from planning_health.planning.expressions import to_iceberg_json
from planning_health.planning.predicates import parse_where
from planning_health.planning.scan import ScanPlanner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

KB = 1024
TARGETS = (12 * KB, 16 * KB, 24 * KB, 40 * KB, 80 * KB, DEFAULT_TARGET_SIZE)
WORKLOADS = {
    "orders": {"ordered_on = DATE'2026-04-20'": 8.0, "ordered_on >= DATE'2026-05-01'": 1.0},
    "customers": {"customer_id = 17": 5.0, "customer_id IN (3, 2900)": 2.0, "tier = 'gold'": 1.0},
    "page_views": {"viewed_at < TIMESTAMP'2026-02-10'": 3.0, "page = '/product/7'": 1.0},
}
PRICE = PlanningPrice(open_ms=0.4, decode_ms_per_mb=40.0, list_ms=0.02, threads=1)
"""Entries of so small tables are decoded in no time: a dearer megabyte stands for wider tables."""


class Copy:
    """A demonstration table of one's own."""

    def __init__(self, spark: SparkSession, settings: SettingsDocument, name: str) -> None:
        self.spark, self.name = spark, TableName("lake", ("test_layout",), name)
        demo = next(table for table in DEMO_TABLES if table.identifier[1] == name)
        spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.test_layout")
        spark.sql(
            f"CREATE TABLE {self.name.sql} ({demo.columns}) USING iceberg PARTITIONED BY ({demo.partitioned_by}) "
            "TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')"
        )
        demo.fill(TableWriter(spark, self.name))
        self._catalog = load_pyiceberg_catalog(settings, "lake")  # there once the first table is

    def recorded(self) -> PlanningMetadata:
        return record_with_pyiceberg(self._catalog, self.name, queried=["tier", "page"])

    def rewrite(self, advice: LayoutAdvice, candidate: int, metadata: PlanningMetadata) -> None:
        layout = advice.candidates[candidate]
        table = load_java_table(self.spark, self.name)
        table.manageSnapshots().rollbackTo(metadata.info.snapshot_id).commit()  # each starts from what was measured
        target = {"commit.manifest.target-size-bytes": str(layout.target_bytes)}
        self.spark.sql(commands.property_changes(self.name, target)[0])
        for spec_id in sorted(metadata.info.specs):
            self.spark.sql(commands.rewrite_manifests(self.name, spec_id, layout.sort_by)).collect()

    def opened_by_iceberg(self, filters: tuple[ObservedFilter, ...]) -> list[int]:
        """The manifests that Iceberg's own planning scans for each filter."""
        asked: list[Any] = [(item.name, to_iceberg_json(item.expression)) for item in filters]
        times = measure_planning(self.spark, load_java_table(self.spark, self.name), asked)
        return [time.counters["scanned-data-manifests"] for time in times]


def rank_correlation(predicted: list[float], measured: list[float]) -> float:
    ranks = [[sum(other < value for other in values) for value in values] for values in (predicted, measured)]
    return float(np.corrcoef(ranks)[0, 1])


@pytest.mark.spark
@pytest.mark.parametrize("name", list(WORKLOADS))
def test_candidates_rank_as_predicted_and_the_advised_one_opens_least(
    spark: SparkSession, settings: SettingsDocument, name: str
) -> None:
    copy = Copy(spark, settings, name)
    before = copy.recorded()
    schema = before.info.schema
    filters = observe(
        copy.name,
        schema,
        [
            Observation("test", copy.name.dotted, weight, filter=parse_where(where, schema).expression)
            for where, weight in WORKLOADS[name].items()
        ],
    ).filters
    advice = advise_layout(before, filters, price=PRICE, targets=TARGETS)
    assert advice is not None
    assert len(advice.candidates) >= 5
    weights = sum(item.weight for item in filters)
    predicted, made = [], []
    for number, layout in enumerate(advice.candidates):
        copy.rewrite(advice, number, before)
        state = copy.recorded()
        planner = ScanPlanner(state)
        scans = [planner.plan(item.expression) for item in filters]
        assert copy.opened_by_iceberg(filters) == [scan.report.scanned_data_manifests for scan in scans]
        costs = [PRICE.planning_ms(state, scan.scanned_manifests) for scan in scans]
        made.append(sum(item.weight * cost for item, cost in zip(filters, costs, strict=True)) / weights)
        predicted.append(layout.planning_ms)
        assert len(state.manifests) == pytest.approx(layout.manifests, abs=1 + layout.manifests // 8)
    facts = json.dumps([predicted, made])
    assert rank_correlation(predicted, made) >= 0.9, facts
    default = next(n for n, item in enumerate(advice.candidates) if item.target_bytes == DEFAULT_TARGET_SIZE)
    best = advice.candidates.index(advice.advised) if advice.advised else 0
    assert made[best] <= made[default] * 1.01, facts
