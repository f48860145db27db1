"""Advice as steps of a run: from the run's measurement and what was observed, and as proposals for the form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.maintenance.pictures import DAYS, SCHEMA, picture

from planning_health.advice.layout import PlanningPrice, advise_layout
from planning_health.advice.metrics import advise_metrics
from planning_health.advice.observed import Observation
from planning_health.advice.proposals import layout_proposal, statistics_proposal
from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata, save
from planning_health.metadata.model import files_schema
from planning_health.metadata.store import delete_files_recorded
from planning_health.pages.maintenance_form import filled_in
from planning_health.planning.predicates import parse_where
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument
from planning_health.stages.advise_layout import advise_layout_step, layout_document
from planning_health.stages.advise_metrics import advise_metrics_step, metrics_document
from planning_health.stages.forms import maintenance_request
from planning_health.stages.observed_workload import known_queries, recorded_observations, workload_of
from planning_health.stages.propose import propose
from planning_health.stages.table_stage import MEASUREMENT

TABLE = TableName.parse("lake.sales.orders")
QUERY = Query(name="one day", where="d = DATE'2022-02-10'", weight=10)
SETTINGS = SettingsDocument.model_validate(
    {
        "catalogs": {"lake": {"properties": {"type": "jdbc"}}},
        "tables": [{"match": "lake.sales.*", "queries": [QUERY.model_dump()]}],
    }
)


@pytest.fixture(scope="module")
def scattered() -> PlanningMetadata:
    """16,000 files of 100 days in 40 manifests, each of which has files of every day."""
    made = picture([[(19_000 + (n * 7 + m) % 100,) for n in range(400)] for m in range(40)], spec=DAYS)
    rows = made.manifests.to_pylist()
    for row in rows:  # entries of 2 KB, so that planning takes notable time
        row |= {"length": 400_000, "uncompressed_bytes": 800_000}
    deletes = files_schema(delete_files_recorded(made.info.recorded_field_ids)).empty_table()
    return replace(
        made, manifests=type(made.manifests).from_pylist(rows, schema=made.manifests.schema), delete_files=deletes
    )


@pytest.fixture
def folder(scattered: PlanningMetadata, tmp_path: Path) -> RunFolder:
    folder = RunFolder(str(tmp_path), "planning_health_weekly", "r")
    save(scattered, folder.metadata_url(TABLE))
    folder.write_result(MEASUREMENT, table=TABLE, table_uuid=scattered.info.table_uuid, data={})
    return folder


def seen(where: str) -> Observation:
    return Observation("event log", TABLE.dotted, filter=parse_where(where, SCHEMA).expression)


def test_configured_queries_and_observed_scans_are_one_workload(scattered: PlanningMetadata) -> None:
    workload = workload_of(scattered, [seen(QUERY.where), seen("site = 'a'")], [QUERY, Query(name="odd", where="x(y")])
    assert [(item.name, item.weight, item.sources) for item in workload.filters] == [
        ("one day", 11.0, ("settings", "event log")),
        ('(Site is not null and Site = "a")', 1.0, ("event log",)),
    ]
    assert list(workload.unread) == ["filter x(y"]


def test_the_metrics_step_writes_modes_commands_and_the_form_values(folder: RunFolder) -> None:
    envelope = advise_metrics_step(SETTINGS, folder, TABLE)
    assert (envelope.status, envelope.headline["columns"], envelope.headline["columns_kept"]) == ("ok", 5, 1)
    data = folder.require_result("metrics_advice", TABLE).data
    assert data["default"] == "none"
    assert data["modes"] == {"d": "full"}
    assert data["commands"] == [
        "ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES ('write.metadata.metrics.default' = 'none', "
        "'write.metadata.metrics.column.d' = 'full')"
    ]
    assert data["undo"][0].startswith("ALTER TABLE `lake`.`sales`.`orders` UNSET TBLPROPERTIES IF EXISTS")
    assert MaintenanceRequest.model_validate(data["params"]).metrics_columns == {"d": "full"}
    assert json.dumps(data)


def test_the_layout_step_writes_every_candidate(folder: RunFolder) -> None:
    envelope = advise_layout_step(SETTINGS, folder, TABLE, threads=1)
    data = folder.require_result("layout_advice", TABLE).data
    assert envelope.headline["planning_ms_advised"] == data["advised"]["planning_ms"] < data["now"]["planning_ms"]
    assert len(data["candidates"]) >= 5
    assert data["commands"][0].startswith("ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES")
    assert data["commands"][1].startswith("CALL `lake`.system.rewrite_manifests")


@pytest.mark.parametrize("document", [metrics_document, layout_document])
def test_without_a_workload_the_reason_names_what_is_missing(scattered: PlanningMetadata, document: Any) -> None:
    other = replace(seen(QUERY.where), table="prod.sales.orders")
    found = document(scattered, [other], [])
    reason = found.get("reason") or found["why"]
    assert reason.startswith("no query of the table is known")
    assert "the sources are about prod.sales.orders" in reason


def test_observed_filters_are_queries_of_maintenance(folder: RunFolder, scattered: PlanningMetadata) -> None:
    observed = [seen(QUERY.where), replace(seen("site = 'a'"), weight=3.0), seen("d > DATE'2022-02-10'")]
    folder.write_result("observed", data=[item.as_json() for item in observed])
    workload = workload_of(scattered, recorded_observations(folder), [QUERY])
    assert known_queries(workload, SCHEMA, [QUERY]) == [
        QUERY,
        Query(name="observed 1", where="(`Site` IS NOT NULL AND `Site` = 'a')", weight=3.0),
        Query(name="observed 2", where="(`d` IS NOT NULL AND `d` > DATE'2022-02-10')", weight=1.0),
    ]
    proposals(folder, actions=["rewrite_manifests"])
    predicted = folder.require_result("proposal", TABLE).data["predicted"]
    assert [query["name"] for query in predicted["queries"]] == ["one day", "observed 1", "observed 2"]


def proposals(folder: RunFolder, findings: Sequence[str] = (), **request: Any) -> dict[str, dict[str, Any]]:
    listed = [{"id": finding, "scope_key": "", "title": finding} for finding in findings]
    folder.write_result("health", table=TABLE, data={"findings": listed})
    asked = MaintenanceRequest(**request) if request else None
    assert propose(SETTINGS, folder, TABLE, asked).status == "ok"
    return {item["id"]: item for item in folder.require_result("proposal", TABLE).data["proposals"]}


def test_the_advised_layout_is_a_proposal_whose_params_fill_the_form(folder: RunFolder) -> None:
    advised = proposals(folder)["advised_layout"]
    request = MaintenanceRequest.model_validate(advised["params"])
    assert request.actions == ["set_properties", "rewrite_manifests"]
    assert request.target_manifest_bytes is not None
    assert f"'commit.manifest.target-size-bytes' = '{request.target_manifest_bytes}'" in advised["commands"][0]
    assert advised["undo"][-1].startswith("CALL `lake`.system.rollback_to_snapshot")
    assert (
        advised["predicted"]["queries"][0]["manifests_after"] < advised["predicted"]["queries"][0]["manifests_before"]
    )


def test_a_request_with_a_layout_of_its_own_is_not_advised_on(folder: RunFolder) -> None:
    actions = ["rewrite_manifests", "set_properties"]
    assert "advised_layout" not in proposals(folder, actions=actions, target_manifest_bytes=100_000)


def test_heavy_statistics_are_answered_by_the_advised_modes_and_a_trim(
    folder: RunFolder, scattered: PlanningMetadata
) -> None:
    assert "advised_statistics" not in proposals(folder)
    advised = proposals(folder, ["heavy_statistics"])["advised_statistics"]
    assert advised["answers"] == ["heavy_statistics"]
    request = MaintenanceRequest.model_validate(advised["params"])
    assert (request.actions, request.metrics_default) == (["set_properties", "trim_statistics"], "none")
    assert request.metrics_columns == {"d": "full"}
    form = filled_in(str(TABLE), advised["params"]).values
    assert form["metrics_columns"] == ["d = full"]
    assert maintenance_request(form) == (TABLE, request)
    assert "1 of 5 columns (d full)" in advised["why"]


def test_nothing_is_proposed_where_the_table_is_as_advised(scattered: PlanningMetadata) -> None:
    workload = workload_of(scattered, [], [QUERY])
    layout = advise_layout(scattered, workload.filters, price=PlanningPrice(0.0, 0.0, 1.0, 1), targets=[100_000])
    assert layout is not None
    assert layout_proposal(scattered, layout, Workload.of(scattered, [QUERY])) is None
    properties = {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.d": "full"}
    document = scattered.info.metadata.model_copy(update={"properties": properties})
    tidy = replace(scattered, info=replace(scattered.info, metadata=document))
    metrics = advise_metrics(tidy, workload)
    assert metrics is not None
    assert statistics_proposal(tidy, metrics, Workload.of(tidy, [QUERY])) is None
