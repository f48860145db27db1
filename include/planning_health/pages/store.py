"""Reads what the runs left: the trend of all tables, the newest results of one, the reports. Never the catalog.

The trend files are read once and kept; a request only lists their folders and reads what is new. One table's page
opens the result files of one run. So the work does not grow with the number of tables times the weeks.
"""

from __future__ import annotations

import posixpath
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import fsspec

from planning_health.identifiers import TableName
from planning_health.reports import upkeep
from planning_health.reports.build import read_report
from planning_health.reports.figure_data import Picture
from planning_health.reports.model import Action, Report, TableReport
from planning_health.reports.reading import mapping, mappings, text
from planning_health.reports.table_report import TableResults, read_or_none, table_report
from planning_health.reports.trend import FOLDER, SCOPES, RunTrend, TablePoint, read_trends
from planning_health.run_folder import RunFolder
from planning_health.wording import clock, parse_time, visible

YEAR: Final = timedelta(days=371)
"""How far back the pages look: 53 weeks."""

MAX_RUNS: Final = 400
"""Trend files that are read of each kind, the newest first."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Moment:
    """A table as one run measured it."""

    at: datetime
    run: RunTrend
    point: TablePoint


@dataclass(frozen=True)
class Trends:
    """All runs of the last year, the oldest first."""

    runs: tuple[RunTrend, ...] = ()

    @cached_property
    def tables(self) -> Mapping[str, Sequence[Moment]]:
        """The moments of each table that the newest weekly run or a later run has, the oldest first."""
        moments: dict[str, list[Moment]] = defaultdict(list)
        for run in self.runs:
            for name, point in run.tables.items():
                if run.scope == "run" and point.state == "not_measured":  # a what-if run diagnoses nothing
                    continue
                moments[name].append(Moment(parse_time(point.measured_at) or parse_time(run.at) or _EPOCH, run, point))
        newest = self.newest_week
        since = parse_time(newest.at) if newest else None
        return {
            name: sorted(found, key=lambda moment: moment.at)
            for name, found in sorted(moments.items())
            if newest is None or name in newest.tables or (since and found[-1].at >= since)
        }

    @cached_property
    def actions(self) -> Mapping[str, Sequence[Action]]:
        """What was done to each table (by its shown name), the newest first."""
        known: dict[tuple[str, str, str], Action] = {}
        for run in self.runs:  # a later report knows better: an action can have been rolled back since
            known |= {(action.table, action.run_id, action.kind): action for action in run.actions}
        done: dict[str, list[Action]] = defaultdict(list)
        for action in sorted(known.values(), key=lambda action: action.at, reverse=True):
            done[action.table].append(action)
        return done

    @cached_property
    def weeks(self) -> Sequence[RunTrend]:
        """The weekly runs, the newest first."""
        return [run for run in reversed(self.runs) if run.scope == "week"]

    @property
    def newest_week(self) -> RunTrend | None:
        """The newest weekly run."""
        return self.weeks[0] if self.weeks else None

    def run(self, dag_id: str, run_id: str) -> RunTrend | None:
        """The run of that name, if it left a report."""
        return next((run for run in self.runs if (run.dag_id, run.run_id) == (dag_id, run_id)), None)


@dataclass
class Store:
    """The files below one home.

    Args:
        home: fsspec URL or absolute path of the product's home folder.
    """

    home: str
    _files: dict[str, tuple[Any, RunTrend | None]] = field(default_factory=dict, repr=False)
    _trends: Trends = field(default_factory=Trends, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def trends(self) -> Trends:
        """The trend of all tables as of now."""
        with self._lock:
            listed = dict(self._listed())
            if listed != {path: version for path, (version, _) in self._files.items()}:
                changed = [path for path, version in listed.items() if self._files.get(path, (None,))[0] != version]
                read = read_trends(self.home, changed)
                self._files = {
                    path: (version, read[path] if path in read else self._files[path][1])
                    for path, version in listed.items()
                }
                runs = [run for _, run in self._files.values() if run is not None]
                self._trends = Trends(tuple(sorted(runs, key=lambda run: run.at)))
            return self._trends

    def _listed(self) -> Iterator[tuple[str, Any]]:
        """The trend files to read, with what tells one version of a file from another."""
        filesystem, root = fsspec.url_to_fs(f"{self.home.rstrip('/')}/{FOLDER}")
        filesystem.invalidate_cache()  # an object store's listing is remembered, and other processes write
        oldest = f"{datetime.now(UTC) - YEAR:%Y%m%d}"
        for scope in SCOPES:
            try:
                found = filesystem.ls(f"{root}/{scope}", detail=True)
            except FileNotFoundError:
                continue
            names = {posixpath.basename(item["name"]): item for item in found}
            for name in sorted(name for name in names if name.endswith(".json") and name >= oldest)[-MAX_RUNS:]:
                item = names[name]
                yield (
                    item["name"],
                    (item.get("size"), item.get("mtime") or item.get("LastModified") or item.get("ETag")),
                )

    def table(self, name: str, trends: Trends) -> TableReport | None:
        """The newest diagnosis of a table in full; ``None`` when the results are gone or were never made."""
        found = self._newest(name, trends)
        return self._table_report(*found, trends) if found else None

    def health(self, name: str, trends: Trends) -> Mapping[str, Any]:
        """The data of a table's newest diagnosis; empty when it is gone or did not succeed."""
        found = self._newest(name, trends)
        return found[1].data("health") if found else {}

    def _newest(self, name: str, trends: Trends) -> tuple[RunFolder, TableResults] | None:
        for moment in reversed(trends.tables.get(name, ())):
            folder, table = RunFolder(self.home, moment.run.dag_id, moment.run.run_id), TableName.parse(name)
            results = TableResults.read(folder, table)
            if any(results.files.values()):
                return folder, results
        return None

    def _table_report(self, folder: RunFolder, results: TableResults, trends: Trends) -> TableReport:
        name = str(results.table)
        measure = read_or_none(folder, "measure")
        failed = mapping(mapping(measure.data).get("failed")) if measure else {}
        actions = trends.actions.get(visible(name), ())
        report = table_report(
            results,
            measure_reason=failed.get(name),
            actions=actions,
            pictures=self._pictures(results, trends),
            with_figures=True,
        )
        repair = next((action for action in actions if action.stands and action.succeeded), None)
        moments = [upkeep.Moment(moment.at, moment.point.values) for moment in trends.tables[name]]
        return report.model_copy(update={"upkeep": upkeep.upkeep(report, repair, moments)})

    def _pictures(self, results: TableResults, trends: Trends) -> list[Picture]:
        """The table now, and as it was before its last repair, when that was measured before and after."""
        health, current = results.files.get("health"), results.data("health")
        if health is None or not current:
            return []
        now = parse_time(health.created_at) or _EPOCH
        name = str(results.table)
        actions = trends.actions.get(visible(name), ())
        repairs = [at for action in actions if action.succeeded and (at := parse_time(action.started_at)) and at < now]
        earlier = [moment for moment in trends.tables[name] if repairs and moment.at < max(repairs)]
        if earlier:
            run = earlier[-1].run
            before = read_or_none(RunFolder(self.home, run.dag_id, run.run_id), "health", results.table)
            if before is not None and before.status == "ok":
                shown = {"Before": mapping(before.data), "After": current}
                times = (earlier[-1].at, now)
                return [
                    Picture(f"{title}, {clock(at.isoformat())}", data)
                    for (title, data), at in zip(shown.items(), times, strict=True)
                ]
        return [Picture("Now", current)]

    def report(self, folder: str) -> Report | None:
        """The report in a folder below home that a known run named."""
        return read_report(f"{self.home.rstrip('/')}/{folder}/report.json")

    def tables_of_run(self, dag_id: str, run_id: str) -> list[str]:
        """The tables of a run, in the order in which its tasks are mapped over them."""
        folder = RunFolder(self.home, dag_id, run_id)
        measure = read_or_none(folder, "measure")
        listed = mapping(measure.data).get("tables") if measure else None
        return [str(name) for name in listed] if isinstance(listed, list) else [str(t) for t in folder.tables()]

    def failure(self, dag_id: str, run_id: str) -> str:
        """Why a run failed; empty for one that did not, or is not over."""
        conclusion = read_or_none(RunFolder(self.home, dag_id, run_id), "conclusion")
        return visible(conclusion.reason) if conclusion and conclusion.status == "failed" else ""

    def proposed_by_run(self, dag_id: str, run_id: str) -> list[str]:
        """The titles of what a run proposes, before it has left a report."""
        folder = RunFolder(self.home, dag_id, run_id)
        results = (read_or_none(folder, "proposal", table) for table in folder.tables())
        found = (mappings(mapping(result.data).get("proposals")) for result in results if result is not None)
        return [visible(text(item.get("title"))) for proposals in found for item in proposals]
