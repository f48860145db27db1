"""What is remembered of a run: a few numbers of each table, in one small file a run.

Results are kept for a quarter, a trend is told over a year, and a page must not open hundreds of result files. So each
report leaves ``<home>/history/<week|run>/<time>-<run key>.json``: written whole, once a run, and dropped when it is
older than the history's retention.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import fsspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planning_health.reports.model import Action, Number, Report, State, Summary, TableReport
from planning_health.run_folder import RunFolder, run_key, write_bytes
from planning_health.wording import parse_time, visible

FOLDER: Final = "history"
Scope = Literal["week", "run"]
SCOPES: Final[tuple[Scope, ...]] = ("week", "run")
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_STAMP_LENGTH: Final = len("20261130T060500Z")


class TablePoint(BaseModel):
    """One table in one run; a value that is missing or ``None`` was not measured."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    state: State
    measured_at: str | None = None
    snapshot_id: int | None = None
    verdict: str = ""
    proposals: int = 0
    values: dict[str, Number | None] = Field(default_factory=dict)


class RunTrend(BaseModel):
    """One run: its tables, what was done since the last report, and where its report lies below ``home``."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: Literal[1] = 1
    scope: Scope
    dag_id: str
    run_id: str
    at: str
    title: str
    lede: str
    summary: Summary
    report: str
    tables: dict[str, TablePoint]
    actions: list[Action] = Field(default_factory=list)


def remember(run_folder: RunFolder, report: Report, folder: str, keep: timedelta) -> None:
    """Writes the run's trend file in place of an earlier one of the same run, and drops files that are too old.

    Args:
        run_folder: the run's folder.
        report: the run's report.
        folder: where the report lies, below ``home``.
        keep: how long trend files are kept.
    """
    names = {visible(str(table)): str(table) for table in run_folder.tables()}
    scope: Scope = "week" if report.whole_week else "run"
    at = parse_time(report.measured_from) or parse_time(report.created_at) or datetime.now(UTC)
    trend = RunTrend(
        scope=scope,
        dag_id=run_folder.dag_id,
        run_id=run_folder.run_id,
        at=at.isoformat(),
        title=report.title,
        lede=report.lede,
        summary=report.summary,
        report=folder,
        tables={names.get(table.table, table.table): _point(table) for table in report.tables},
        actions=report.actions,
    )
    root = f"{run_folder.home.rstrip('/')}/{FOLDER}/{scope}"
    filesystem, path = fsspec.url_to_fs(root)
    key = run_key(run_folder.run_id)
    found = filesystem.ls(path, detail=False) if filesystem.exists(path) else []
    known = {posixpath.basename(item): item for item in found}
    own = next((name for name in known if name.endswith(f"-{key}.json")), f"{at:{_STAMP}}-{key}.json")
    write_bytes(f"{root}/{own}", trend.model_dump_json(exclude_defaults=True).encode())
    oldest = f"{datetime.now(UTC) - keep:{_STAMP}}"
    for name, item in known.items():
        if name != own and name.endswith(".json") and name[:_STAMP_LENGTH] < oldest:
            filesystem.rm_file(item)


def remembered(home: str) -> Iterator[RunTrend]:
    """The runs that left a trend file, in no order; a damaged file is passed over."""
    filesystem, root = fsspec.url_to_fs(f"{home.rstrip('/')}/{FOLDER}")
    for scope in SCOPES:
        folder = f"{root}/{scope}"
        paths = filesystem.ls(folder, detail=False) if filesystem.exists(folder) else []
        yield from (trend for trend in read_trends(home, paths).values() if trend is not None)


def read_trends(home: str, paths: Sequence[str]) -> dict[str, RunTrend | None]:
    """The trend files at these paths; ``None`` for one that is damaged or gone: it must not cost the others."""
    filesystem, _ = fsspec.url_to_fs(home)
    contents = filesystem.cat(list(paths), on_error="omit") if paths else {}
    return {path: _parsed(contents.get(path)) for path in paths}


def _parsed(content: bytes | None) -> RunTrend | None:
    try:
        return RunTrend.model_validate_json(content) if content is not None else None
    except ValidationError:
        return None


def _point(table: TableReport) -> TablePoint:
    return TablePoint(
        state=table.state,
        measured_at=table.measured_at,
        snapshot_id=table.snapshot_id,
        verdict=table.verdict,
        proposals=sum(proposal.runnable for proposal in table.proposals),
        values={number.key: number.value for number in table.numbers},
    )
