"""How all our Dags are operated: owner, retries, time limits, and whom to tell; from the settings."""

from __future__ import annotations

from typing import Any

from airflow.sdk import AssetOrTimeSchedule, CronTriggerTimetable
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from planning_assets import REQUEST
from planning_health.settings import SettingsDocument
from planning_notifications import check_notifiers, notify_of_deadline, notify_of_failure


def dag_options(settings: SettingsDocument) -> dict[str, Any]:
    """Arguments for ``@dag``.

    One run of a Dag at a time; a run that waits for a person has no time limit but the approval's own.

    Raises:
        InputError: when a notifier of the settings is not installed.
    """
    check_notifiers(settings)
    operations = settings.operations
    return {
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["iceberg", "planning-health"],
        "on_failure_callback": notify_of_failure if _tells_failures(settings) else None,
        "default_args": {
            "owner": "data-platform",
            "retries": operations.retries,
            "retry_delay": operations.retry_delay,
        },
    }


def schedule(settings: SettingsDocument) -> Any:
    """When the weekly Dag runs: at the settings' times, and when somebody asks for it by the asset."""
    if settings.operations.schedule is None:
        return [REQUEST]
    timetable = CronTriggerTimetable(settings.operations.schedule, timezone="UTC")
    return AssetOrTimeSchedule(timetable=timetable, assets=[REQUEST])


def deadline(settings: SettingsDocument) -> DeadlineAlert | None:
    """An alert for runs that take too long, for those who are told of failures; ``None`` where nobody is."""
    interval = settings.operations.deadline
    if interval is None or not _tells_failures(settings):
        return None
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=interval,
        callback=SyncCallback(notify_of_deadline),
        name="planning health is late",
    )


def _tells_failures(settings: SettingsDocument) -> bool:
    return any("failed" in rule.on for rule in settings.notifications)
