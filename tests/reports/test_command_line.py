from __future__ import annotations

from typing import Any

import pytest

from planning_health.reports.command_line import maintain_command, what_apply_needs, with_settings
from planning_health.settings import SettingsDocument


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (
            {
                "actions": ["rewrite_manifests"],
                "spec_id": 1,
                "sort_by": ["day", "country"],
                "target_manifest_bytes": None,
            },
            "planning-health maintain lake.a.t --spec-id 1 --sort-by day --sort-by country --apply",
        ),
        (
            {"actions": ["set_properties"], "metrics_default": "counts", "metrics_columns": {"a b": "truncate(16)"}},
            "planning-health maintain lake.a.t --set-metrics default=counts --set-metrics 'column.a b=truncate(16)' "
            "--no-rewrite --apply",
        ),
        (
            {"actions": ["set_properties", "rewrite_manifests"], "target_manifest_bytes": 65536},
            "planning-health maintain lake.a.t --target-manifest-bytes 65536 --apply",
        ),
        ({}, ""),
    ],
)
def test_a_proposal_is_run_by_one_command(params: dict[str, Any], expected: str) -> None:
    assert maintain_command("lake.a.t", params) == expected


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("jdbc", "--apply needs pip install '.[spark]' and Java 17 or 21"),
        (
            "sql",
            "--apply needs pip install '.[spark]', Java 17 or 21 and catalog 'lake' defined as type: jdbc instead of "
            "sql (README, Catalogs)",
        ),
    ],
)
def test_what_apply_needs_depends_on_whether_spark_knows_the_catalog(kind: str, needed: str) -> None:
    settings = SettingsDocument.model_validate({"catalogs": {"lake": {"properties": {"type": kind}}}})
    assert what_apply_needs(settings, "lake") == needed


def test_a_shell_command_of_a_proposal_is_completed_with_the_settings_and_sql_is_not() -> None:
    trim = "planning-health maintain lake.a.t --trim --no-rewrite --spec-id 0"
    assert with_settings(f"{trim} --apply", "/my s.yaml") == f"{trim} --settings '/my s.yaml' --apply"
    assert with_settings(f"{trim} --apply", None) == f"{trim} --apply"
    assert with_settings("CALL x()", "/s.yaml") == "CALL x()"


def test_a_hostile_table_name_stays_one_word_of_the_command() -> None:
    command = maintain_command("lake.a.`t; rm -rf $HOME`", {"actions": ["rewrite_manifests"]})
    assert command == "planning-health maintain 'lake.a.`t; rm -rf $HOME`' --apply"
