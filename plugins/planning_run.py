"""What every task of our Dags needs: the settings, the run's folder, the catalogs' secrets, and a task's end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from planning_health.errors import InputError
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument, load_settings
from planning_health.settings.load import DEMO_SETTINGS, SETTINGS_VARIABLE

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from planning_health.envelope import Envelope
    from planning_health.settings.models import SecretReference


def settings_file() -> str:
    """The absolute path of the settings file that all Dags use: ``PLANNING_HEALTH_SETTINGS``, else the demo's."""
    return str(Path(os.environ.get(SETTINGS_VARIABLE) or DEMO_SETTINGS).resolve())


def run_folder(settings: SettingsDocument, context: Mapping[str, Any]) -> RunFolder:
    """The folder of the Dag run that a task belongs to."""
    dag_run = context["dag_run"]
    return RunFolder(settings.home, dag_run.dag_id, dag_run.run_id)


@contextmanager
def planning_run() -> Iterator[tuple[SettingsDocument, RunFolder]]:
    """Settings and run folder of the running task, with the catalogs' secrets in the environment while it lasts.

    Raises:
        AirflowFailException: for bad input or settings: trying again would not help.
    """
    try:
        settings = load_settings(settings_file())
        with environment(connection_secrets(settings)):
            yield settings, run_folder(settings, get_current_context())
    except InputError as error:
        raise AirflowFailException(str(error)) from error


def connection_secrets(settings: SettingsDocument) -> dict[str, str]:
    """The secrets that the settings keep in Airflow connections, by the variable that carries each.

    Raises:
        AirflowFailException: naming the connection or the field that is missing (never a value).
    """
    from planning_health.catalogs.definition import secret_variable

    return {
        secret_variable(reference): _connection_field(reference)
        for catalog in settings.catalogs.values()
        for reference in catalog.secrets.values()
        if reference.airflow_connection
    }


def require_connection(conn_id: str, hint: str) -> Connection:
    """An Airflow connection.

    Raises:
        AirflowFailException: when it is not defined, with the hint how to define it.
    """
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowException as error:
        raise AirflowFailException(f"Airflow connection {conn_id!r} is not defined: {hint}") from error


def _connection_field(reference: SecretReference) -> str:
    conn_id = str(reference.airflow_connection)
    connection = require_connection(conn_id, f"the settings take a catalog's secret from its field {reference.field!r}")
    own = {"login": connection.login, "password": connection.password, "host": connection.host}
    value = own.get(reference.field) or connection.extra_dejson.get(reference.field)
    if not value:
        raise AirflowFailException(f"Airflow connection {conn_id!r} has no field {reference.field!r}")
    return str(value)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for this process and the processes it starts, and restores the old ones."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def finish(envelope: Envelope) -> dict[str, Any]:
    """Ends a task as its step ended: the envelope becomes the XCom, and a step that failed fails the task.

    Raises:
        AirflowFailException: the step failed; its result is stored, so that later steps report the reason.
        AirflowSkipException: the step had nothing to work on.
    """
    value: dict[str, Any] = envelope.model_dump()
    if envelope.status == "ok":
        return value
    get_current_context()["ti"].xcom_push("return_value", value)
    ending = AirflowSkipException if envelope.status == "skipped" else AirflowFailException
    raise ending(envelope.reason or f"{envelope.kind} {envelope.status}")
