"""Tells people of a run through the notifiers that the settings name (Slack, SMTP, Apprise or any other)."""

from __future__ import annotations

import html
import importlib
import importlib.util
import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import BaseNotifier, Context
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from planning_health.errors import InputError
from planning_health.run_folder import RunFolder, read_bytes
from planning_health.settings import SettingsDocument, load_settings
from planning_run import airflow_url, planning_run, settings_file

if TYPE_CHECKING:
    from planning_health.reports.notification import Notification
    from planning_health.settings.models import NotificationRule

_PLACES: Final = {
    "text": "text",
    "body": "text",
    "message": "text",
    "html_content": "html",
    "title": "title",
    "subject": "title",
}
"""What notifiers call the parts of a message."""


def check_notifiers(settings: SettingsDocument) -> None:
    """Refuses settings whose notifiers are not installed, without importing them: Dags are parsed often.

    Raises:
        InputError: naming the rule and the path.
    """
    for number, rule in enumerate(settings.notifications):
        module = rule.notifier.rpartition(".")[0]
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise InputError(
                f"notifications.{number}.notifier {rule.notifier!r}: there is no module {module!r}; install the "
                "provider that has it, or name another notifier"
            )


def notify_of_report() -> None:
    """Sends what the running task's run has to tell; skips the task when that is nothing.

    Raises:
        AirflowException: a notifier failed; the others were tried.
    """
    from planning_health.stages.notify import report_messages

    with planning_run() as (settings, folder):
        messages = list(report_messages(settings, folder))
        mail = (read_bytes(f"{folder.url}/report/mail.html") or b"").decode()
    if not messages:
        raise AirflowSkipException("nothing to tell")
    if failures := send(messages, mail):
        raise AirflowException("; ".join(failures))


def notify_of_failure(context: Context) -> None:
    """Callback of a Dag whose run failed: short, since it holds up the Dag processor."""
    _tell_failure(context["dag"].dag_id, str(context["run_id"]), str(context.get("reason") or "") or None)


def notify_of_deadline(context: dict[str, Any]) -> None:
    """Callback of a Dag whose run is not done when it should be; called in the executor with a plain document."""
    from planning_health.wording import moment

    run, due = context["dag_run"], str(context["deadline"]["deadline_time"])
    _tell_failure(run["dag_id"], run["dag_run_id"], f"not done by {moment(due)}", late=True)


def _tell_failure(dag_id: str, run_id: str, reason: str | None, *, late: bool = False) -> None:
    from planning_health.stages.notify import failure_messages
    from planning_health.stages.run_record import run_settings

    current = load_settings(settings_file())
    folder = RunFolder(current.home, dag_id, run_id)
    settings = run_settings(folder) or current
    if failures := send(failure_messages(settings, folder, airflow_url(), reason, late=late)):
        raise AirflowException("; ".join(failures))


def send(messages: Iterable[tuple[NotificationRule, Notification]], mail: str = "") -> list[str]:
    """Sends each message by its rule's notifier; one that fails does not keep the others from being sent.

    Args:
        messages: rules and messages.
        mail: the report as a mail, for notifiers that send HTML.

    Returns:
        What failed, with the notifier's path.
    """
    failures = []
    for rule, message in messages:
        try:
            _notify(rule, message, mail if message.event == "report" else "")
        except Exception as error:  # each notifier has its own exceptions
            failures.append(f"{rule.notifier}: {type(error).__name__}: {error}")
    return failures


def _notify(rule: NotificationRule, message: Notification, mail: str) -> None:
    module, _, name = rule.notifier.rpartition(".")
    notifier = getattr(importlib.import_module(module), name)
    if not (inspect.isclass(notifier) and issubclass(notifier, BaseNotifier)):
        raise InputError(f"{rule.notifier} is no notifier of Airflow's")
    values = {
        "event": message.event,
        "title": message.title,
        "text": message.text,
        "html": mail or f"<p>{html.escape(message.text).replace(chr(10), '<br>')}</p>",
        "url": message.url or "",
    }
    context: Any = {"planning_health": values}  # names come from tables: they are values of a template, never its text
    notifier(**_arguments(notifier, values) | rule.arguments)(context)


def _arguments(notifier: type[BaseNotifier], values: dict[str, str]) -> dict[str, str]:
    """The message, where the notifier takes it; a field that is a template gets a reference to it."""
    return {
        name: f"{{{{ planning_health.{part} }}}}" if name in notifier.template_fields else values[part]
        for name, part in _PLACES.items()
        if name in inspect.signature(notifier).parameters
    }
