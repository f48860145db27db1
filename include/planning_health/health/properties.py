"""The table properties that decide how planning will fare: the value that applies, and whether it was set."""

from __future__ import annotations

from typing import Any, Final

from planning_health.metadata.model import TableInfo

MERGE_ENABLED: Final = "commit.manifest-merge.enabled"

DEFAULTS: Final = {
    MERGE_ENABLED: "",
    "commit.manifest.min-count-to-merge": "100",
    "commit.manifest.target-size-bytes": "8388608",
    "write.metadata.metrics.default": "truncate(16)",
    "write.metadata.metrics.max-inferred-column-defaults": "100",
    "write.target-file-size-bytes": "536870912",
    "write.distribution-mode": "",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
    "write.delete.granularity": "",
    "history.expire.max-snapshot-age-ms": "432000000",
    "history.expire.min-snapshots-to-keep": "1",
    "write.metadata.delete-after-commit.enabled": "false",
    "write.metadata.previous-versions-max": "100",
    "read.split.target-size": "134217728",
}
"""Iceberg's defaults; an empty one depends on the engine."""

_COLUMN_METRICS: Final = "write.metadata.metrics.column."


def properties_that_matter(properties: dict[str, str]) -> list[dict[str, Any]]:
    """Each property as ``{"property", "value", "set"}``; metrics modes of single columns follow the fixed ones."""
    names = [*DEFAULTS, *sorted(name for name in properties if name.startswith(_COLUMN_METRICS))]
    return [
        {"property": name, "value": properties.get(name, DEFAULTS.get(name, "")) or None, "set": name in properties}
        for name in names
    ]


def merging_told(info: TableInfo) -> str:
    """Whether commits merge manifests, in a sentence or two: where the property is not set, the writer decides."""
    value = info.properties.get(MERGE_ENABLED)
    if value is not None:
        return f"Merging on commit is {'off' if value.lower() == 'false' else 'on'} ({MERGE_ENABLED} = {value})."
    return (
        "Merging on commit is not set: on for Spark and other Java writers, off for PyIceberg, whose appends pile up "
        f"unless {MERGE_ENABLED} is set to true.{_last_writer(info)}"
    )


def _last_writer(info: TableInfo) -> str:
    """Who wrote the measured snapshot: Java engines name themselves in its summary, PyIceberg does not."""
    snapshot = None if info.snapshot_id is None else info.metadata.snapshot_by_id(info.snapshot_id)
    if snapshot is None or snapshot.summary is None:
        return ""
    engine = snapshot.summary.additional_properties.get("engine-name")
    return (
        f" The last commit was written by {engine}."
        if engine
        else " The last commit names no engine, like those of PyIceberg."
    )
