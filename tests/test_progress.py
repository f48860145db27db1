"""Long work says where it is: in the log always, on a terminal while it lasts, and nowhere in a pipe."""

from __future__ import annotations

import pytest
from rich.console import Console

from planning_health.cli import output
from planning_health.maintenance.steps import StepLog
from planning_health.progress import listening, progress


def test_progress_is_logged_and_told_to_the_listener_while_it_listens(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "planning_health")
    told: list[tuple[str, int, int]] = []
    with listening(lambda *what: told.append(what)):
        progress("measured lake.a.b: ok", 3, 14)
    progress("afterwards")
    assert told == [("measured lake.a.b: ok", 3, 14)]
    assert [record.getMessage() for record in caplog.records] == ["measured lake.a.b: ok (3 of 14)", "afterwards"]


def test_each_step_of_an_action_is_told_when_it_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "planning_health")
    steps = StepLog()
    with steps.step("rewrite_manifests"):
        pass
    with pytest.raises(ValueError, match="no"), steps.step("verify"):
        raise ValueError("no")
    told = [record.getMessage() for record in caplog.records]
    assert told == ["rewrite manifests …", "rewrite manifests: ok, 0.0 s", "verify …", "verify: no, 0.0 s"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_shows_what_work_is_at_and_a_pipe_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    errors = Console(force_terminal=terminal, width=100, record=False)
    monkeypatch.setattr(output, "errors", errors)
    with errors.capture() as captured, output.working("measuring 2 tables") as shown:
        progress("measured lake.a.[b]: ok", 1, 2)
        shown.refresh()
    assert ("measured lake.a.[b]: ok" in captured.get()) == terminal
    assert terminal or captured.get() == ""
