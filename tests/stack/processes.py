"""Services as processes: each in a process group of its own, and ended with all that it started."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

_HEALTHY_SECONDS = 300
_GRACE_SECONDS = 30


class MissingToolError(AssertionError):
    """A program of the operating system that the stack needs is not installed."""


def program(name: str, hint: str, *, folders: Sequence[Path] = ()) -> str:
    """The path of a program.

    Args:
        name: the program.
        hint: how it is installed.
        folders: where it is looked for besides ``PATH``; the virtual environment comes first.

    Raises:
        MissingToolError: when it is nowhere; says how it is installed.
    """
    places = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), *map(str, folders)]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        raise MissingToolError(f"{name} was not found, which the stack test needs: {hint}")
    return found


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    *,
    user: str | None = None,
    ending: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[Any]]:
    """A process until the end of the block, when it gets the signal ``ending``; its output is appended to ``log``."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command),
            stdout=output,
            stderr=output,
            env=dict(environment),
            user=user,
            cwd=tempfile.gettempdir(),
            process_group=0,
        )
    try:
        yield process
    finally:
        _end(process, ending)


def wait_until_healthy(
    service: Mapping[str, Any], process: subprocess.Popen[Any], log: Path, environment: Mapping[str, str]
) -> None:
    """Repeats the health check that the Compose file gives a service until it passes.

    Raises:
        AssertionError: when the process ended, or the check did not pass in time; shows the end of the log.
    """
    kind, *check = service["healthcheck"]["test"]
    assert kind == "CMD"
    deadline = time.monotonic() + _HEALTHY_SECONDS
    while subprocess.run(check, env=dict(environment), capture_output=True, check=False).returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        assert process.poll() is None, f"{log.stem} ended with status {process.returncode}:\n{tail}"
        assert time.monotonic() < deadline, f"{log.stem} is not healthy after {_HEALTHY_SECONDS} s:\n{tail}"
        time.sleep(0.5)


def _end(process: subprocess.Popen[Any], ending: signal.Signals) -> None:
    """Asks the process to end, waits, and ends what is left of its group and of what it started in other groups."""
    family: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(ending)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for survivor in family:
        with suppress(psutil.NoSuchProcess):
            survivor.kill()  # a process whose number was given to another since is not touched
    psutil.wait_procs(family, timeout=_GRACE_SECONDS)
