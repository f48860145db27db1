"""The command line that all Spark jobs share, and how a job ends."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import ValidationError

from planning_health.envelope import Envelope
from planning_health.errors import InputError, PlanningHealthError, first_problem
from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.run_record import run_settings


@dataclass(frozen=True)
class JobArguments:
    """What the operator hands to a job.

    Attributes:
        settings: the settings that the run began with.
        run_folder: the Dag run's folder.
        table: the one table of a maintenance job; ``None`` for the measurement of all.
        request: a JSON document of the maintenance form; ``None`` for the measurement.
    """

    settings: SettingsDocument
    run_folder: RunFolder
    table: TableName | None
    request: str | None

    def require_table(self) -> TableName:
        """The table of a job that works on one.

        Raises:
            InputError: when ``--table`` was left out.
        """
        if self.table is None:
            raise InputError("--table is required for this job")
        return self.table

    def maintenance_request(self) -> MaintenanceRequest:
        """The request of a maintenance job.

        Raises:
            InputError: when ``--request`` was left out or is not a maintenance request.
        """
        try:
            return MaintenanceRequest.model_validate_json(self.request or "")
        except ValidationError as error:
            raise InputError(f"--request: {first_problem(error)}") from error


def parse_arguments() -> JobArguments:
    """Reads the job's command line.

    Raises:
        InputError: for a run that was not started, or a table name that cannot be read.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", required=True)
    parser.add_argument("--dag-id", required=True)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--table")
    parser.add_argument("--request")
    values = parser.parse_args()
    run_folder = RunFolder(values.home, values.dag_id, values.run_id)
    settings = run_settings(run_folder)
    if settings is None:
        raise InputError(f"run {run_folder.url} has no settings.json: it was not started")
    return JobArguments(
        settings=settings,
        run_folder=run_folder,
        table=TableName.parse(values.table) if values.table else None,
        request=values.request,
    )


def run_job(job: Callable[[JobArguments], Envelope]) -> None:
    """Runs a job and ends the process: 0 when its result file is complete, 2 for bad input, else 1.

    The result file says whether the work succeeded; the operator reads it, not only the exit status.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        envelope = job(parse_arguments())
    except PlanningHealthError as error:
        logging.getLogger(__name__).error("%s", error)
        sys.exit(error.exit_status)
    logging.getLogger(__name__).info("%s: %s %s", envelope.kind, envelope.status, envelope.reason or "")
