"""Several tables are recorded at the same time; what is timed runs alone, and one table's trouble stays its own."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from planning_health.envelope import Envelope
from planning_health.errors import NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages import measure as module
from planning_health.stages.table_stage import MEASUREMENT

TABLES = [TableName("lake", ("a",), f"t{number}") for number in range(5)]
BROKEN = TABLES[2]


class Cores:
    """All that the step asks of a session before it records."""

    def __init__(self, count: int) -> None:
        self.sparkContext = self
        self.defaultParallelism = count


@pytest.fixture
def settings(tmp_path: Path) -> SettingsDocument:
    return SettingsDocument.model_validate(
        {"home": str(tmp_path), "catalogs": {"lake": {"properties": {"type": "rest"}}}}
    )


def test_as_many_tables_as_cores_are_recorded_at_once_and_none_while_planning_is_timed(
    settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    meeting = Barrier(2, timeout=60)
    recording: set[TableName] = set()
    timed: list[TableName] = []

    def record(_settings: Any, _folder: Any, table: TableName, *_: Any) -> None:
        recording.add(table)
        if table != TABLES[-1]:
            meeting.wait()  # only two that run at once pass
        recording.discard(table)

    def finish(_settings: Any, folder: RunFolder, table: TableName, *_: Any) -> Envelope:
        assert not recording
        timed.append(table)
        return folder.write_result(MEASUREMENT, table=table)

    monkeypatch.setattr(module, "_record", record)
    monkeypatch.setattr(module, "_measure_one", finish)
    session: Any = Cores(2)
    envelope = module.measure(settings, RunFolder(settings.home, "cli", "many"), TABLES, spark=session)
    assert timed == TABLES
    assert envelope.headline == {"tables": 5, "tables_failed": 0}


def test_a_table_whose_recording_fails_leaves_the_others_to_be_measured(
    settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(_settings: Any, _folder: Any, table: TableName, *_: Any) -> None:
        raise (
            NotMeasurableError("a manifest is missing")
            if table == BROKEN
            else RuntimeError(f"surprise of {table.name}")
        )

    monkeypatch.setattr(module, "_record", record)
    session: Any = Cores(3)
    folder = RunFolder(settings.home, "cli", "some")
    module.measure(settings, folder, TABLES, spark=session)
    reasons = [folder.require_result(MEASUREMENT, table).reason for table in TABLES]
    assert reasons[2] == "a manifest is missing"
    assert reasons[4] == "RuntimeError: surprise of t4"
