"""The job ``act`` as a process of its own that dies at a marked point: ``python -m tests.faults.victim POINT ARGS``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

import pytest
from tests.faults.operations import Commit, Seam

from planning_health.jobs import act as act_job
from planning_health.jobs.arguments import run_job
from planning_health.maintenance.action import Action


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def before(seam: Seam) -> None:
    """Everything is staged; the table is as it was."""

    def on_commit(_: Commit) -> None:
        die()

    seam.at(on_commit)


def after(seam: Seam) -> None:
    """The commit has landed; neither the client nor the run has noticed."""

    def on_commit(commit: Commit) -> None:
        commit()
        die()

    seam.at(on_commit)


def between(seam: Seam) -> None:
    """The first commit, of the properties, is done."""
    seam.after(die)


def jvm(seam: Seam) -> None:
    """Spark's process dies alone."""

    def on_commit(_: Commit) -> None:
        os.kill(seam.spark.sparkContext._gateway.proc.pid, signal.SIGKILL)

    seam.at(on_commit)


def jvm_after(seam: Seam) -> None:
    """Spark's process dies alone, right after the commit."""

    def on_commit(commit: Commit) -> None:
        commit()
        os.kill(seam.spark.sparkContext._gateway.proc.pid, signal.SIGKILL)

    seam.at(on_commit)


def nowhere(_: Seam) -> None:
    """It lives."""


POINTS: Final[dict[str, Callable[[Seam], None]]] = {
    function.__name__: function for function in (before, after, between, jvm, jvm_after, nowhere)
}


def main() -> None:
    fault = POINTS[sys.argv.pop(1)]
    work = Action._work

    def doomed(action: Action) -> None:
        fault(Seam(action.spark, pytest.MonkeyPatch()))
        work(action)

    pytest.MonkeyPatch().setattr(Action, "_work", doomed)
    run_job(act_job.job)


if __name__ == "__main__":
    main()
