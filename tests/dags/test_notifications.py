"""People are told through Airflow's notifiers: what, when, and nothing when nothing changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import structlog
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk.execution_time.callback_supervisor import execute_callback
from tests.dags.notifiers import FileNotifier
from tests.reports import sample_run as sample

import planning_notifications
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.notify import failure_messages, report_messages
from planning_health.stages.report import report

pytestmark = pytest.mark.airflow

FILE_NOTIFIER = "tests.dags.notifiers.FileNotifier"
UI = "https://airflow.example.com"
REPOSITORY = Path(__file__).parents[2]
HOSTILE = TableName("lake", ("s",), "{{ 7 * 7 }}<!channel>")


def settings(home: Path, *rules: dict[str, Any]) -> SettingsDocument:
    return SettingsDocument.model_validate(
        {
            "home": str(home),
            "catalogs": {"lake": {"properties": {"type": "rest"}}},
            "notifications": [{"notifier": FILE_NOTIFIER, **rule} for rule in rules],
        }
    )


def to_file(home: Path, **rule: Any) -> dict[str, Any]:
    return {"arguments": {"path": str(home / "sent.jsonl")}, **rule}


def sent(home: Path) -> list[dict[str, str]]:
    file = home / "sent.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def concluded(home: Path, run_id: str, at: str, reason: str | None) -> RunFolder:
    run = sample.Sample(home, sample.WEEKLY, run_id, at)
    run.put("conclusion", status="failed" if reason else "ok", reason=reason)
    return run.folder


def test_a_table_that_turned_critical_and_the_report_are_told_with_a_link(tmp_path: Path) -> None:
    folder = sample.this_week(tmp_path).folder
    document = settings(tmp_path, to_file(tmp_path))
    report(document, folder, airflow_url=UI)
    assert planning_notifications.send(report_messages(document, folder), "<p>the mail</p>") == []
    critical, ready = sent(tmp_path)
    link = f"{UI}/plugin/planning-health/planning-health/run/report?dag_id={sample.WEEKLY}&run_id="
    assert critical["title"] == "1 table became critical to plan"
    assert critical["text"].splitlines()[1].startswith("- lake.sales.customers: Up to 80 % of a manifest")
    assert critical["text"].splitlines()[-1].startswith(link)
    assert critical["html_content"].startswith("<p>1 table became critical to plan<br>- lake")
    assert ready["title"].startswith("Planning health, week")
    assert ready["html_content"] == "<p>the mail</p>"
    assert len(critical["text"]) < 500


def test_nothing_is_told_when_nothing_changed(tmp_path: Path) -> None:
    weeks = [
        sample.Sample(tmp_path, sample.WEEKLY, f"scheduled__{day}", f"2026-11-{day}T06:02:00+00:00") for day in (16, 23)
    ]
    document = settings(tmp_path, to_file(tmp_path), to_file(tmp_path, only_changes=False))
    for week in weeks:
        week.measured(sample.ORDERS, 41, 42, 1512)
        week.put("health", sample.ORDERS, data=sample.wide_orders())
        report(document, week.folder)
    told = [(rule.only_changes, message.event) for rule, message in report_messages(document, weeks[1].folder)]
    assert told == [(False, "critical"), (False, "report")]


def test_a_rule_is_told_only_of_what_it_names(tmp_path: Path) -> None:
    folder = sample.this_week(tmp_path).folder
    document = settings(tmp_path, {"on": ["critical"]}, {"on": ["failed"]})
    report(document, folder)
    assert [message.event for _, message in report_messages(document, folder)] == ["critical"]


def test_the_report_of_one_run_is_told_to_nobody(tmp_path: Path) -> None:
    folder = sample.repair(tmp_path).folder
    document = settings(tmp_path, to_file(tmp_path))
    report(document, folder)
    assert list(report_messages(document, folder)) == []


def test_a_failure_is_told_with_its_reason_and_not_again_while_the_reason_stays(tmp_path: Path) -> None:
    document = settings(tmp_path, {"on": ["failed"]}, {"on": ["failed"], "only_changes": False})
    runs = [
        concluded(tmp_path, f"r{day}", f"2026-11-{day}T06:00:00+00:00", reason)
        for day, reason in (("01", "a"), ("02", "a"), ("03", "b"))
    ]
    told = [[rule.only_changes for rule, _ in failure_messages(document, run, None)] for run in runs]
    assert told == [[True, False], [False], [True, False]]
    (_, message), *_ = failure_messages(document, runs[2], UI)
    assert message.title == "planning_health_weekly failed"
    assert message.text.splitlines()[1:3] == ["b", "Run r03"]
    assert message.text.splitlines()[-1].startswith(f"{UI}/plugin/planning-health/")


def test_names_of_tables_are_neither_templates_nor_mentions(tmp_path: Path) -> None:
    run = sample.Sample(tmp_path, sample.WEEKLY, sample.THIS_WEEK, "2026-11-30T06:02:00+00:00")
    run.measured(HOSTILE, 1, 42, 9)
    run.put("health", HOSTILE, data=sample.wide_orders())
    document = settings(tmp_path, to_file(tmp_path))
    report(document, run.folder)
    planning_notifications.send(report_messages(document, run.folder))
    text = sent(tmp_path)[0]["text"]
    assert "{{ 7 * 7 }}" in text
    assert "<!channel>" not in text


def test_arguments_of_the_settings_may_place_the_message_themselves(tmp_path: Path) -> None:
    folder = concluded(tmp_path, "r", "2026-11-01T06:00:00+00:00", "the disk is full")
    rule = to_file(tmp_path)
    rule["arguments"] |= {"text": "ALERT {{ planning_health.event }}: {{ planning_health.title }}", "note": "as it is"}
    document = settings(tmp_path, rule)
    assert planning_notifications.send(failure_messages(document, folder, None)) == []
    assert sent(tmp_path)[0]["text"] == "ALERT failed: planning_health_weekly failed"
    assert sent(tmp_path)[0]["note"] == "as it is"


def test_a_notifier_that_fails_is_named_and_does_not_keep_others_from_being_sent(tmp_path: Path) -> None:
    folder = concluded(tmp_path, "r", "2026-11-01T06:00:00+00:00", "the disk is full")
    document = settings(
        tmp_path,
        {"notifier": "tests.dags.notifiers.BrokenNotifier"},
        {"notifier": "tests.dags.notifiers.not_a_notifier"},
        to_file(tmp_path),
    )
    assert planning_notifications.send(failure_messages(document, folder, None)) == [
        "tests.dags.notifiers.BrokenNotifier: ConnectionError: no route to the chat",
        "tests.dags.notifiers.not_a_notifier: InputError: tests.dags.notifiers.not_a_notifier is no notifier of "
        "Airflow's",
    ]
    assert [message["title"] for message in sent(tmp_path)] == ["planning_health_weekly failed"]


def test_a_notifier_that_is_not_installed_is_one_clear_error_when_dags_are_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "airflow.providers.slack.notifications.slack.SlackNotifier"
    monkeypatch.setenv("PLANNING_HEALTH__NOTIFICATIONS", json.dumps([{"notifier": path}]))
    monkeypatch.setenv("PLANNING_HEALTH_HOME", str(tmp_path))
    errors = DagBag(str(REPOSITORY / "dags")).import_errors
    assert len(errors) == 3
    for error in errors.values():
        assert (
            error.strip()
            .splitlines()[-1]
            .endswith(
                f"notifications.0.notifier {path!r}: there is no module 'airflow.providers.slack.notifications.slack'; "
                "install the provider that has it, or name another notifier"
            )
        )


def test_installed_notifiers_pass_and_take_the_message_where_they_have_a_place_for_it(tmp_path: Path) -> None:
    path = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
    planning_notifications.check_notifiers(settings(tmp_path, {"notifier": path}))
    values = {"title": "t", "text": "x", "html": "<p>x</p>", "event": "report", "url": ""}
    assert planning_notifications._arguments(SmtpNotifier, values) == {
        "html_content": "{{ planning_health.html }}",
        "subject": "{{ planning_health.title }}",
    }
    assert planning_notifications._arguments(FileNotifier, values)["text"] == "{{ planning_health.text }}"
    with pytest.raises(InputError, match=r"notifications\.0\.notifier 'no\.such\.Thing'"):
        planning_notifications.check_notifiers(settings(tmp_path, {"notifier": "no.such.Thing"}))


def test_dags_tell_of_failures_and_of_late_runs_only_where_somebody_is_to_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNING_HEALTH_HOME", str(tmp_path))
    silent = DagBag(str(REPOSITORY / "dags")).dags["planning_health_weekly"]
    assert (silent.on_failure_callback, silent.deadline) == (None, None)
    rules = [to_file(tmp_path, notifier=FILE_NOTIFIER, on=["failed"])]
    monkeypatch.setenv("PLANNING_HEALTH__NOTIFICATIONS", json.dumps(rules))
    bag = DagBag(str(REPOSITORY / "dags"))
    assert bag.import_errors == {}
    assert all(dag.on_failure_callback is planning_notifications.notify_of_failure for dag in bag.dags.values())
    (alert,) = bag.dags["planning_health_weekly"].deadline
    context = {
        "dag_run": {"dag_id": "planning_health_weekly", "dag_run_id": "manual__1"},
        "deadline": {"deadline_time": "2026-11-30T14:00:00+00:00"},
    }
    done, error = execute_callback(alert.callback.path, {"context": context}, "", None, structlog.get_logger())
    assert (done, error) == (True, None)
    bag.dags["table_maintenance"].on_failure_callback(
        {"dag": bag.dags["table_maintenance"], "run_id": "manual__2", "reason": "timed out"}
    )
    late, failed = sent(tmp_path)
    assert late["title"] == "planning_health_weekly is late"
    assert "not done by Mon 30 Nov 2026, 14:00 UTC" in late["text"]
    assert (failed["title"], failed["text"].splitlines()[1]) == ("table_maintenance failed", "timed out")
