"""Which tables a run measures: all that the settings include, or those that are due."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages import discover as module
from planning_health.stages.discover import discover
from planning_health.stages.run_record import known_tables

ORDERS, LOGS, NEW = (TableName("lake", ("a",), name) for name in ("orders", "logs", "new"))


@pytest.fixture
def settings(tmp_path: Path) -> SettingsDocument:
    return SettingsDocument.model_validate(
        {
            "home": str(tmp_path),
            "catalogs": {"lake": {"properties": {"type": "rest"}}},
            "tables": [
                {"match": "lake.a.logs", "every": "P28D"},
                {"match": "lake.a.new", "every": "P7D"},
                {"match": "*"},
            ],
        }
    )


def measured(settings: SettingsDocument, table: TableName, days: float, **failed: str) -> None:
    """A run of the same Dag measured the table, and one more, some days ago."""
    folder = RunFolder(settings.home, "planning_health_weekly", f"{table}-{days}")
    envelope = folder.write_result("measure", data={"tables": [str(table), "lake.a.gone"], "failed": failed})
    path = Path(settings.home) / envelope.path
    at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"created_at": at}))


def discovered(settings: SettingsDocument, *, only_due: bool) -> dict[str, Any]:
    folder = RunFolder(settings.home, "planning_health_weekly", "now")
    with mock.patch.object(module, "discover_tables", return_value=[LOGS, NEW, ORDERS]):
        discover(settings, folder, only_due=only_due)
    data: dict[str, Any] = folder.require_result("discovery").data
    return data


def test_a_table_is_measured_when_its_interval_has_passed_or_it_never_was(settings: SettingsDocument) -> None:
    for days in (35, 7):
        measured(settings, LOGS, days)
    measured(settings, ORDERS, 1)
    found = discovered(settings, only_due=True)
    assert found["tables"] == [str(NEW), str(ORDERS)]
    assert list(found["not_due"]) == [str(LOGS)]
    assert known_tables(settings) == sorted(map(str, (LOGS, NEW, ORDERS)))


@pytest.mark.parametrize(("days", "due"), [(24, False), (26, True), (28, True)])
def test_runs_need_not_begin_to_the_minute(settings: SettingsDocument, days: float, due: bool) -> None:
    measured(settings, LOGS, days)
    assert (str(LOGS) in discovered(settings, only_due=True)["tables"]) == due


def test_a_table_that_could_not_be_measured_is_tried_again(settings: SettingsDocument) -> None:
    measured(settings, LOGS, 28)
    measured(settings, LOGS, 1, **{str(LOGS): "no"})
    assert str(LOGS) in discovered(settings, only_due=True)["tables"]


def test_a_run_by_hand_measures_all(settings: SettingsDocument) -> None:
    measured(settings, LOGS, 1)
    assert discovered(settings, only_due=False)["tables"] == [str(LOGS), str(NEW), str(ORDERS)]


def test_only_requested_tables_are_measured_even_when_they_are_not_due(settings: SettingsDocument) -> None:
    measured(settings, LOGS, 1)
    folder = RunFolder(settings.home, "planning_health_weekly", "now")
    with mock.patch.object(module, "discover_tables", return_value=[LOGS, NEW, ORDERS]):
        discover(settings, folder, only_due=True, requested=["lake.a.logs"])
        with pytest.raises(InputError, match=r"'lake\.a\.typo' was requested, but is not one that"):
            discover(settings, folder, requested=["lake.a.typo"])
    assert folder.require_result("discovery").data == {
        "tables": [str(LOGS)],
        "not_due": {str(NEW): "not requested", str(ORDERS): "not requested"},
    }
