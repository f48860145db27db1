"""Predictions against what Spark then does to copies of the demonstration lake's tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from benchmarks.prediction_against_fact import SORTED, Change, Copies, off, predicates

from planning_health.identifiers import TableName
from planning_health.maintenance.rewrite import SAMPLE_SIZE, SAMPLED_ENTRIES, even_cuts
from planning_health.settings.load import DEMO_SETTINGS, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

DEMO = load_settings(DEMO_SETTINGS)


@pytest.fixture(scope="module")
def copies(spark: SparkSession, settings: SettingsDocument, demo_lake: list[TableName]) -> Copies:
    del demo_lake  # built by now
    return Copies(spark, settings)


def misses(change: Change, *, manifests: float, files: float, metadata_bytes: float = math.inf) -> list[str]:
    """The predicates whose prediction is further off than the tolerances; one manifest is always within."""
    found = []
    for fact in change.facts:
        predicted, real = fact.predicted, fact.real
        too_far = {
            "manifests": abs(predicted.manifests - real.manifests) > max(1, manifests * real.manifests),
            "files": off(predicted.data_files, real.data_files) > files,
            "metadata bytes": off(predicted.metadata_bytes, real.metadata_bytes) > metadata_bytes,
        }
        found += [f"{fact.where}: {name}: {predicted} for {real}" for name, is_off in too_far.items() if is_off]
    return found


@pytest.mark.parametrize(
    ("table", "sort_by"),
    [
        ("lake.sales.orders", []),
        ("lake.ops.tickets", []),
        ("lake.sales.customers", []),
        ("lake.ops.page_views", []),
        ("lake.sales.invoices", SORTED["lake.sales.invoices"][0]),
    ],
)
def test_a_rewrite_of_manifests_reads_what_was_predicted(copies: Copies, table: str, sort_by: list[str]) -> None:
    change = copies.rewrite_manifests(TableName.parse(table), predicates(DEMO, table), sort_by)
    assert misses(change, manifests=0.05, files=0, metadata_bytes=0.05) == []


def test_spark_samples_as_before_once_manifests_are_cut(spark: SparkSession) -> None:
    with even_cuts(spark):
        assert int(str(spark.conf.get(SAMPLE_SIZE))) == SAMPLED_ENTRIES
    assert spark.conf.get(SAMPLE_SIZE) == "100"


@pytest.mark.parametrize(
    ("table", "spec"),
    [
        ("lake.ops.page_views", "days(viewed_at)"),
        ("lake.ops.tickets", "days(opened_on)"),
        ("lake.ops.page_views", "bucket(8, visitor_id)"),
        ("lake.sales.invoices", "months(issued_on)"),
    ],
)
def test_another_spec_reads_about_what_was_predicted(copies: Copies, table: str, spec: str) -> None:
    change = copies.partition_otherwise(TableName.parse(table), predicates(DEMO, table), spec)
    assert misses(change, manifests=0.10, files=0.20) == []
