"""What is left of an approval after it was answered."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLTriggerEventError

from maintenance_approval import MaintenanceApproval

pytestmark = pytest.mark.airflow


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
