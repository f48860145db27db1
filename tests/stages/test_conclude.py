"""The end of a run: what failed, and what may pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument, TableRule
from planning_health.stages.conclude import conclude
from planning_health.stages.refuse import refuse

ORDERS = TableName.parse("lake.sales.orders")
BROKEN = TableName.parse("lake.broken.t")


@pytest.fixture
def tolerant() -> SettingsDocument:
    return SettingsDocument.model_validate(
        {
            "catalogs": {"lake": {"properties": {"type": "jdbc"}}},
            "tables": [TableRule(match="lake.broken.*", tolerate_failure=True), TableRule(match="*")],
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(str(tmp_path), "planning_health_weekly", "run")
    for table in (ORDERS, BROKEN):
        folder.write_result("measurement", table=table)
        folder.write_result("health", table=table)
    return folder


def test_a_run_without_failures_is_ok(tolerant: SettingsDocument, folder: RunFolder) -> None:
    assert conclude(tolerant, folder, expected=["health"]).status == "ok"


def test_a_failed_table_fails_the_run_with_its_reason(tolerant: SettingsDocument, folder: RunFolder) -> None:
    folder.write_result("planning", table=ORDERS, status="failed", reason="no such column")
    envelope = conclude(tolerant, folder)
    assert envelope.status == "failed"
    assert envelope.reason == "lake.sales.orders: planning: no such column"


def test_a_tolerated_table_does_not_fail_the_run_but_is_counted(tolerant: SettingsDocument, folder: RunFolder) -> None:
    folder.write_result("measurement", table=BROKEN, status="failed", reason="a manifest is missing")
    envelope = conclude(tolerant, folder)
    assert envelope.status == "ok"
    assert envelope.headline["tables_failed_tolerated"] == 1


def test_a_step_that_left_no_result_is_a_failure(tolerant: SettingsDocument, folder: RunFolder) -> None:
    envelope = conclude(tolerant, folder, expected=["health", "planning"])
    assert "lake.sales.orders: planning: the step left no result" in (envelope.reason or "")


def test_a_task_that_the_scheduler_saw_fail_is_a_failure(tolerant: SettingsDocument, folder: RunFolder) -> None:
    envelope = conclude(tolerant, folder, failed_tasks={"report": None})
    assert envelope.reason == "report: the task failed: see its log"


def test_a_failed_step_of_the_run_tells_its_own_reason(tolerant: SettingsDocument, folder: RunFolder) -> None:
    folder.write_result("report", status="failed", reason="disk is full")
    assert conclude(tolerant, folder, failed_tasks={"report": None}).reason == "report: disk is full"


def test_a_recording_that_failed_its_integrity_checks_is_a_failure(
    tolerant: SettingsDocument, folder: RunFolder
) -> None:
    outcome = {"success": False, "blocking": True, "expectations": []}
    folder.write_result("validation", data={"tables": {str(ORDERS): outcome}})
    assert (
        conclude(tolerant, folder).reason == "lake.sales.orders: validation: the recording failed its integrity checks"
    )


def test_a_refused_proposal_is_no_failure_and_says_who_refused(tolerant: SettingsDocument, folder: RunFolder) -> None:
    assert refuse(tolerant, folder, ORDERS, by="ada").reason == "ada rejected the proposal"
    assert refuse(tolerant, folder, ORDERS, by=None).reason == "nobody approved the proposal within 2 days"
    assert conclude(tolerant, folder).status == "ok"
