"""Step: removes the folders of runs, and published reports, that are older than the retention."""

from __future__ import annotations

import json
import logging
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import fsspec

from planning_health.envelope import Envelope
from planning_health.redaction import first_line
from planning_health.run_folder import RunFolder, paths_below, read_bytes, run_key
from planning_health.settings import SettingsDocument

logger = logging.getLogger(__name__)

KIND: Final = "prune"
MOST_REMOVED: Final = 500
"""Runs removed at once; the next run goes on."""

KEPT: Final = 2
"""Runs of each Dag that stay whatever their age: the newest, and the one that it is compared with."""


@dataclass(frozen=True)
class _Run:
    path: str
    dag_id: str
    started_at: datetime


def prune(settings: SettingsDocument, run_folder: RunFolder) -> Envelope:
    """Removes the oldest runs beyond ``retention.runs_days``, with their published reports.

    The two newest runs of each Dag stay, this run too, and so does ``reports/latest``. A folder that is not a run of
    ours is left alone. What cannot be removed is tried again by the next run.
    """
    cutoff = datetime.now(UTC) - timedelta(days=settings.retention.runs_days)
    removable = _removable(settings.home)
    old = [run for run in removable if run.started_at < cutoff and run.path != run_folder.relative_path]
    removed, failed = [], {}
    for run in old[:MOST_REMOVED]:
        try:
            _remove(settings.home, run)
        except OSError as error:  # another process removes it too, or may and we may not
            failed[run.path] = first_line(error)
        else:
            removed.append(run.path)
    logger.info("removed %d runs that began before %s", len(removed), cutoff.date())
    return run_folder.write_result(
        KIND,
        headline={
            "removed": len(removed),
            "failed": len(failed),
            "left_for_next_time": max(0, len(old) - MOST_REMOVED),
        },
        data={"removed": removed, "failed": failed, "began_before": cutoff.isoformat()},
    )


def _removable(home: str) -> list[_Run]:
    """All runs but the newest ones of each Dag, the oldest first."""
    by_dag: dict[str, list[_Run]] = defaultdict(list)
    for run in _runs(home):
        by_dag[run.dag_id].append(run)
    ordered = (sorted(runs, key=lambda run: run.started_at) for runs in by_dag.values())
    return sorted((run for runs in ordered for run in runs[:-KEPT]), key=lambda run: run.started_at)


def _runs(home: str) -> Iterator[_Run]:
    for path in paths_below(home, "runs", "*", "*", "run.json"):
        folder = posixpath.dirname(path)
        try:
            record = json.loads(read_bytes(f"{home.rstrip('/')}/{path}") or b"null")
            run = _Run(folder, str(record["dag_id"]), datetime.fromisoformat(record["started_at"]))
            is_ours = folder == f"runs/{run.dag_id}/{run_key(str(record['run_id']))}"
        except (ValueError, TypeError, KeyError):
            continue
        if is_ours:
            yield run


def _remove(home: str, run: _Run) -> None:
    """The run's record goes last: a removal that breaks off is found again."""
    filesystem, root = fsspec.url_to_fs(home)
    key = posixpath.basename(run.path)
    published = re.compile(rf"reports/(\d{{4}}-W\d{{2}}|undated)-{re.escape(key)}")
    reports = [path for path in paths_below(home, "reports", f"*-{key}") if published.fullmatch(path)]
    parts = [path for path in paths_below(home, run.path, "*") if posixpath.basename(path) != "run.json"]
    for path in [*reports, *parts, run.path]:
        filesystem.rm(f"{root.rstrip('/')}/{path}", recursive=True)
