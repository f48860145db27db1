"""The lease: one holder at a time, abandoned ones are taken over, the holder is named."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import socket
import subprocess
import time
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from uuid import uuid4

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


def test_a_heartbeat_of_a_clock_that_is_ahead_goes_by_the_stores_clock(tmp_path: Path) -> None:
    path = write(tmp_path, heartbeat=(datetime.now(UTC) + timedelta(days=400)).isoformat())
    with pytest.raises(LeaseHeldError, match="run 'other'"), lease(str(tmp_path), TABLE, "run"):
        pass
    os.utime(path, (time.time() - 660, time.time() - 660))
    with lease(str(tmp_path), TABLE, "run"):
        assert json.loads(path.read_text())["run_id"] == "run"


def test_the_lease_of_a_process_that_ended_on_this_host_is_taken_over_at_once(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    write(tmp_path, host=socket.gethostname(), pid=ended.pid)
    with lease(str(tmp_path), TABLE, "run"):
        pass


@pytest.mark.parametrize("content", ["", '{"run_id"', "[]"])
def test_a_lease_that_cannot_be_read_is_held_until_it_is_old(tmp_path: Path, content: str) -> None:
    path = write(tmp_path)
    path.write_text(content)
    with pytest.raises(LeaseHeldError, match="cannot be read; try again"), lease(str(tmp_path), TABLE, "run"):
        pass
    old = (datetime.now(UTC) - timedelta(minutes=11)).timestamp()
    os.utime(path, (old, old))
    with lease(str(tmp_path), TABLE, "run"):
        assert json.loads(path.read_text())["run_id"] == "run"
    assert list((tmp_path / "locks").iterdir()) == []


def test_only_the_lease_that_was_seen_as_abandoned_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, run_id="slow", heartbeat=None)
    end = lease_module._end

    def others_first(url: str, token: str | None) -> None:
        write(tmp_path, run_id="faster", token=str(uuid4()))
        end(url, token)

    monkeypatch.setattr(lease_module, "_end", others_first)
    with pytest.raises(LeaseHeldError, match="by run 'faster'"), lease(str(tmp_path), TABLE, "run"):
        pass
    assert json.loads(path.read_text())["run_id"] == "faster"


def test_a_lease_needs_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr(os, "link", refuse)
    with (
        lease(str(tmp_path), TABLE, "one"),
        pytest.raises(LeaseHeldError, match="by run 'one'"),
        lease(str(tmp_path), TABLE, "two"),
    ):
        pass
    assert list((tmp_path / "locks").iterdir()) == []


ROUNDS = 50


def race(home: Path, stale: bool, start: Barrier, told: Queue[tuple[int, int]]) -> None:
    """Goes for the lease in each round when the others do; tells how often it held it, how often not alone."""
    held = not_alone = 0
    for number in range(ROUNDS):
        if stale and start.wait(30) == 0:
            write(home, token=f"stale {number}", heartbeat="2020-01-01T00:00:00+00:00")
        start.wait(30)
        try:
            with lease(str(home), TABLE, f"run {os.getpid()}"):
                held += 1
                try:
                    os.close(os.open(home / "inside", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    not_alone += 1
                else:
                    time.sleep(0.002)
                    (home / "inside").unlink()
        except LeaseHeldError:
            pass
    told.put((held, not_alone))


@pytest.mark.parametrize("stale", [False, True])
def test_processes_that_race_for_a_lease_never_hold_it_together(tmp_path: Path, stale: bool) -> None:
    spawn = multiprocessing.get_context("spawn")
    start, told = spawn.Barrier(4), spawn.Queue()
    racers = [spawn.Process(target=race, args=(tmp_path, stale, start, told)) for _ in range(4)]
    for racer in racers:
        racer.start()
    results = [told.get(timeout=60) for _ in racers]
    for racer in racers:
        racer.join(30)
    assert sum(held for held, _ in results) >= ROUNDS
    assert sum(not_alone for _, not_alone in results) == 0
    assert {path.name for path in (tmp_path / "locks").iterdir()} == set()


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
