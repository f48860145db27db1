from __future__ import annotations

from typing import Any

import pytest

from planning_health.reports.command_line import maintain_command


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


def test_a_hostile_table_name_stays_one_word_of_the_command() -> None:
    command = maintain_command("lake.a.`t; rm -rf $HOME`", {"actions": ["rewrite_manifests"]})
    assert command == "planning-health maintain 'lake.a.`t; rm -rf $HOME`' --apply"
