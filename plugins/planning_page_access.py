"""Airflow's answers for the "Planning health" page: who may look, who may start maintenance, and the start itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_access_view
from airflow.api_fastapi.logging.decorators import action_logging
from airflow.models.dag import DagModel
from airflow.sdk.exceptions import AirflowException
from airflow.utils.types import DagRunTriggeredByType
from fastapi import Depends, HTTPException, Request

from planning_health.pages.app import Access
from planning_health.pages.links import MAINTENANCE_DAG, WEEKLY_DAG
from planning_health.settings import load_settings
from planning_run import settings_file

if TYPE_CHECKING:
    from fastapi.params import Depends as Dependency


def access() -> Access:
    """Who may look: who may see plugins and read the weekly Dag; who may act: who may start the maintenance Dag."""
    look: list[Dependency] = [
        Depends(requires_access_view(AccessView.PLUGINS)),
        Depends(requires_access_dag("GET", param_dag_id=WEEKLY_DAG)),
    ]
    act: list[Dependency] = [
        Depends(requires_access_dag("POST", DagAccessEntity.RUN, MAINTENANCE_DAG)),
        Depends(action_logging(event="trigger_dag_run")),
        Depends(remember_user),
    ]
    return Access(look, act, may_start_maintenance, approval_is_required)


def may_start_maintenance(user: GetUserDep) -> bool:
    """Whether the user may start runs of the maintenance Dag."""
    details = DagDetails(id=MAINTENANCE_DAG, team_name=DagModel.get_team_name(MAINTENANCE_DAG))
    return bool(
        get_auth_manager().is_authorized_dag(
            method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user
        )
    )


def approval_is_required() -> bool:
    """Whether the settings let a run wait for a person's approval."""
    return load_settings(settings_file()).maintenance.approval == "required"


def remember_user(request: Request, user: GetUserDep) -> None:
    """Keeps the user's name for the run that is started."""
    request.state.starting_user = user.get_name()


def start_maintenance(request: Request, form: dict[str, Any]) -> str:
    """Starts a run of the maintenance Dag and returns its id.

    Raises:
        HTTPException: 400 when the Dag is not there or its form refuses a value; the message names it.
    """
    try:
        run = trigger_dag(
            MAINTENANCE_DAG,
            conf=form,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=request.state.starting_user,
        )
    except (AirflowException, ValueError) as error:
        raise HTTPException(400, str(error)) from error
    if run is None:
        raise HTTPException(400, f"Dag {MAINTENANCE_DAG} could not be started")
    return str(run.run_id)
