"""What every task of our Dags needs: the settings, the run's folder, the catalogs' secrets, and a task's end."""

from __future__ import annotations

import importlib
import logging
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from airflow.sdk import BaseHook, get_current_context
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.observability import stats

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.pages.links import in_airflow, run_report_path
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument, load_settings, settings_to_name
from planning_health.settings.load import DEMO_SETTINGS, SETTINGS_VARIABLE

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    from planning_health.envelope import Envelope
    from planning_health.settings.models import SecretReference

Result = Any
"""A step's envelope as an XCom: a dictionary, but not annotated as one, or Airflow would push each key by itself."""

log = logging.getLogger(__name__)

_FAILURE: Final = "failure"
"""The XCom with the reason of a task that failed for good."""

BY_TABLE: Final = "{{ task.op_kwargs['table'] }}"
"""Names a mapped task by its table."""


def settings_file() -> str:
    """The absolute path of the settings file that all Dags use: ``PLANNING_HEALTH_SETTINGS``, else the demo's."""
    return str(Path(os.environ.get(SETTINGS_VARIABLE) or DEMO_SETTINGS).resolve())


def settings_and_folder(context: Context) -> tuple[SettingsDocument, RunFolder]:
    """The settings that the task's Dag run began with (before its first step: the current ones), and its folder.

    Raises:
        InputError: when the settings file cannot be used.
    """
    from planning_health.stages.run_record import run_settings

    settings, dag_run = load_settings(settings_file()), context["dag_run"]
    folder = RunFolder(settings.home, dag_run.dag_id, dag_run.run_id)
    return run_settings(folder) or settings, folder


def discover_tables() -> Result:
    """Discovers the tables: of a scheduled run those that are due, those that an asset's event names, else all."""
    context = get_current_context()
    asked = [name for name in _requested(context) if name]
    only_due = context["dag_run"].run_type == "scheduled"
    return step("discover", only_due=only_due, requested=asked or None)


def _requested(context: Context) -> Iterator[str]:
    """The tables that the triggering events name; one that names none asks for all."""
    events = context["triggering_asset_events"]
    extras = [event.extra or {} for found in events.values() for event in found]
    if all(extra.get("tables") for extra in extras):
        yield from dict.fromkeys(str(name) for extra in extras for name in extra["tables"])


def form_fields() -> dict[str, Any]:
    """What the form of the running task's Dag run holds, defaults included."""
    return dict(get_current_context()["params"])


def step(name: str, **options: Any) -> Result:
    """Runs a step of the whole run, ``planning_health.stages.<name>``, and ends the task as it ended."""
    with planning_run() as (settings, folder):
        return finish(_stage(name)(settings, folder, **options))


def table_step(name: str, table: str, **options: Any) -> Result:
    """Runs a step for one table, ``planning_health.stages.<name>``, and ends the task as it ended."""
    with planning_run() as (settings, folder):
        return finish(_stage(name)(settings, folder, TableName.parse(table), **options))


def airflow_url() -> str | None:
    """The address of the Airflow UI (``[api] base_url``), where it is configured."""
    return (conf.get("api", "base_url", fallback=None) or "").rstrip("/") or None


def write_report() -> Result:
    """Writes the run's report, with links to the Airflow UI where its address is configured (``[api] base_url``).

    The task's log says where the report lies, and its page in the UI.
    """
    address = airflow_url()
    envelope = step("report", airflow_url=address, settings_file=settings_to_name(settings_file()))
    dag_run = get_current_context()["dag_run"]
    log.info("Report: %s", f"{posixpath.dirname(envelope['path'])}/report/index.html")
    if address:
        log.info("In Airflow: %s", in_airflow(address, run_report_path(dag_run.dag_id, dag_run.run_id)))
    return envelope


def write_table_report() -> Result:
    """Writes the report of a run on one table; skips the task of a run that did not get as far as the table."""
    with planning_run() as (_, folder):
        if not folder.tables():
            raise AirflowSkipException("the run left nothing to report: `conclude` says why")
    return write_report()


def measured_tables() -> list[str]:
    """The names of the tables that the run's measurement dealt with.

    Raises:
        AirflowFailException: for more tables than Airflow maps tasks, which its own message does not explain.
    """
    with planning_run() as (_, folder):
        names: list[str] = folder.require_result("measure").data["tables"]
        most = conf.getint("core", "max_map_length")
        if len(names) > most:
            raise InputError(
                f"{len(names)} tables: Airflow maps at most {most} tasks (core.max_map_length); expected "
                f"AIRFLOW__CORE__MAX_MAP_LENGTH of {len(names)} or more, or fewer tables in the settings' rules"
            )
        return names


def conclude_run(*expected: str) -> Result:
    """Ends a run: fails the task, and with it the run, when something failed that is not tolerated.

    Args:
        expected: kinds of results that each measured table must have.
    """
    ti = cast("RuntimeTaskInstance", get_current_context()["ti"])
    tasks = [task for task in ti.get_task_breadcrumbs(ti.dag_id, ti.run_id) if task["map_index"] < 0]
    failed, kept_back = (
        sorted(task["task_id"] for task in tasks if task["state"] == state) for state in ("failed", "upstream_failed")
    )
    reasons = {task: ti.xcom_pull(task_ids=task, key=_FAILURE) for task in failed or kept_back}
    return step("conclude", failed_tasks=reasons, expected=expected)


def _stage(name: str) -> Callable[..., Envelope]:
    """The library's function, imported in the task: Spark, pandas and Great Expectations stay out of Dag parsing."""
    function: Callable[..., Envelope] = getattr(importlib.import_module(f"planning_health.stages.{name}"), name)
    return function


@contextmanager
def planning_run() -> Iterator[tuple[SettingsDocument, RunFolder]]:
    """Settings and run folder of the running task, with the catalogs' secrets in the environment while it lasts.

    Raises:
        AirflowFailException: for bad input or settings: trying again would not help.
    """
    context = get_current_context()
    try:
        settings, folder = settings_and_folder(context)
        with environment(connection_secrets(settings)):
            yield settings, folder
    except InputError as error:
        context["ti"].xcom_push(_FAILURE, str(error))
        raise AirflowFailException(str(error)) from None  # one line is all that a person needs


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


def finish(envelope: Envelope) -> Result:
    """Ends a task as its step ended: the envelope becomes the XCom, and a step that failed fails the task.

    Raises:
        AirflowFailException: the step failed; its result is stored, so that later steps report the reason.
        AirflowSkipException: the step had nothing to work on.
    """
    context = get_current_context()
    value = envelope.model_dump()
    if envelope.status == "ok":
        announce(context, value)
        return value
    context["ti"].xcom_push("return_value", value)
    ending = AirflowSkipException if envelope.status == "skipped" else AirflowFailException
    raise ending(envelope.reason or f"{envelope.kind} {envelope.status}")


def announce(context: Context, envelope: dict[str, Any]) -> None:
    """Attaches the envelope's numbers and path to the task's asset events, and hands the numbers to Airflow's metrics.

    The gauges are called ``planning_health.<kind>.<number>``, with the table as a tag.
    """
    tags = {"dag_id": context["dag_run"].dag_id} | ({"table": envelope["table"]} if envelope["table"] else {})
    for name, value in envelope["headline"].items():
        if value is not None:
            stats.gauge(f"planning_health.{envelope['kind']}.{name}", value, tags=tags)
    for outlet in context["task"].outlets:
        context["outlet_events"][outlet].extra = {key: envelope[key] for key in ("run_id", "table", "headline", "path")}
