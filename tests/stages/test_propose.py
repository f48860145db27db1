"""What nobody asked for is proposed only where a finding asks for it; the first proposal answers the worst finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.maintenance.pictures import picture

from planning_health.health.analysis import analyse
from planning_health.health.thresholds import resolve_thresholds
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import PlanningMetadata
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages import table_stage
from planning_health.stages.propose import propose

WIDE = [[[day * 5] for day in range(20)] for _ in range(6)]
"""Six manifests, of which each covers all the days."""

HALVES = [[[day] for day in range(start, start + 10)] for start in (0, 4)]
"""Two manifests that overlap: one would be cheaper, and nobody would notice."""


def proposed(
    home: Path,
    metadata: PlanningMetadata,
    request: MaintenanceRequest | None = None,
    *,
    diagnosed: bool = True,
    **health: Any,
) -> dict[str, Any]:
    """The proposal's data for a table that was measured and diagnosed."""
    settings = SettingsDocument.model_validate(
        {"home": str(home), "catalogs": {"lake": {"properties": {"type": "rest"}}}}
    )
    folder, table = RunFolder(settings.home, "cli", "r"), metadata.info.name
    folder.write_result("measurement", table=table, snapshot_id=metadata.info.snapshot_id)
    if diagnosed:
        folder.write_result("health", table=table, data=analyse(metadata, resolve_thresholds(None)) | health)
    with mock.patch.object(table_stage, "load", return_value=metadata):
        assert propose(settings, folder, table, request).status == "ok"
    data: dict[str, Any] = folder.require_result("proposal", table).data
    return data


def test_a_rewrite_that_answers_a_finding_is_proposed_unasked(tmp_path: Path) -> None:
    data = proposed(tmp_path, picture(WIDE))
    assert data["proposals"][0]["action"] == "rewrite_manifests"
    assert "wide_manifests:0.d_day" in data["proposals"][0]["answers"]


def test_a_table_without_a_finding_is_left_alone_unless_somebody_asks(tmp_path: Path) -> None:
    metadata = picture(HALVES)
    unasked = proposed(tmp_path, metadata)
    assert [item["action"] for item in unasked["proposals"]] == []
    assert unasked["no_op_reason"].startswith("no finding asks for it (spec 0: ")
    assert unasked["predicted"]["manifests_after"] == 2
    asked = proposed(tmp_path, metadata, MaintenanceRequest())
    assert [item["action"] for item in asked["proposals"]] == ["rewrite_manifests"]


def test_without_a_diagnosis_a_rewrite_that_pays_is_proposed(tmp_path: Path) -> None:
    assert [item["action"] for item in proposed(tmp_path, picture(HALVES), diagnosed=False)["proposals"]] == [
        "rewrite_manifests"
    ]


@pytest.mark.parametrize("rule", ["many_snapshots", "dangling_deletes"])
def test_the_answer_to_the_worst_finding_comes_first(tmp_path: Path, rule: str) -> None:
    metadata = picture(WIDE)
    findings = analyse(metadata, resolve_thresholds(None))["findings"]
    worst = {**findings[0], "id": rule, "title": rule, "level": "critical", "scope_key": ""}
    data = proposed(tmp_path, metadata, findings=[worst, *findings])
    assert data["proposals"][0]["answers"] == [rule]
    assert data["proposals"][1]["action"] == "rewrite_manifests"
