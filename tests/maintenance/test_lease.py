"""The lease: one holder at a time, abandoned ones are taken over, the holder is named."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planning_health.identifiers import TableName
from planning_health.maintenance import lease as lease_module
from planning_health.maintenance.lease import LeaseHeldError, lease, lease_url

TABLE = TableName("lake", ("a.b",), "it's/odd")


def write(home: Path, **changes: object) -> Path:
    path = Path(lease_url(str(home), TABLE))
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "run_id": "other",
        "host": "elsewhere",
        "pid": 1,
        "spark_application_id": "app-7",
        "token": "t",
        "heartbeat": datetime.now(UTC).isoformat(),
    }
    path.write_text(json.dumps(document | changes))
    return path


def test_the_lease_lies_below_locks_and_is_gone_afterwards(tmp_path: Path) -> None:
    with lease(str(tmp_path), TABLE, "run", "app-1"):
        (path,) = (tmp_path / "locks").iterdir()
        document = json.loads(path.read_text())
        assert (document["run_id"], document["host"], document["pid"], document["spark_application_id"]) == (
            "run",
            socket.gethostname(),
            os.getpid(),
            "app-1",
        )
    assert list((tmp_path / "locks").iterdir()) == []


def test_a_live_holder_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    with (
        pytest.raises(LeaseHeldError, match=r"by run 'other' on elsewhere \(process 1, Spark application app-7"),
        lease(str(tmp_path), TABLE, "run"),
    ):
        pass


@pytest.mark.parametrize(
    "changes",
    [
        {"heartbeat": (datetime.now(UTC) - timedelta(minutes=11)).isoformat()},
        {"heartbeat": "damaged"},
        {"heartbeat": None},
    ],
)
def test_a_stale_lease_is_taken_over(tmp_path: Path, changes: dict[str, object]) -> None:
    write(tmp_path, **changes)
    with lease(str(tmp_path), TABLE, "run"):
        assert json.loads(Path(lease_url(str(tmp_path), TABLE)).read_text())["run_id"] == "run"


def test_the_lease_of_a_process_that_ended_on_this_host_is_taken_over_at_once(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    write(tmp_path, host=socket.gethostname(), pid=ended.pid)
    with lease(str(tmp_path), TABLE, "run"):
        pass


def test_a_half_written_lease_is_taken_over(tmp_path: Path) -> None:
    write(tmp_path).write_text('{"run_id"')
    with lease(str(tmp_path), TABLE, "run"):
        pass


def test_the_heartbeat_goes_on_and_a_taken_lease_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT", timedelta(milliseconds=10))
    path = Path(lease_url(str(tmp_path), TABLE))
    with lease(str(tmp_path), TABLE, "run"):
        before = path.stat().st_mtime_ns
        for _ in range(200):
            if path.stat().st_mtime_ns != before:
                break
            lease_module.threading.Event().wait(0.01)
        assert path.stat().st_mtime_ns != before
        write(tmp_path)
    assert json.loads(path.read_text())["run_id"] == "other"


def test_object_stores_are_leased_too() -> None:
    home = "memory://lease-test"
    with lease(home, TABLE, "one"), pytest.raises(LeaseHeldError), lease(home, TABLE, "two"):
        pass
    with lease(home, TABLE, "three"):
        pass
