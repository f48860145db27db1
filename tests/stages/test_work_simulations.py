"""The steps that simulate assignment and plan-tasks, on tables written without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from planning_health.identifiers import TableName
from planning_health.metadata import record_with_pyiceberg, save
from planning_health.plan_tasks import OffsetToken, decode
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.measure import measure
from planning_health.stages.simulate_assignment import simulate_assignment
from planning_health.stages.simulate_plan_tasks import simulate_plan_tasks

TABLE = TableName.parse("lake.sales.skewed")
EMPTY = TableName.parse("lake.sales.empty")
ROWS = [50_000, 10, 10, 10, 50_000, 10, 10, 10]  # of each file


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    home = tmp_path_factory.mktemp("simulations")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
    catalog.create_namespace("sales")
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("batch", pa.int32())])
    properties = {"commit.manifest-merge.enabled": "false"}
    catalog.create_table("sales.empty", schema)
    table = catalog.create_table("sales.skewed", schema, properties=properties)
    for batch, rows in enumerate(ROWS):
        table.append(pa.table({"id": range(rows), "batch": pa.array([batch] * rows, pa.int32())}, schema=schema))
    folder = RunFolder(str(home), "cli", "test")
    for name in (TABLE, EMPTY):
        metadata = record_with_pyiceberg(catalog, name, queried=["id", "batch"])
        save(metadata, folder.metadata_url(name))
        folder.write_result("measurement", table=name, snapshot_id=metadata.info.snapshot_id)
    return folder


def settings_with(**sections: Any) -> SettingsDocument:
    catalogs = {"lake": {"properties": {"type": "jdbc"}}}
    return SettingsDocument.model_validate({"catalogs": catalogs, **sections})


def result(run_folder: RunFolder, kind: str, table: TableName = TABLE) -> Any:
    found = run_folder.read_result(kind, table)
    assert found is not None
    json.dumps(found.data, allow_nan=False)
    return found.data


def test_assignment_compares_strategies_for_the_whole_table(run_folder: RunFolder) -> None:
    envelope = simulate_assignment(settings_with(assignment={"workers": 4}), run_folder, TABLE)
    assert (envelope.status, envelope.reason) == ("ok", None)
    data = result(run_folder, "assignment")
    first = data["comparisons"][0]
    assert data["query"] == {"name": "whole table", "where": None}
    assert data["planned"] == {"files": 8, "bytes": envelope.headline["bytes"], "rows": sum(ROWS), "exact": True}
    assert first["tasks"] == 4
    assert first["default"]["files"] == [2, 2, 2, 2]
    assert first["default"]["skew"] > 3
    assert first["greedy"]["makespan"] == first["lower_bound"] == data["largest_file_bytes"]
    assert sum(first["greedy"]["loads"]) == sum(first["default"]["loads"]) == data["planned"]["bytes"]
    assert [comparison["tasks"] for comparison in data["comparisons"]] == [4, 1, 8, 16]
    assert data["planning_limit"] == {"max_files": 100_000, "exceeded": False, "message": None}


def test_assignment_shows_homes_and_what_a_worker_changes(run_folder: RunFolder) -> None:
    envelope = simulate_assignment(settings_with(assignment={"workers": 2, "tasks": 8}), run_folder, TABLE)
    affinity = result(run_folder, "assignment")["affinity"]
    assert affinity["home"]["fraction"] == envelope.headline["home_fraction"] == 1.0  # one file a task
    assert affinity["hinted_objects"] == [1] * 8
    assert sum(affinity["preferred"].values()) == 8
    assert affinity["one_leaves"]["worker"] == "http://worker-1/"
    assert affinity["one_leaves"]["moved_tasks"] == affinity["preferred"]["http://worker-1/"]
    assert affinity["one_joins"]["worker"] == "http://worker-2/"
    assert affinity["one_joins"]["at_old_home"]["fraction"] <= 1.0


def test_a_single_worker_cannot_leave(run_folder: RunFolder) -> None:
    envelope = simulate_assignment(settings_with(assignment={"workers": 1}), run_folder, TABLE)
    assert result(run_folder, "assignment")["affinity"]["one_leaves"] is None
    assert envelope.headline["home_fraction_one_leaves"] is None


def test_the_heaviest_query_of_the_planning_result_is_simulated(run_folder: RunFolder) -> None:
    predicates = [{"name": "a", "where": "batch = 0"}, {"name": "b", "where": "batch IN (1, 4)"}]
    run_folder.write_result("planning", table=TABLE, data={"predicates": predicates, "heaviest": "b"})
    assignment = simulate_assignment(settings_with(), run_folder, TABLE)
    plan_tasks = simulate_plan_tasks(settings_with(plan_tasks={"batch_size": 1}), run_folder, TABLE)
    data = result(run_folder, "assignment")
    (run_folder_file := Path(run_folder.home) / run_folder.result_path("planning", TABLE)).unlink()
    assert not run_folder_file.exists()
    assert data["query"] == {"name": "b", "where": "batch IN (1, 4)"}
    assert (data["planned"]["files"], data["planned"]["exact"]) == (2, False)
    assert assignment.headline["files"] == plan_tasks.headline["tasks"] == 2
    token = decode(result(run_folder, "plan_tasks")["first_token"])
    assert token.scan["filter"]["type"] == "in"


def test_the_configured_query_of_the_largest_weight_is_simulated_without_a_planning_result(
    run_folder: RunFolder,
) -> None:
    queries = [{"name": "light", "where": "batch = 0"}, {"name": "heavy", "where": "batch = 1", "weight": 9}]
    document = settings_with(tables=[{"match": "*", "queries": queries}])
    simulate_assignment(document, run_folder, TABLE)
    assert result(run_folder, "assignment")["query"]["name"] == "heavy"
    assert result(run_folder, "assignment")["planned"]["files"] == 1


def test_plan_tasks_shows_batches_replicas_and_designs(run_folder: RunFolder) -> None:
    envelope = simulate_plan_tasks(settings_with(plan_tasks={"batch_size": 3, "replicas": 2}), run_folder, TABLE)
    assert envelope.status == "ok"
    data = result(run_folder, "plan_tasks")
    assert (data["tasks"], data["inline"], data["tokens"], data["requests"], data["last_batch"]) == (8, 3, 2, 3, 2)
    assert data["plans_computed"]["local_cache_expected"] == pytest.approx(1.75)
    assert [point["replicas"] for point in data["plans_by_replicas"]] == list(range(1, 11))
    assert [design["requests"] for design in data["designs"]] == [1, 3, 3, 3]
    assert [design["manifests_opened"] for design in data["designs"]][::3] == [8, 8]
    token = decode(data["first_token"])
    assert isinstance(token, OffsetToken)
    assert (token.table, token.offset, token.limit) == ("sales.skewed", 3, 3)
    assert token.scan["snapshot-id"] == envelope.snapshot_id
    assert {m["measure"]: m["plans_simulated"] for m in data["mitigations"]}["no cache"] == 3


def test_more_replicas_than_usual_are_shown_too(run_folder: RunFolder) -> None:
    simulate_plan_tasks(settings_with(plan_tasks={"batch_size": 3, "replicas": 12}), run_folder, TABLE)
    assert result(run_folder, "plan_tasks")["plans_by_replicas"][-1]["replicas"] == 12


def test_an_empty_table_has_no_work(run_folder: RunFolder) -> None:
    assignment = simulate_assignment(settings_with(), run_folder, EMPTY)
    assert (assignment.status, assignment.headline["files"], assignment.headline["greedy_skew"]) == ("ok", 0, None)
    assert assignment.headline["home_fraction"] is None
    plan_tasks = simulate_plan_tasks(settings_with(), run_folder, EMPTY)
    assert (plan_tasks.status, plan_tasks.headline["requests"]) == ("ok", 1)
    assert result(run_folder, "plan_tasks", EMPTY)["first_token"] is None


def test_a_table_that_was_not_measured_is_skipped(run_folder: RunFolder) -> None:
    unknown = TableName.parse("lake.sales.unknown")
    for stage in (simulate_assignment, simulate_plan_tasks):
        assert stage(settings_with(), run_folder, unknown).status == "skipped"


def test_a_query_on_an_unknown_column_fails_with_its_name(run_folder: RunFolder) -> None:
    document = settings_with(tables=[{"match": "*", "queries": [{"name": "odd", "where": "colour = 'red'"}]}])
    for stage in (simulate_assignment, simulate_plan_tasks):
        envelope = stage(document, run_folder, TABLE)
        assert envelope.status == "failed"
        assert "colour" in (envelope.reason or "")


@pytest.mark.spark
def test_the_demonstration_lake_shows_a_skewed_scan_and_a_fall_back_for_deletes(
    demo_lake: list[TableName], settings: SettingsDocument, tmp_path: Path
) -> None:
    uploads, tickets = TableName.parse("lake.ops.uploads"), TableName.parse("lake.ops.tickets")
    folder = RunFolder(str(tmp_path), "cli", "demo")
    measure(settings, folder, [uploads, tickets])
    assert {uploads, tickets} <= set(demo_lake)
    skewed = simulate_assignment(settings, folder, uploads).headline
    assert (skewed["default_skew"] or 0) > 1.5 * (skewed["greedy_skew"] or 0)
    simulate_plan_tasks(settings, folder, tickets)
    ranges = result(folder, "plan_tasks", tickets)["designs"][-1]
    assert "fall back to offset tokens" in ranges["note"]
