"""The alternatives of a what-if run: for each query what is read as the table is, and what would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planning_health.reports.model import Alternative, AlternativeReads
from planning_health.reports.reading import mapping, mappings, text, texts, whole
from planning_health.wording import byte_size, counted, plain_number, relative, visible

WHOLE_TABLE = "The whole table"


def alternatives(what_if: Mapping[str, Any]) -> list[Alternative]:
    """The alternatives of a table's ``what_if`` result; none without one."""
    return [_alternative(item) for item in mappings(what_if.get("alternatives"))]


def _alternative(item: Mapping[str, Any]) -> Alternative:
    whole_table = _reads(WHOLE_TABLE, "", mapping(item.get("table")))
    queries = [
        _reads(visible(text(query.get("name"))), visible(text(query.get("where"))), query)
        for query in mappings(item.get("predicates"))
    ]
    return Alternative(
        title=visible(text(item.get("title"))),
        notes=[visible(note) for note in texts(item.get("notes"))],
        reads=[whole_table, *queries],
        summary=_summary(queries or [whole_table]),
    )


def _reads(name: str, where: str, item: Mapping[str, Any]) -> AlternativeReads:
    before, after = mapping(item.get("before")), mapping(item.get("after"))
    return AlternativeReads(
        name=name,
        where=where,
        manifests=(_manifests(before), _manifests(after)),
        data_files=(_count(before, "data_files"), _count(after, "data_files")),
        metadata_bytes=(_count(before, "metadata_bytes"), _count(after, "metadata_bytes")),
    )


def _manifests(side: Mapping[str, Any]) -> int:
    return _count(side, "data_manifests") + _count(side, "delete_manifests")


def _count(side: Mapping[str, Any], key: str) -> int:
    return whole(side.get(key)) or 0


def _summary(reads: list[AlternativeReads]) -> str:
    """What all queries together read: "3 queries would open 5 → 2 manifests and 10 → 10 files, metadata … → …"."""
    sides = [
        tuple(sum(getattr(item, name)[side] for item in reads) for side in (0, 1))
        for name in ("manifests", "data_files", "metadata_bytes")
    ]
    (opened, would_open), (files, would_files), (size, would_size) = sides
    subject = counted(len(reads), "query", "queries") if reads[0].name != WHOLE_TABLE else "a full scan"
    return (
        f"{subject} would open {plain_number(opened)} → {plain_number(would_open)} manifests and read "
        f"{plain_number(files)} → {plain_number(would_files)} data files; "
        f"metadata {byte_size(size)} → {byte_size(would_size)} ({relative(size, would_size)})"
    )
