"""The table properties that decide how planning will fare: the value that applies, and whether it was set."""

from __future__ import annotations

from typing import Any, Final

DEFAULTS: Final = {
    "commit.manifest-merge.enabled": "true",
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
