"""Reads Spark's event logs: what each SQL execution's Iceberg scans filtered by, and what its writes compared.

A plan shows a scan as ``BatchScan catalog.db.t[id#1L, …] IcebergScan(table=catalog.db.t, …, filters=id > 5, …)``. An
execution tells its plan when it starts and again whenever adaptive execution changes it; each scan counts once.
Minimum, maximum and count that Iceberg answers from metadata stand there as ``LocalTableScan [max(id)#81L]``: the log
does not tell the table then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from planning_health.advice.files import files_of, lines_of
from planning_health.advice.filter_text import parse_filters
from planning_health.advice.observed import Observation
from planning_health.errors import InputError

EVENT_LOG: Final = "event log"

_START: Final = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
_UPDATE: Final = "org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate"
_MARKS: Final = (b"SparkListenerSQLExecutionStart", b"SparkListenerSQLAdaptiveExecutionUpdate")

_SCAN: Final = re.compile(
    r"BatchScan .*?\[(?P<output>.*?)\] "
    r"(?:Iceberg\w*Scan\(table=(?P<table>.*?), .*?filters=(?P<filters>.*?)(?:, runtimeFilters=.*?)?, groupedBy=.*?\)"
    r"|(?P<old_table>\S+) \(branch=.*?\) \[filters=(?P<old_filters>.*?), groupedBy=.*?\])"
    r"(?: RuntimeFilters: \[.*\])?",
    re.DOTALL,
)
_DELETE: Final = re.compile(r"DeleteFromTable (?P<table>.+?), \[(?P<filters>.*)\], org\.apache", re.DOTALL)
_ROW_LEVEL: Final = ("ReplaceData", "WriteDelta")
_ATTRIBUTE: Final = re.compile(r"([^\s,()\[\]#]+)#(\d+)L?")
_LOCAL_AGGREGATE: Final = re.compile(r"(min|max|count)\(([^()]+)\)#\d+")
_PARTIAL_AGGREGATE: Final = re.compile(r"partial_(min|max|count)\(([^()#\s]+)#(\d+)L?\)")
_CACHED: Final = ("InMemoryTableScan", "Scan In-memory table")


def read_event_logs(paths: Iterable[str]) -> Iterator[Observation]:
    """What the event logs of some files or folders tell, one observation a scan.

    Args:
        paths: fsspec URLs or local paths of event logs: single files, rolling ones, or folders of them; plain or
            compressed with zstd, lz4, snappy or gzip; also those of running applications.

    Raises:
        InputError: a path that does not exist, cannot be read, or is no event log.
    """
    for path in paths:
        logs: dict[str, list[str]] = {}
        for file in files_of(path):
            folder, _, name = file.rpartition("/")
            if not name.startswith("appstatus_"):
                logs.setdefault(folder if name.startswith("events_") else file, []).append(file)
        found = [_read_log(files) for _, files in sorted(logs.items())]
        if not any(log.is_log for log in found):
            raise InputError(f"{path!r} holds no Spark event log: expected events as JSON, one a line")
        for log in found:
            yield from log.observations()


@dataclass
class _Log:
    """One application's executions."""

    is_log: bool = False
    executions: dict[int, _Execution] = field(default_factory=dict)

    def observations(self) -> Iterator[Observation]:
        cached = set[str]()
        for execution in self.executions.values():
            yield from execution.observations(cached)


def _read_log(files: list[str]) -> _Log:
    log = _Log()
    for file in files:
        for line in lines_of(file):
            log.is_log = log.is_log or b'"Event":"' in line
            if any(mark in line for mark in _MARKS):
                _add_event(log, line)
    return log


def _add_event(log: _Log, line: bytes) -> None:
    try:
        event = json.loads(line)
    except ValueError:  # the line that an application is writing
        return
    if event.get("Event") in (_START, _UPDATE):
        execution = log.executions.setdefault(event["executionId"], _Execution())
        execution.add(event["sparkPlanInfo"])


@dataclass(frozen=True)
class _Scan:
    """A scan node: the table's full name, its filters as text, and the names of the attributes that it gives."""

    table: str
    filters: str
    attributes: Mapping[str, str]


class _Execution:
    """The nodes of one SQL execution's plans, each once."""

    def __init__(self) -> None:
        self._root = ""
        self._nodes: dict[tuple[str, str], bool] = {}

    def add(self, plan: Mapping[str, Any]) -> None:
        """Takes one of the execution's plans."""
        self._root = self._root or str(plan["nodeName"])
        pending = [(plan, False)]
        while pending:
            node, cached = pending.pop()
            name = str(node["nodeName"])
            self._nodes.setdefault((name, str(node["simpleString"])), cached)
            pending += [(child, cached or name.startswith(_CACHED)) for child in node["children"]]

    def observations(self, cached_before: set[str]) -> Iterator[Observation]:
        """One for each scan, and for what is answered from metadata. A cached relation is scanned once."""
        scans = []
        for (name, text), cached in self._nodes.items():
            scan = _scan(text) if name.startswith("BatchScan") else None
            if scan is None or (cached and text in cached_before):
                continue
            if cached:
                cached_before.add(text)
            scans.append(scan)
            yield _filtered(scan, row_level=self._root in _ROW_LEVEL)
        yield from self._joined(scans)
        yield from self._deleted()
        yield from self._aggregated(scans)

    def _texts(self, *kinds: str) -> list[str]:
        return [text for name, text in self._nodes if any(kind in name for kind in kinds)]

    def _joined(self, scans: list[_Scan]) -> Iterator[Observation]:
        """The columns that a MERGE joins its target by."""
        if self._root not in _ROW_LEVEL:
            return
        used = {number: name for text in self._texts("Join") for name, number in _ATTRIBUTE.findall(text)}
        for scan in scans:
            columns = frozenset(name for number, name in scan.attributes.items() if number in used)
            if columns:
                yield Observation(EVENT_LOG, scan.table, row_level=columns)

    def _deleted(self) -> Iterator[Observation]:
        """The conditions of deletes that drop whole files."""
        for text in self._texts("DeleteFromTable"):
            found = _DELETE.match(text)
            if found:
                scan = _Scan(found["table"], found["filters"], {})
                yield _filtered(scan, row_level=True)

    def _aggregated(self, scans: list[_Scan]) -> Iterator[Observation]:
        """Aggregates of whole tables: those that were answered from metadata, and those that could be."""
        for text in self._texts("LocalTableScan"):
            found = _LOCAL_AGGREGATE.findall(text)
            if found:
                yield _aggregates(None, found)
        whole = {number: scan.table for scan in scans if not scan.filters for number in scan.attributes}
        for text in self._texts("HashAggregate"):
            if "keys=[]" not in text:
                continue
            by_table: dict[str, list[tuple[str, str]]] = {}
            for function, column, number in _PARTIAL_AGGREGATE.findall(text):
                if number in whole:
                    by_table.setdefault(whole[number], []).append((function, column))
            for table, functions in by_table.items():
                yield _aggregates(table, functions)


def _aggregates(table: str | None, functions: list[tuple[str, str]]) -> Observation:
    return Observation(
        EVENT_LOG,
        table,
        bounds_of=frozenset(column for function, column in functions if function != "count"),
        counts_of=frozenset(column for function, column in functions if function == "count"),
    )


def _scan(text: str) -> _Scan | None:
    found = _SCAN.fullmatch(text)
    if found is None:
        return None
    attributes = {number: name for name, number in _ATTRIBUTE.findall(found["output"])}
    return _Scan(found["table"] or found["old_table"], found["filters"] or found["old_filters"] or "", attributes)


def _filtered(scan: _Scan, *, row_level: bool) -> Observation:
    try:
        filter_ = parse_filters(scan.filters)
    except InputError:
        return Observation(EVENT_LOG, scan.table, unread=f"filter {scan.filters[:500]}")
    columns = filter_.columns if row_level else frozenset[str]()
    if filter_.transformed:
        return Observation(EVENT_LOG, scan.table, hidden=filter_.columns, row_level=columns)
    return Observation(EVENT_LOG, scan.table, filter=filter_.expression, row_level=columns)
