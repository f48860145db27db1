"""The environment beats the file, the file beats defaults, and bad settings get one clear line."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.settings import load_settings

MINIMAL: dict[str, Any] = {
    "version": 1,
    "catalogs": {"lake": {"properties": {"type": "rest", "uri": "http://localhost"}}},
}


def write(folder: Path, document: Any) -> Path:
    path = folder / "settings.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_home_is_relative_to_the_settings_file(tmp_path: Path) -> None:
    assert load_settings(write(tmp_path, MINIMAL)).home == str(tmp_path / ".planning-health")
    assert load_settings(write(tmp_path, {**MINIMAL, "home": "s3://bucket/home/"})).home == "s3://bucket/home"


def test_the_home_variable_moves_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANNING_HEALTH_HOME", str(tmp_path / "elsewhere"))
    assert load_settings(write(tmp_path, MINIMAL)).home == str(tmp_path / "elsewhere")


def test_the_environment_beats_the_file_and_the_file_beats_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, {**MINIMAL, "assignment": {"workers": 5, "partitions_per_task": 7}})
    monkeypatch.setenv("PLANNING_HEALTH__ASSIGNMENT__WORKERS", "9")
    settings = load_settings(path)
    assert settings.assignment.workers == 9
    assert settings.assignment.partitions_per_task == 7
    assert settings.plan_tasks.batch_size == 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tabels": []}, r"unknown key 'tabels', did you mean 'tables'\? Known keys: version, home, catalogs"),
        (
            {"catalogs": {"lake": {"property": {"type": "rest"}}}},
            r"catalogs\.lake: unknown key 'property', did you mean 'properties'\? Known keys: properties, secrets",
        ),
        ({"tabs": []}, r"unknown key 'tabs', did you mean 'tables'\? Known keys: version"),
        ({"x": 1}, r"unknown key 'x'\. Known keys: version"),
        (
            {"catalogs": {"lake": {"properties": {"type": "jdcb", "uri": "x"}}}},
            r"catalogs\.lake: properties\.type 'jdcb' is unknown, did you mean 'jdbc'\? Known types: jdbc, rest, hive",
        ),
        ({"catalogs": {"lake": {"uri": "x"}}}, r"catalogs\.lake: unknown key 'uri'\. Known keys: properties, secrets"),
        (
            {"catalogs": {"lake": "jdbc:sqlite:x"}},
            r"catalogs\.lake: expected a mapping with keys among properties, secrets$",
        ),
        (
            {"catalogs": {"lake": {"properties": {"type": "rest"}, "secrets": {"token": "hunter2"}}}},
            r"token: expected where the secret is found: {env: NAME} or {airflow_connection: ID, field: FIELD}",
        ),
        (
            {"tables": [{"match": "*", "thresholds": {"deleted_ratio": 0.4}}]},
            r"thresholds\.deleted_ratio: expected {warning: NUMBER, critical: NUMBER} \(got 0.4\)",
        ),
        ({"tables": [{"match": "*", "queries": ["a = 1"]}]}, r"queries\.0: expected {name: NAME, where: PREDICATE"),
        ({"tables": [{"match": "*", "every": "weekly"}]}, r"every: expected .* like P7D, PT12H .*\(got 'weekly'\)"),
        ({"tables": [{"match": "*", "every": True}]}, r"every: expected .* like P7D.*\(got True\)"),
        (
            {"tables": [{"match": "*", "thresholds": {"delete_ratio": {"warning": 1, "critical": 2}}}]},
            r"tables\.0\.thresholds: unknown signal 'delete_ratio', did you mean 'deleted_ratio'\? Known signals: dang",
        ),
        (
            {"tables": [{"match": "*", "thresholds": {"overlap_depth_men": {"warning": 3}}}]},
            r"tables\.0\.thresholds: unknown signal 'overlap_depth_men', did you mean 'overlap_depth_mean'\?",
        ),
        ({"tables": [{"match": "*", "thresholds": ["x"]}]}, r"tables\.0\.thresholds: Input should be a valid dict"),
        (
            {"tables": [{"match": "*", "thresholds": {"deleted_ratio": {"warning": 0.9, "critical": 0.5}}}]},
            r"tables\.0\.thresholds\.deleted_ratio: warning 0.9 is above critical 0.5",
        ),
        ({"version": 2}, r"version: .*1.*\(got 2\)"),
        ({"catalogs": {}}, "catalogs: .*at least 1"),
        ({"catalogs": {"lake": {"properties": {"uri": "x"}}}}, "properties need 'type'"),
        ({"assignment": {"workers": 0}}, r"assignment\.workers: .*greater than or equal to 1.*got 0"),
        ({"history": {"catalog": "nope"}}, r"history\.catalog 'nope' is not one of \['lake'\]"),
        ({"tables": [{"match": "*", "queries": [{"name": "q"}]}]}, r"tables\.0\.queries\.0\.where: Field required"),
        ({"maintenance": {"approval_timeout": "-P2D"}}, r"approval_timeout: .*greater than 0"),
        ({"maintenance": {"approval_timeout": 0}}, "approval_timeout: .*greater than"),
        ({"history": {"catalog": "lake", "table": "x"}}, r"history\.table: expected namespace\.table.*got 'x'"),
        ({"history": {"catalog": "lake", "table": ""}}, r"history\.table: expected namespace\.table"),
        ({"tables": [{"match": "*", "queries": [{"name": "q", "where": "a = 1", "weight": float("inf")}]}]}, "weight"),
        ({"tables": [{"match": "*", "queries": [{"name": "q", "where": "a = 1"}] * 2}]}, "several queries: 'q'"),
        ({"tables": [{"match": "*", "queries": [{"name": "q", "where": ""}]}]}, "at least 1 character"),
        ({"assignment": {"workers": True}}, r"assignment\.workers: expected a number.*got True"),
        ({"assignment": {"workers": 10**12}}, r"assignment\.workers: .*10000.*got 1000000000000"),
        ({"assignment": {"tasks": 10**12}}, r"assignment\.tasks: .*1000000.*got 1000000000000"),
        (
            {"assignment": {"workers": 1000, "tasks": 10**6}},
            "tasks 1000000 x workers 1000: expected at most 10,000,000",
        ),
        ({"assignment": {"workers": 10_000}}, "tasks 10000 x workers 10000: expected at most"),
        ({"plan_tasks": {"replicas": 10**12}}, r"plan_tasks\.replicas: .*10000.*got"),
        ({"retention": {"history_days": 10**9}}, r"retention\.history_days: .*36500.*got"),
        ({"home": ""}, "home: expected a folder or URL"),
        ({"home": "simplecache::file:///tmp/x"}, "home: expected one folder or URL"),
        ({"notifications": [{"notifier": "Slack"}]}, r"notifications\.0\.notifier: .*match pattern.*got 'Slack'"),
        ({"notifications": [{"notifier": "a.B", "on": []}]}, r"notifications\.0\.on: .*at least 1 item"),
        (
            {"notifications": [{"notifier": "a.B", "arguments": {"slack_conn_id": "s", "auth_token": "x"}}]},
            r"notifications\.0\.arguments: auth_token is a secret: expected an Airflow connection",
        ),
        ({"operations": {"schedule": "weekly"}}, r"operations\.schedule: .*got 'weekly'"),
        ({"operations": {"deadline": "-PT1H"}}, r"operations\.deadline: .*greater than 0"),
        (
            {"catalogs": {"lake": {"properties": {"type": "rest"}, "secrets": {"token": {}}}}},
            "either env or airflow_connection",
        ),
        *(
            ({"catalogs": {name: {"properties": {"type": "rest"}}}}, f"catalogs: .*{re.escape(repr(name))}.*letters")
            for name in ("lake.uri", "", "la`ke", "${env:HOME}", "a b", "<b>", "x=y", "lake\n.uri")
        ),
    ],
)
def test_a_bad_setting_is_named_with_what_was_expected(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write(tmp_path, {**MINIMAL, **change})
    with pytest.raises(InputError, match=message) as caught:
        load_settings(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", ["a: [", "- 1", "\x00", ""])
def test_a_file_that_is_no_mapping_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match="settings file"):
        load_settings(path)


def test_an_empty_file_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.touch()
    with pytest.raises(InputError, match=r"settings\.yaml' is empty: expected at least the key 'catalogs'"):
        load_settings(path)


def test_falling_back_to_the_demonstration_settings_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("PLANNING_HEALTH_SETTINGS", raising=False)
    load_settings()
    assert "no settings file is given" in caplog.text
    caplog.clear()
    monkeypatch.setenv("PLANNING_HEALTH_SETTINGS", str(write(tmp_path, MINIMAL)))
    load_settings()
    assert caplog.text == ""


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nope\.yaml.*No such file"):
        load_settings(tmp_path / "nope.yaml")


def test_a_bare_off_switches_approval_off(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(yaml.safe_dump(MINIMAL) + "maintenance: {approval: off}\n")
    assert load_settings(path).maintenance.approval == "off"


def test_the_first_matching_rule_decides_and_the_history_is_left_out(tmp_path: Path) -> None:
    settings = load_settings(
        write(
            tmp_path,
            {
                **MINIMAL,
                "history": {"catalog": "lake"},
                "tables": [
                    {"match": "lake.sales.tmp_*", "exclude": True},
                    {"match": "lake.sales.*", "tolerate_failure": True},
                    {"match": "lake.planning_health.*"},
                ],
            },
        )
    )
    assert settings.includes(TableName.parse("lake.sales.orders"))
    assert not settings.includes(TableName.parse("lake.sales.tmp_1"))
    assert not settings.includes(TableName.parse("lake.other.orders"))
    assert not settings.includes(TableName.parse("lake.planning_health.history"))


def test_the_demonstration_settings_are_valid() -> None:
    assert "lake" in load_settings().catalogs


def test_the_settings_that_the_documents_show_are_valid(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    assert [sorted(block) for block in blocks] == [["operations", "tables"], ["notifications"], ["maintenance"]]
    settings = load_settings(
        write(tmp_path, {**MINIMAL, **{key: value for block in blocks for key, value in block.items()}})
    )
    assert settings.maintenance.auto_approve is not None
    assert settings.rule_for(TableName.parse("lake.archive.logs")).every == timedelta(days=28)  # type: ignore[union-attr]
