"""A person's approval of maintenance, whose answer the run can tell afterwards."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import get_current_context

from planning_links import TableLink
from planning_run import form_fields, planning_run

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

_ANSWER: Final = "answer"


class MaintenanceApproval(ApprovalOperator):  # type: ignore[misc] # the provider is not typed
    """An approval that keeps the answer: Airflow's own leaves none behind when it is a rejection."""

    operator_extra_links = (TableLink(),)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Goes on after the answer, or after the time for it has passed and the default was taken."""
        person = event.get("responded_by_user") or {}
        answer = {
            "approved": self.APPROVE in event.get("chosen_options", []),
            "by": person.get("name") or person.get("id"),
        }
        context["ti"].xcom_push(_ANSWER, answer)
        return super().execute_complete(context, event)


@dataclass(frozen=True)
class Answer:
    """What became of a request for approval; ``by`` is ``None`` when nobody answered in time."""

    approved: bool
    by: str | None


def answer_of(task_id: str) -> Answer | None:
    """The answer that a :class:`MaintenanceApproval` of this run got; ``None`` when it did not ask."""
    answer = get_current_context()["ti"].xcom_pull(task_id, key=_ANSWER)
    return Answer(**answer) if answer else None


def must_ask(proposal: Mapping[str, Any]) -> bool:
    """Whether a person must approve the run's proposal; the log says why, or that the settings do.

    Args:
        proposal: the envelope of the proposal.
    """
    from planning_health.maintenance.auto_approval import why_to_ask
    from planning_health.stages.forms import maintenance_request

    with planning_run() as (settings, _):
        table, request = maintenance_request(form_fields())
        reason = why_to_ask(settings.maintenance.auto_approve, table, request.actions, proposal["headline"])
    log.info("%s", f"A person is asked: {reason}" if reason else "Approved by maintenance.auto_approve of the settings")
    return reason is not None
