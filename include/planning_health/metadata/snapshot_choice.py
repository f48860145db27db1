"""Chooses the snapshot that is measured, and the schema that a scan of it is bound to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType

from planning_health.errors import InputError

_LISTED: Final = 5
"""Snapshots that a message names where one does not exist."""


@dataclass(frozen=True)
class SnapshotChoice:
    """Which state of the table is meant: at most one of the attributes is given; none means the current one."""

    snapshot_id: int | None = None
    ref: str | None = None
    as_of_timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.snapshot_id, self.ref, self.as_of_timestamp_ms) if value is not None]
        if len(given) > 1:
            raise InputError(f"give one of snapshot id, ref or timestamp, not {len(given)} of them")

    def resolve(self, metadata: TableMetadata) -> tuple[int | None, Schema]:
        """The snapshot's id (``None`` for a table without snapshots) and the scan's schema.

        Iceberg binds a scan by snapshot id, tag or timestamp to the snapshot's schema, and one of a branch to the
        table's current schema.

        Raises:
            InputError: when there is no such snapshot or ref.
        """
        if self.ref is not None:
            ref = metadata.refs.get(self.ref)
            if ref is None:
                raise InputError(
                    f"ref {self.ref!r} does not exist; known: {', '.join(sorted(metadata.refs)) or 'none'}"
                    f"{_newest(metadata)}"
                )
            current = ref.snapshot_ref_type == SnapshotRefType.BRANCH
            return ref.snapshot_id, metadata.schema() if current else _schema_of(metadata, ref.snapshot_id)
        snapshot_id = self.snapshot_id if self.snapshot_id is not None else self._as_of(metadata)
        if snapshot_id is not None:
            return snapshot_id, _schema_of(metadata, snapshot_id)
        return metadata.current_snapshot_id, metadata.schema()

    def _as_of(self, metadata: TableMetadata) -> int | None:
        if self.as_of_timestamp_ms is None:
            return None
        older = [entry for entry in metadata.snapshot_log if entry.timestamp_ms <= self.as_of_timestamp_ms]
        if not older:
            raise InputError(f"no snapshot is older than timestamp {self.as_of_timestamp_ms} ms")
        return older[-1].snapshot_id


def parent_of_current(metadata: TableMetadata) -> SnapshotChoice:
    """The snapshot from which the current one was made.

    Raises:
        InputError: when there is none, or it has expired.
    """
    current = metadata.current_snapshot()
    parent = current.parent_snapshot_id if current else None
    if parent is None or metadata.snapshot_by_id(parent) is None:
        raise InputError(f"the current snapshot has no earlier one that is still there{_newest(metadata)}")
    return SnapshotChoice(snapshot_id=parent)


def _newest(metadata: TableMetadata) -> str:
    """The newest snapshots with time and operation, for a message that one does not exist."""
    listed = sorted(metadata.snapshots, key=lambda snapshot: snapshot.timestamp_ms, reverse=True)[:_LISTED]
    told = []
    for snapshot in listed:
        at = datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)
        operation = snapshot.summary.operation.value if snapshot.summary else "unknown"
        told.append(f"{snapshot.snapshot_id} ({at:%Y-%m-%d %H:%M} UTC, {operation})")
    return f"; newest snapshots: {', '.join(told)}" if told else ""


def _schema_of(metadata: TableMetadata, snapshot_id: int) -> Schema:
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise InputError(
            f"snapshot {snapshot_id} does not exist in the table (expired, or of another table){_newest(metadata)}"
        )
    by_id = {schema.schema_id: schema for schema in metadata.schemas}
    return by_id.get(snapshot.schema_id, metadata.schema()) if snapshot.schema_id is not None else metadata.schema()
