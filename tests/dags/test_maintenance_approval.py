"""What is left of an approval after it was answered."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLTriggerEventError

import planning_run
from maintenance_approval import MaintenanceApproval, must_ask

pytestmark = pytest.mark.airflow

LIMITS = {"tables": ["lake.sales.*"], "most_manifests": 50, "most_metadata_bytes": 1_000_000}


def answer(event: dict[str, Any]) -> dict[str, Any]:
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(xcom_push=pushed.__setitem__)
    context: Any = {"ti": ti, "task_instance": ti}
    MaintenanceApproval(task_id="approve", subject="Maintenance").execute_complete(context, event)
    return pushed


def test_it_tells_who_approved() -> None:
    person = {"id": "1", "name": "Ada"}
    event = {
        "chosen_options": ["Approve"],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": person,
    }
    assert answer(event) == {"answer": {"approved": True, "by": "Ada"}}


def test_it_tells_that_nobody_answered_in_time() -> None:
    event = {
        "chosen_options": ["Reject"],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": None,
    }
    assert answer(event) == {"answer": {"approved": False, "by": None}}


def test_a_broken_request_is_an_error() -> None:
    with pytest.raises(HITLTriggerEventError):
        answer({"error": "lost", "error_type": "unknown"})


@pytest.mark.parametrize(
    ("limits", "manifests", "asked", "told"),
    [
        (None, 10, True, "A person is asked: the settings approve nothing in advance"),
        (LIMITS, 10, False, "Approved by maintenance.auto_approve of the settings"),
        (LIMITS, 51, True, "manifests before: 51, above maintenance.auto_approve.most_manifests = 50"),
    ],
)
def test_a_person_is_asked_unless_the_settings_approve_in_advance(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limits: dict[str, Any] | None,
    manifests: int,
    asked: bool,
    told: str,
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setenv("PLANNING_HEALTH_HOME", str(tmp_path))
    monkeypatch.setenv("PLANNING_HEALTH__MAINTENANCE", json.dumps({"auto_approve": limits}))
    form = {"table": "lake.sales.orders", "actions": ["rewrite_manifests"], "dry_run": False}
    context = {"params": form, "dag_run": SimpleNamespace(dag_id="table_maintenance", run_id="manual__1")}
    monkeypatch.setattr(planning_run, "get_current_context", lambda: context)
    headline = {"manifests_before": manifests, "metadata_bytes_before": 1_000}
    assert must_ask({"headline": headline}) == asked
    assert told in caplog.text
