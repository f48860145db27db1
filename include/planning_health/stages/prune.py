"""Step: removes the folders of runs, and published reports, that are older than the retention."""

from __future__ import annotations

import json
import logging
import posixpath
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import fsspec

from planning_health.envelope import Envelope
from planning_health.redaction import first_line
from planning_health.run_folder import RunFolder, read_bytes, run_key
from planning_health.settings import SettingsDocument
from planning_health.stages.report import LATEST

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
    filesystem, root = fsspec.url_to_fs(settings.home)
    root = root.rstrip("/")
    cutoff = datetime.now(UTC) - timedelta(days=settings.retention.runs_days)
    own = f"{root}/{run_folder.relative_path}"
    old = [run for run in _removable(filesystem, root) if run.started_at < cutoff and run.path != own]
    removed, failed = [], {}
    for run in old[:MOST_REMOVED]:
        try:
            _remove(filesystem, root, run)
        except OSError as error:  # another process removes it too, or may and we may not
            failed[run.path] = first_line(error)
        else:
            removed.append(posixpath.relpath(run.path, root))
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


def _removable(filesystem: Any, root: str) -> list[_Run]:
    """All runs but the newest ones of each Dag, the oldest first."""
    by_dag: dict[str, list[_Run]] = defaultdict(list)
    for run in _runs(filesystem, root):
        by_dag[run.dag_id].append(run)
    ordered = (sorted(runs, key=lambda run: run.started_at) for runs in by_dag.values())
    return sorted((run for runs in ordered for run in runs[:-KEPT]), key=lambda run: run.started_at)


def _runs(filesystem: Any, root: str) -> Iterator[_Run]:
    for path in filesystem.glob(f"{root}/runs/*/*/run.json"):
        folder = posixpath.dirname(path)
        try:
            record = json.loads(read_bytes(filesystem.unstrip_protocol(path)) or b"null")
            run = _Run(folder, str(record["dag_id"]), datetime.fromisoformat(record["started_at"]))
            is_ours = folder.endswith(f"/runs/{run.dag_id}/{run_key(str(record['run_id']))}")
        except (ValueError, TypeError, KeyError):
            continue
        if is_ours:
            yield run


def _remove(filesystem: Any, root: str, run: _Run) -> None:
    """The run's record goes last: a removal that breaks off is found again."""
    for report in filesystem.glob(f"{root}/reports/*-{posixpath.basename(run.path)}"):
        if not report.endswith(f"/{LATEST}"):
            filesystem.rm(report, recursive=True)
    for path in filesystem.ls(run.path, detail=False):
        if posixpath.basename(path.rstrip("/")) != "run.json":
            filesystem.rm(path, recursive=True)
    filesystem.rm(run.path, recursive=True)
