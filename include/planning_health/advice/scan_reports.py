"""Reads Iceberg's ScanReports: one JSON document a line, as ``ScanReportParser`` or a REST catalog's endpoint has them.

Iceberg hides the values of a filter before it reports it (``ExpressionUtil.sanitize``): a number becomes its number of
digits, a text its hash. Such a report tells which columns were filtered by, not what a truncated bound would still
prune. A filter whose values are there, or that needs none, is planned like any other.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from planning_health.advice.files import read_lines
from planning_health.advice.observed import Observation
from planning_health.errors import InputError
from planning_health.planning.expressions import Expression, UnboundPredicate, from_iceberg_json, leaves
from planning_health.planning.literals import Kind

logger = logging.getLogger(__name__)

SCAN_REPORT: Final = "scan report"
_HIDDEN: Final = re.compile(
    r"\((?:time|date(?:-[\w-]+)?|timestamp(?:-[\w-]+)?|\d+-digit-\w+|hash-[0-9a-f]{8})\)|\.\.\. \(\d+ values hidden.*"
)


def read_scan_reports(paths: Iterable[str]) -> Iterator[Observation]:
    """What the reports of some files or folders tell, one observation a report.

    Lines that are no ScanReport, such as commit reports, are passed over.

    Args:
        paths: fsspec URLs or local paths of files with one JSON document a line, compressed or not, or of folders.

    Raises:
        InputError: a path that does not exist or cannot be read, or holds no ScanReport at all.
    """
    for path in paths:
        found = 0
        for line in read_lines(path):
            report = _scan_report(line)
            if report is not None:
                found += 1
                yield _observation(report)
        if not found:
            raise InputError(f"{path!r} holds no ScanReport: expected JSON documents, one a line, with table-name")


def _scan_report(line: bytes) -> Mapping[str, Any] | None:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if isinstance(document, dict) and isinstance(document.get("report"), dict):
        document = document["report"]
    is_report = isinstance(document, dict) and {"table-name", "filter", "metrics"} <= document.keys()
    return document if is_report else None


def _observation(report: Mapping[str, Any]) -> Observation:
    table = str(report["table-name"])
    try:
        filter_ = from_iceberg_json(report["filter"])
    except InputError:
        return Observation(SCAN_REPORT, table, unread=f"filter {json.dumps(report['filter'])[:500]}")
    hidden = _has_hidden_values(filter_)
    if hidden:
        columns = frozenset(leaf.name for leaf in leaves(filter_) if isinstance(leaf, UnboundPredicate))
        return Observation(SCAN_REPORT, table, hidden=columns)
    return Observation(SCAN_REPORT, table, filter=filter_)


def _has_hidden_values(filter_: Expression) -> bool:
    values = (value for leaf in leaves(filter_) for value in leaf.literals if value.kind is Kind.STRING)
    return any(_HIDDEN.fullmatch(str(value.value)) for value in values)
