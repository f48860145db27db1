"""The disk is full where the run keeps its results: before, while and after the table is changed."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from tests.faults.conftest import Conclude, Make, Outcome
from tests.reports import sample_run

from planning_health.errors import WorkFailedError
from planning_health.stages.report import report

pytestmark = pytest.mark.spark

EACH = pytest.mark.parametrize("action", ["set_properties", "rewrite_manifests", "trim_statistics"])


@pytest.fixture
def fill_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Fills the disk for files whose path has a part: they are begun and cut off."""
    original = LocalFileSystem.pipe_file

    def fill(part: str) -> None:
        def pipe_file(self: Any, path: str, value: bytes, **given: Any) -> None:
            if part in path:
                original(self, path, value[: len(value) // 2], **given)
                raise OSError(errno.ENOSPC, "No space left on device")
            original(self, path, value, **given)

        monkeypatch.setattr(LocalFileSystem, "pipe_file", pipe_file)

    return fill


@EACH
def test_the_disk_is_full_when_the_result_is_written(
    action: str, make: Make, conclude: Conclude, fill_disk: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is changed and the run cannot say so: it fails aloud, and finds its work when it runs again."""
    table = make(action)
    fill_disk("/action.json")
    with pytest.raises(WorkFailedError, match=r"action\.json cannot be written: No space left on device"):
        table.act()
    monkeypatch.undo()
    assert table.run.read_result("action", table.name) is None
    assert table.own_snapshots(table.iceberg()) or action == "set_properties"
    table.check_rows()
    snapshots = len(table.iceberg().snapshots())
    conclude(table, "no result")
    assert len(table.iceberg().snapshots()) == snapshots


@pytest.mark.parametrize("action", ["set_properties", "all"])
def test_the_disk_is_full_when_the_earlier_property_values_are_kept(
    action: str, make: Make, conclude: Conclude, fill_disk: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be undone is not done."""
    table = make(action)
    before = table.iceberg()
    fill_disk("/property_changes.json")
    says = table.act()
    monkeypatch.undo()
    assert says["state"] == "failed"
    assert "No space left on device" in says["reason"]
    assert table.iceberg().metadata_location == before.metadata_location
    table.check_rows()
    table.check_truth(says, dict(before.properties))
    conclude(table, says["state"])


@EACH
def test_the_disk_is_full_when_the_lease_is_taken(
    action: str, make: Make, conclude: Conclude, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(action)
    before = table.iceberg()
    original = Path.write_bytes

    def write_bytes(path: Path, content: bytes) -> int:
        if "/locks/" in str(path):
            original(path, content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", write_bytes)
        says = table.act()
    assert says["state"] == "failed"
    assert "No space left on device" in says["reason"]
    assert not list(Path(table.settings.home, "locks").iterdir())
    assert table.iceberg().metadata_location == before.metadata_location
    table.check_rows()
    table.check_truth(says, dict(before.properties))
    conclude(table, says["state"])


@pytest.mark.parametrize("name", ["report.json", "index.html", "report.md", "mail.html"])
@pytest.mark.parametrize("folder", ["report", "latest"])
def test_the_disk_is_full_at_the_report(
    folder: str,
    name: str,
    tmp_path: Path,
    outcome: Outcome,
    fill_disk: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reports that are there stay whole, and the run's is made from its stored results afterwards."""
    report(sample_run.SETTINGS, sample_run.last_week(tmp_path).folder)
    run = sample_run.this_week(tmp_path)
    fill_disk(f"{folder}/{name}")
    with pytest.raises(WorkFailedError, match="No space left on device"):
        report(sample_run.SETTINGS, run.folder)
    assert run.folder.read_result("report") is None
    for path in tmp_path.rglob("report.json"):
        json.loads(path.read_text())
    for path in tmp_path.rglob("*.html"):
        assert path.read_text().rstrip().endswith("</html>")
    monkeypatch.undo()
    again = report(sample_run.SETTINGS, run.folder)
    latest = json.loads((tmp_path / "reports" / "latest" / "report.json").read_text())
    assert latest["run_id"] == run.run_id
    assert not list(tmp_path.rglob("*.tmp"))
    outcome("no result", again.status, "nothing")
