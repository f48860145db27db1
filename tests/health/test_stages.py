"""The steps validate, diagnose and append_history on a run folder with recorded tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import DateType
from tests.health.builder import DELETED, Entry, TableBuilder

from planning_health.health.history import read_history
from planning_health.identifiers import TableName
from planning_health.metadata import save
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.append_history import append_history
from planning_health.stages.diagnose import diagnose
from planning_health.stages.validate import validate

SOUND, CONTRADICTORY, BROKEN = (TableName("lake", ("test",), name) for name in ("sound", "contradictory", "broken"))
REASON = "manifest m1.avro is missing"


@pytest.fixture
def settings(tmp_path: Path) -> SettingsDocument:
    SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse")
    properties = {"type": "jdbc", "uri": "jdbc:sqlite:${home}/catalog.db", "warehouse": "${home}/warehouse"}
    return SettingsDocument.model_validate(
        {
            "home": str(tmp_path),
            "catalogs": {"lake": {"properties": properties}},
            "history": {"catalog": "lake"},
            "tables": [{"match": "*", "queries": [{"name": "day", "where": "d = DATE'2026-01-01'"}]}],
        }
    )


@pytest.fixture
def run_folder(settings: SettingsDocument) -> RunFolder:
    folder = RunFolder(settings.home, "cli", "run:1")
    record(folder, SOUND, table())
    contradictory = table()
    contradictory.manifests[0]["deleted_files_count"] = 99
    record(folder, CONTRADICTORY, contradictory)
    folder.write_result("measurement", table=BROKEN, status="failed", reason=REASON)
    return folder


def table() -> TableBuilder:
    builder = TableBuilder({"d": DateType()}, [[("d", "day")]], recorded=["d"])
    for _ in range(2):
        builder.manifest(Entry((1,)), Entry((99,)), Entry((50,), status=DELETED))
    return builder


def record(folder: RunFolder, name: TableName, builder: TableBuilder) -> None:
    metadata = builder.build()
    save(metadata, folder.metadata_url(name))
    folder.write_result(
        "measurement",
        table=name,
        table_uuid=metadata.info.table_uuid,
        snapshot_id=metadata.info.snapshot_id,
        data={"measured_at": metadata.info.measured_at},
    )


def data_of(folder: RunFolder, kind: str, name: TableName | None = None) -> Any:
    return folder.require_result(kind, name).data


def test_only_the_contradictory_table_is_blocked(settings: SettingsDocument, run_folder: RunFolder) -> None:
    envelope = validate(settings, run_folder)
    tables = data_of(run_folder, "validation")["tables"]
    assert {name: outcome["blocking"] for name, outcome in tables.items()} == {
        "lake.test.contradictory": True,
        "lake.test.sound": False,
    }
    assert "deleted_entries_agree" in tables["lake.test.contradictory"]["reason"]
    assert envelope.headline == {"tables": 2, "tables_blocked": 1, "tables_unhealthy": 2}


def test_steps_of_a_table_read_no_other_tables_validation(settings: SettingsDocument, run_folder: RunFolder) -> None:
    validate(settings, run_folder)
    (Path(run_folder.home) / run_folder.result_path("validation")).unlink()
    assert diagnose(settings, run_folder, CONTRADICTORY).status == "skipped"
    assert diagnose(settings, run_folder, SOUND).status == "ok"


def test_a_recording_that_cannot_be_read_blocks_its_table(settings: SettingsDocument, run_folder: RunFolder) -> None:
    (Path(run_folder.metadata_url(SOUND)) / "table.json").unlink()
    validate(settings, run_folder)
    outcome = data_of(run_folder, "validation")["tables"]["lake.test.sound"]
    assert outcome["blocking"]
    assert "table.json is missing" in outcome["reason"]


def test_a_run_without_measured_tables_validates_nothing(settings: SettingsDocument) -> None:
    assert validate(settings, RunFolder(settings.home, "cli", "empty")).headline["tables"] == 0


def test_diagnose_writes_the_health_result(settings: SettingsDocument, run_folder: RunFolder) -> None:
    envelope = diagnose(settings, run_folder, SOUND)
    assert envelope.status == "ok"
    assert (envelope.headline["manifests"], envelope.headline["partition_range_days"]) == (2, 98)
    assert len(envelope.headline) <= 20
    data = data_of(run_folder, "health", SOUND)
    assert data["state"] == "warning"
    assert len(data["steps"]) == 6
    assert "Predicates on d can prune 100% of the files" in data["steps"][2]["evidence"]


def test_a_table_that_was_not_measured_is_skipped_with_the_reason(
    settings: SettingsDocument, run_folder: RunFolder
) -> None:
    envelope = diagnose(settings, run_folder, BROKEN)
    assert (envelope.status, envelope.reason) == ("skipped", f"not measured: {REASON}")


def test_history_holds_signals_queries_and_unmeasured_tables(settings: SettingsDocument, run_folder: RunFolder) -> None:
    diagnose(settings, run_folder, SOUND)
    predicate = {"name": "day", "data_manifests": {"total": 2, "scanned": 2, "skipped": 0}, "data_files": {"result": 1}}
    run_folder.write_result("planning", table=SOUND, data={"predicates": [predicate]})
    for _ in range(2):  # a retried task
        envelope = append_history(settings, run_folder)
    rows = read_history(settings, SOUND).to_pylist()
    values = {(item["scope"], item["scope_key"], item["signal"]): item["value"] for item in rows}
    assert len(values) == len(rows)
    assert values["table", "", "state"] == 1
    assert values["table", "", "manifests"] == 2
    assert values["field", "0.d_0", "overlap_depth_mean"] == 2
    assert values["query", "day", "manifests_opened"] == 2
    assert values["query", "day", "files_planned"] == 1
    assert {item["run_id"] for item in rows} == {"run:1"}
    (unmeasured,) = read_history(settings, BROKEN).to_pylist()
    assert (unmeasured["signal"], unmeasured["value"], unmeasured["level"]) == ("state", None, "not_measured")
    assert envelope.headline == {"rows": len(rows) + 2, "tables": 3}


def test_without_a_configured_history_the_step_is_skipped(settings: SettingsDocument, run_folder: RunFolder) -> None:
    envelope = append_history(settings.model_copy(update={"history": None}), run_folder)
    assert (envelope.status, envelope.reason) == ("skipped", "no history table is configured")
