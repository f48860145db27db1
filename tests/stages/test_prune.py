"""Old runs go, with their reports; the newest stay, and so does what is not ours."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planning_health.run_folder import RunFolder, run_key, write_bytes
from planning_health.settings import SettingsDocument
from planning_health.stages import prune as module
from planning_health.stages.prune import prune
from planning_health.stages.run_record import start_run

WEEKLY = "planning_health_weekly"


@pytest.fixture
def settings(tmp_path: Path) -> SettingsDocument:
    return SettingsDocument.model_validate(
        {
            "home": str(tmp_path),
            "catalogs": {"lake": {"properties": {"type": "rest"}}},
            "retention": {"runs_days": 30},
        }
    )


def run(settings: SettingsDocument, run_id: str, days: float, dag_id: str = WEEKLY) -> RunFolder:
    """A run that began some days ago, with a table's results and a published report."""
    folder = RunFolder(settings.home, dag_id, run_id)
    start_run(settings, folder)
    record = json.loads((Path(folder.url) / "run.json").read_text())
    began = datetime.now(UTC) - timedelta(days=days)
    (Path(folder.url) / "run.json").write_text(json.dumps(record | {"started_at": began.isoformat()}))
    write_bytes(f"{folder.url}/tables/lake/a/metadata/data_files/part-0.parquet", b"x")
    write_bytes(f"{settings.home}/reports/2026-W01-{run_key(run_id)}/index.html", b"x")
    return folder


def ids(settings: SettingsDocument, dag_id: str = WEEKLY) -> set[str]:
    files = Path(settings.home).glob(f"runs/{dag_id}/*/run.json")
    return {json.loads(file.read_text())["run_id"] for file in files}


def test_runs_beyond_the_retention_go_with_their_reports(settings: SettingsDocument) -> None:
    for name, days in (("old", 60), ("older", 90), ("new", 7), ("newest", 0)):
        folder = run(settings, name, days)
    envelope = prune(settings, folder)
    assert ids(settings) == {"new", "newest"}
    assert len(list(Path(settings.home).glob("runs/*/*"))) == 2
    reports = {path.name for path in Path(settings.home).glob("reports/*")}
    assert reports == {f"2026-W01-{run_key(name)}" for name in ("new", "newest")}
    assert envelope.headline == {"removed": 2, "failed": 0, "left_for_next_time": 0}


def test_the_newest_runs_of_each_dag_stay_however_old_they_are(settings: SettingsDocument) -> None:
    for dag_id in (WEEKLY, "table_maintenance", "cli"):
        for days in (400, 300, 200):
            run(settings, f"{days}", days, dag_id)
    prune(settings, RunFolder(settings.home, WEEKLY, "now"))
    assert [ids(settings, dag_id) for dag_id in (WEEKLY, "table_maintenance", "cli")] == [{"300", "200"}] * 3


def test_the_run_that_prunes_stays(settings: SettingsDocument) -> None:
    own = run(settings, "own", 100)
    for days in (50, 40):
        run(settings, f"{days}", days)
    prune(settings, own)
    assert ids(settings) == {"own", "50", "40"}


def test_the_newest_report_stays(settings: SettingsDocument) -> None:
    write_bytes(f"{settings.home}/reports/latest/index.html", b"x")
    for days in (90, 60, 1):
        run(settings, f"{days}", days)
    prune(settings, RunFolder(settings.home, WEEKLY, "now"))
    assert (Path(settings.home) / "reports/latest/index.html").exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"dag_id": "x", "run_id": "y", "started_at": "1999-01-01"}'])
def test_a_folder_that_is_no_run_of_ours_is_left_alone(settings: SettingsDocument, content: str) -> None:
    foreign = Path(settings.home) / "runs" / WEEKLY / "mine"
    foreign.mkdir(parents=True)
    (foreign / "run.json").write_text(content)
    (foreign / "precious").touch()
    for days in (90, 60, 50):
        run(settings, f"{days}", days)
    prune(settings, RunFolder(settings.home, WEEKLY, "now"))
    assert (foreign / "precious").exists()


def test_a_removal_that_broke_off_is_found_again(settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    for days in (90, 60, 50):
        run(settings, f"{days}", days)
    rm = module.fsspec.implementations.local.LocalFileSystem.rm

    def breaks(self: object, path: str, **options: object) -> None:
        if path.endswith("/tables"):
            raise PermissionError(13, "Permission denied", path)
        rm(self, path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module.fsspec.implementations.local.LocalFileSystem, "rm", breaks)
        assert prune(settings, RunFolder(settings.home, WEEKLY, "now")).headline["failed"] == 1
    assert ids(settings) == {"90", "60", "50"}
    assert prune(settings, RunFolder(settings.home, WEEKLY, "now")).headline["removed"] == 1
    assert ids(settings) == {"60", "50"}


def test_at_most_so_many_are_removed_at_once(settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REMOVED", 2)
    for days in range(60, 66):
        run(settings, f"{days}", days)
    envelope = prune(settings, RunFolder(settings.home, WEEKLY, "now"))
    assert envelope.headline == {"removed": 2, "failed": 0, "left_for_next_time": 2}
    assert ids(settings) == {"60", "61", "62", "63"}
