"""The exercises of docs/exercises.md: both planners agree, what the document says holds, its tables are up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from docs.examples import exercises
from docs.examples.exercises import Counters, Measured, Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def results(spark: SparkSession, settings: SettingsDocument) -> Results:
    return exercises.run(spark, settings)


def counted(state: Measured) -> list[Counters]:
    return [plan.measured for plan in state.plans]


def files(state: Measured) -> list[int]:
    return [plan.measured.files for plan in state.plans]


def manifests(state: Measured) -> list[int]:
    return [plan.measured.manifests_scanned for plan in state.plans]


def test_every_count_is_what_iceberg_measures(results: Results) -> None:
    plans = results.plans
    assert len(plans) > 60
    assert [plan for plan in plans if plan.simulated != plan.measured] == []


def test_the_document_shows_these_results(results: Results) -> None:
    shown = exercises.blocks_of(exercises.DOCUMENT.read_text())
    rendered = exercises.render(results)
    assert shown.keys() == rendered.keys()
    for name, block in rendered.items():
        if not name.startswith(exercises.ONCE):
            assert shown[name] == block, f"{name} is out of date: run python docs/examples/exercises.py"


def test_a_narrower_query_opens_fewer_manifests_and_reads_fewer_files(results: Results) -> None:
    assert manifests(results.sales)[:3] == [12, 2, 2]
    assert files(results.sales)[:3] == [60, 2, 1]


def test_an_aged_table_is_in_both_lists_and_a_rewrite_empties_them(results: Results) -> None:
    assert len(results.aged_lists["by_deleted_ratio"]) == 5
    assert results.aged_lists["in_both"] == [item["path"] for item in results.aged_lists["by_partition_range"]]
    assert not any(results.rewritten_lists.values())
    fresh, aged = manifests(results.fresh), manifests(results.aged)
    assert all(before < after for before, after in zip(fresh, aged, strict=True))
    assert files(results.aged)[2] == 0


def test_without_statistics_files_are_skipped_by_partition_only_and_that_is_predicted(results: Results) -> None:
    assert manifests(results.without_statistics) == manifests(results.sales)
    assert files(results.sales) == [60, 2, 1, 30]
    assert files(results.without_statistics) == [60, 2, 2, 60]
    assert results.predicted_without_statistics == counted(results.without_statistics)
    assert results.without_statistics.manifest_bytes < results.sales.manifest_bytes


def test_short_bounds_skip_fewer_files_for_a_prefix_and_that_is_predicted(results: Results) -> None:
    assert {mode: files(state) for mode, state in results.agents.items()} == {
        "truncate(4)": [1, 6, 6, 8],
        "truncate(16)": [1, 4, 2, 4],
        "full": [1, 4, 1, 4],
    }
    assert results.predicted_agents == {mode: counted(state) for mode, state in results.agents.items()}


def test_trimming_whole_bounds_gives_what_was_written_with_short_ones(results: Results) -> None:
    assert set(results.trimmed_agents) == {"truncate(4)", "truncate(16)"}
    for mode, trimmed in results.trimmed_agents.items():
        assert counted(trimmed) == counted(results.agents[mode]) == results.predicted_agents[mode]
        assert trimmed.manifest_bytes < results.agents["full"].manifest_bytes


def test_the_checklist_halves_metadata_and_costs_only_the_other_columns(results: Results) -> None:
    assert results.wide_findings == ["heavy_statistics"]
    assert results.checked_findings == []
    assert results.checked.manifest_bytes < results.wide.manifest_bytes / 2
    assert counted(results.checked)[:2] == counted(results.wide)[:2]
    assert files(results.checked)[2] > files(results.wide)[2]


def test_buckets_skip_manifests_for_equality_only_and_only_once_they_are_clustered(results: Results) -> None:
    equalities = slice(len(exercises.EQUALITIES))
    ranges = slice(len(exercises.EQUALITIES), None)
    assert set(manifests(results.by_day)[equalities]) == {8}
    assert manifests(results.by_day)[ranges] == [1, 3, 1, 8, 8]
    assert set(manifests(results.by_customer)) == {8}
    assert set(manifests(results.clustered)[equalities]) == {1}
    assert set(manifests(results.clustered)[ranges]) == {8}
    assert files(results.clustered) == files(results.by_customer)
    assert max(files(results.by_customer)[equalities]) == 8  # one bucket in each of eight commits


def test_deletes_pile_up_until_compaction_and_dangling_ones_until_they_are_removed(results: Results) -> None:
    everything = [counted(state)[0] for state in (results.with_deletes, results.compacted, results.without_deletes)]
    assert [plan.files for plan in everything] == [16, 4, 4]
    assert [plan.deletes_indexed for plan in everything] == [24, 4, 0]
    assert [plan.deletes_attached for plan in everything] == [96, 4, 0]
