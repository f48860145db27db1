"""The actions that were taken since the last report, collected from the folders of the runs that took them.

A rollback lies in the folder of the run that it undoes: it is an action of its own, and the undone one counts no more.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from planning_health.envelope import ResultFile
from planning_health.errors import WorkFailedError
from planning_health.reports.effects import effect, effect_sentence
from planning_health.reports.model import Action, ActionStep
from planning_health.reports.reading import mapping, mappings, number, text
from planning_health.run_folder import CLI_DAG_ID, paths_below, read_result
from planning_health.wording import (
    anchor,
    clock,
    counted,
    joined,
    parse_time,
    state_name,
    visible,
    visible_lines,
)

MAINTENANCE_DAGS: Final = ("table_maintenance", CLI_DAG_ID)
KINDS: Final = ("action", "rollback")
ROLLED_BACK: Final = "rolled_back"
"""State of a rollback that was made, and of the action that it undid."""

MAX_ACTIONS: Final = 200


def all_actions(home: str) -> list[Action]:
    """The actions of all maintenance runs that are kept, the newest first.

    Dry runs are left out: they did nothing. A damaged result file is passed over: one run's trouble must not cost the
    report.
    """
    found = [action for taken, undone in _results(home) for action in _actions(taken, undone)]
    return sorted(found, key=lambda action: (_time(action.at), action.table), reverse=True)


def actions_since(actions: Sequence[Action], since: datetime | None, run_id: str) -> list[Action]:
    """Those after ``since`` (all without it) and of this run."""
    recent = [
        action
        for action in actions
        if since is None or _time(action.at) > since.timestamp() or action.run_id == visible(run_id)
    ]
    return recent[:MAX_ACTIONS]


def _time(text_: str) -> float:
    parsed = parse_time(text_)
    return parsed.timestamp() if parsed else 0.0


def _results(home: str) -> Iterator[tuple[ResultFile | None, ResultFile | None]]:
    """What each run did to each table, and its rollback; one of them can be missing."""
    for dag_id in MAINTENANCE_DAGS:
        paths = (paths_below(home, "runs", dag_id, "*", "tables", "*", "*", f"{kind}.json") for kind in KINDS)
        for folder in sorted({posixpath.dirname(path) for found in paths for path in found}):
            taken, undone = (_read(home, f"{folder}/{kind}.json") for kind in KINDS)
            yield taken, undone


def _read(home: str, path: str) -> ResultFile | None:
    try:
        result = read_result(home, path)
    except WorkFailedError:
        return None
    return result if result is not None and result.table else None


def _actions(taken: ResultFile | None, undone: ResultFile | None) -> Iterator[Action]:
    """The action, unless it was a dry run, and what its rollback made of it."""
    action = None if taken is None or mapping(taken.data).get("dry_run") else _action(taken)
    if undone is None or undone.status == "skipped":
        yield from [action] if action else []
        return
    yield _rollback(undone, action)
    if action and undone.status == "ok":
        summary = (
            f"undone {clock(undone.created_at)}; it had made {action.summary}" if action.succeeded else action.summary
        )
        yield action.model_copy(
            update={
                "state": ROLLED_BACK,
                "succeeded": False,
                "undone_at": undone.created_at,
                "summary": summary,
                "rollback": None,
            }
        )
    elif action:
        yield action


def _rollback(result: ResultFile, action: Action | None) -> Action:
    data = mapping(result.data)
    made = result.status == "ok"
    properties = len(mappings(data.get("properties")))
    parts = [f"the table is back at snapshot {data['snapshot_id']}"] if data.get("snapshot_id") is not None else []
    parts += [f"{counted(properties, 'property', 'properties')} set back"] if properties else []
    return Action(
        table=visible(result.table),
        anchor=anchor(text(result.table)),
        run_id=visible(result.run_id),
        dag_id=_dag_of(result.path),
        started_at=result.created_at,
        at=result.created_at,
        state=ROLLED_BACK if made else "failed",
        kind="rollback",
        title=f"Rollback of: {action.title}" if action else "Rollback",
        reason=visible(result.reason) if result.reason else None,
        summary=joined(parts) if made else _outcome("failed", result.reason),
    )


def _action(result: ResultFile) -> Action:
    data = mapping(result.data)
    state = text(data.get("state")) or ("done" if result.status == "ok" else result.status)
    rows = effect(mapping(data.get("before")), mapping(data.get("predicted")), mapping(data.get("after")))
    succeeded = state == "done"
    steps = mappings(data.get("steps"))
    told = effect_sentence(rows, measured=True) if succeeded else ""
    reason = result.reason or _failure(data)
    return Action(
        table=visible(result.table),
        anchor=anchor(text(result.table)),
        run_id=visible(result.run_id),
        dag_id=_dag_of(result.path),
        started_at=min(
            (text(step.get("started_at")) for step in steps if step.get("started_at")), default=result.created_at
        ),
        at=result.created_at,
        state=state,
        title=_title(data),
        reason=visible(reason) if reason else None,
        succeeded=succeeded,
        steps=[_step(step) for step in steps],
        effect=rows,
        summary=told or _outcome(state, reason),
        rollback=visible_lines(text(data.get("rollback"))) or None,
    )


def _dag_of(path: str) -> str:
    parts = path.split("/")
    return parts[1] if len(parts) > 1 else ""


def _title(data: Mapping[str, Any]) -> str:
    named = [visible(text(step.get("step"))) for step in mappings(data.get("steps"))]
    known = {
        "set_properties": "table properties set",
        "rewrite_manifests": "manifests rewritten",
        "trim": "statistics trimmed",
        "trim_statistics": "statistics trimmed",
    }
    done = [
        known[name]
        for name, step in zip(named, mappings(data.get("steps")), strict=True)
        if name in known and step.get("status") in ("ok", "done")
    ]
    return (" and ".join(dict.fromkeys(done)) or "maintenance").capitalize()


def _step(step: Mapping[str, Any]) -> ActionStep:
    seconds = number(step.get("seconds"))
    reason = text(step.get("reason"))
    return ActionStep(
        step=visible(text(step.get("step")).replace("_", " ")),
        status=visible(text(step.get("status"))),
        reason=visible(reason) if reason else None,
        seconds=float(seconds) if seconds is not None else None,
    )


def _failure(data: Mapping[str, Any]) -> str | None:
    bad = [
        step
        for step in mappings(data.get("steps"))
        if step.get("reason") and step.get("status") not in ("ok", "done", "skipped")
    ]
    return text(bad[-1].get("reason")) if bad else None


def _outcome(state: str, reason: str | None) -> str:
    words = {
        "done": "done; no number that is shown here changed",
        "no_op": "nothing to do: the table would not have gained",
        "refused": "refused; the table was not changed",
        "conflict": "gave way to another writer; the table was not changed",
        "verification_failed": "the check after the change failed",
        "failed": "failed",
    }
    told = words.get(state, state_name(state))
    return f"{told}: {visible(reason)}" if reason and state not in ("done", "no_op") else told
