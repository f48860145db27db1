"""Step: what a run has to tell, for each notification rule of the settings. Sending it is the scheduler's part."""

from __future__ import annotations

from collections.abc import Iterator

from planning_health.envelope import ResultFile
from planning_health.pages.links import in_airflow, run_path
from planning_health.reports import read_report
from planning_health.reports.notification import Notification, failure_notification, report_notifications
from planning_health.run_folder import RunFolder, results_below
from planning_health.settings import SettingsDocument
from planning_health.settings.models import NotificationRule
from planning_health.stages.conclude import KIND as CONCLUSION
from planning_health.stages.report import report_url

Messages = Iterator[tuple[NotificationRule, Notification]]


def report_messages(settings: SettingsDocument, run_folder: RunFolder) -> Messages:
    """What the run's report has to say to whom; nothing for a run without a report of the week."""
    report = read_report(f"{run_folder.url}/report/report.json")
    if report is None or not report.whole_week:
        return
    for rule in settings.notifications:
        for message in report_notifications(report, report_url(report), only_changes=rule.only_changes):
            if message.event in rule.on:
                yield rule, message


def failure_messages(
    settings: SettingsDocument,
    run_folder: RunFolder,
    airflow_url: str | None,
    reason: str | None = None,
    *,
    late: bool = False,
) -> Messages:
    """That the run failed, and why; with ``only_changes`` not again for the reason of the run before it.

    Args:
        settings: the settings.
        run_folder: the run's folder.
        airflow_url: address of the Airflow UI.
        reason: what the scheduler says, for a run that did not come to its conclusion.
        late: the run has not failed, but is not done by its deadline.
    """
    own = run_folder.read_result(CONCLUSION)
    told = own.reason if own is not None and own.reason else reason or "its last task tells why"
    url = in_airflow(airflow_url, run_path(run_folder.dag_id, run_folder.run_id)) if airflow_url else None
    message = failure_notification(run_folder.dag_id, run_folder.run_id, told, url, late=late)
    before = _conclusion_before(run_folder, own)
    again = own is not None and before is not None and own.reason == before.reason
    for rule in settings.notifications:
        if "failed" in rule.on and not (again and rule.only_changes):
            yield rule, message


def _conclusion_before(run_folder: RunFolder, own: ResultFile | None) -> ResultFile | None:
    """How the run of the same Dag ended that ended last before this one."""
    results = results_below(run_folder.home, "runs", run_folder.dag_id, "*", f"{CONCLUSION}.json")
    earlier = (
        result
        for result in results
        if result.run_id != run_folder.run_id and (own is None or result.created_at < own.created_at)
    )
    return max(earlier, key=lambda result: result.created_at, default=None)
