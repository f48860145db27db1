"""About how large a manifest is before its first entry: what does not shrink with the entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from planning_health.metadata.model import TableInfo

_FIXED: Final = {1: 5432, 2: 6676, 3: 7489}
"""A manifest's header without the table's schema, by format version (measured on Iceberg 1.12)."""


def header_bytes(info: TableInfo, smallest_manifest: int) -> int:
    """Return the predicted bytes of a manifest's Avro header, at most 95 % of the table's smallest manifest."""
    schema = len(info.schema.model_dump_json(by_alias=True, exclude_none=True))
    fixed = _FIXED[min(info.format_version, max(_FIXED))]
    return min(fixed + schema, int(smallest_manifest * 0.95))
