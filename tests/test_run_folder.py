"""Results are written whole, read back by run, and never hold what JSON cannot."""

from __future__ import annotations

import errno
import json
import stat
from pathlib import Path

import pytest
from fsspec.implementations.local import LocalFileSystem
from pydantic import ValidationError
from tests.maintenance.pictures import picture

from planning_health.envelope import Envelope
from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.maintenance.lease import lease
from planning_health.metadata import save
from planning_health.run_folder import RunFolder, paths_below, read_bytes, results_below, run_key, write_bytes
from planning_health.settings import SettingsDocument
from planning_health.stages.run_record import start_run

ORDERS = TableName.parse("lake.sales.`Order-Items v1.5`")


def folder(home: Path, run_id: str = "manual__2026-01-01T00:00:00+00:00") -> RunFolder:
    return RunFolder(str(home), "planning_health_weekly", run_id)


def test_a_run_key_is_safe_for_paths_and_differs_for_ids_that_look_alike() -> None:
    key = run_key("manual__2026-01-01T00:00:00+00:00")
    assert key.startswith("manual__2026-01-01T00_00_00_00_00-")
    assert run_key("a:b") != run_key("a_b")


def test_an_envelope_is_the_result_file_without_its_data(tmp_path: Path) -> None:
    run = folder(tmp_path)
    envelope = run.write_result("health", table=ORDERS, snapshot_id=7, headline={"manifests": 3}, data={"rows": [1, 2]})
    document = json.loads((tmp_path / envelope.path).read_bytes())
    assert document.pop("data") == {"rows": [1, 2]}
    assert Envelope.model_validate(document) == envelope
    assert run.require_result("health", ORDERS).data == {"rows": [1, 2]}
    assert run.tables() == [ORDERS]


def test_numbers_that_json_cannot_hold_are_not_measured(tmp_path: Path) -> None:
    run = folder(tmp_path)
    run.write_result("health", headline={"ratio": float("nan")}, data={"deep": [float("inf"), 1.5]})
    result = run.require_result("health")
    assert result.headline == {"ratio": None}
    assert result.data == {"deep": [None, 1.5]}


def test_a_headline_holds_at_most_twenty_numbers(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="at most 20"):
        folder(tmp_path).write_result("health", headline={str(number): number for number in range(21)})


@pytest.mark.parametrize("content", [b"{", b'{"schema_version": 9}', b"[]"])
def test_a_damaged_result_is_named(tmp_path: Path, content: bytes) -> None:
    run = folder(tmp_path)
    write_bytes(f"{run.url}/health.json", content)
    with pytest.raises(WorkFailedError, match=r"health\.json cannot be read"):
        run.read_result("health")


def test_a_missing_result_is_none_or_names_the_step(tmp_path: Path) -> None:
    run = folder(tmp_path)
    assert run.read_result("health") is None
    with pytest.raises(WorkFailedError, match="'health'"):
        run.require_result("health")


def test_results_can_live_on_another_filesystem() -> None:
    run = RunFolder("memory://home", "cli", "r")
    run.write_result("health", table=ORDERS, data=[1])
    assert run.require_result("health", ORDERS).data == [1]
    assert run.tables() == [ORDERS]


def test_writing_replaces_the_whole_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    url = str(tmp_path / "deep" / "file")
    write_bytes(url, b"a much longer first content")
    write_bytes(url, b"second")
    assert read_bytes(url) == b"second"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


def test_nobody_else_sees_what_is_recorded(tmp_path: Path) -> None:
    write_bytes(str(tmp_path / "home" / "runs" / "cli" / "result.json"), b"{}")
    made = [tmp_path / "home", tmp_path / "home" / "runs", tmp_path / "home" / "runs" / "cli"]
    assert [stat.S_IMODE(folder.stat().st_mode) & 0o027 for folder in made] == [0, 0, 0]
    assert stat.S_IMODE((made[-1] / "result.json").stat().st_mode) & 0o137 == 0


def test_everything_below_the_home_is_closed_to_others(tmp_path: Path) -> None:
    """What a run writes: results, recordings, the settings that it ran with, reports, a lease."""
    home, metadata = tmp_path / "home", picture([[[1], [2]]])
    run, table = folder(home), metadata.info.name
    catalogs = {"lake": {"properties": {"type": "rest", "uri": "http://c"}}}
    start_run(SettingsDocument.model_validate({"home": str(home), "catalogs": catalogs}), run)
    save(metadata, run.metadata_url(table))
    run.write_result("health", table=table, data={})
    with lease(str(home), table, "run", "application"):
        modes = {path: path.stat().st_mode for path in home.rglob("*")}
    assert {path.suffix for path, mode in modes.items() if stat.S_ISREG(mode)} == {".json", ".parquet"}
    assert home / "locks" / f"{table.dotted}.json" in modes
    open_to_others = [path for path, mode in modes.items() if mode & (0o027 if stat.S_ISDIR(mode) else 0o137)]
    assert open_to_others == []


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "file")
    write_bytes(url, b"first")

    def pipe_file(_: object, path: str, value: bytes) -> None:
        Path(path).write_bytes(value[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LocalFileSystem, "pipe_file", pipe_file)
    with pytest.raises(WorkFailedError, match="file cannot be written: No space left on device"):
        write_bytes(url, b"second")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"first"}


def test_a_home_whose_name_reads_like_a_pattern_is_searched_all_the_same(tmp_path: Path) -> None:
    home = tmp_path / "h[1] *?"
    folder = RunFolder(str(home), "cli", "r")
    folder.write_result("conclusion", data=1)
    RunFolder(str(tmp_path / "h1 xy"), "cli", "other").write_result("conclusion", data=2)
    assert paths_below(str(home), "runs", "*", "*", "conclusion.json") == [folder.result_path("conclusion")]
    assert [result.data for result in results_below(str(home), "runs", "cli", "*", "conclusion.json")] == [1]


def test_a_damaged_result_is_passed_over_among_others(tmp_path: Path) -> None:
    for run in ("a", "b"):
        RunFolder(str(tmp_path), "cli", run).write_result("conclusion", data=run)
    (tmp_path / RunFolder(str(tmp_path), "cli", "a").result_path("conclusion")).write_text("{")
    assert [result.data for result in results_below(str(tmp_path), "runs", "*", "*", "conclusion.json")] == ["b"]
