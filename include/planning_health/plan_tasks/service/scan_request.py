"""A scan as a client asks for it, and the same scan with its snapshot and schema pinned.

The fields and their rules are those of ``PlanTableScanRequest`` in the Iceberg REST specification. A pinned scan means
the same on every replica and for ever, whatever is committed to the table in between.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from planning_health.errors import InputError
from planning_health.plan_tasks.token import MAX_INT64, read_scan
from planning_health.planning.expressions import ALWAYS_TRUE, Expression, from_iceberg_json

_REQUEST_FIELDS: Final = (
    "snapshot-id",
    "start-snapshot-id",
    "end-snapshot-id",
    "select",
    "filter",
    "case-sensitive",
    "use-snapshot-schema",
    "stats-fields",
    "min-rows-requested",
)


class SnapshotGoneError(InputError):
    """The snapshot is not (or no longer) one of the table's."""


def parse_json(body: bytes) -> Any:
    """Reads a request body: strict JSON, with numbers that Iceberg's literals can hold.

    Raises:
        InputError: the body is missing or no such JSON.
    """
    if not body.strip():
        raise InputError("the request body is missing: expected a JSON object")
    try:
        return json.loads(body, parse_constant=_refuse, parse_float=_finite, parse_int=_int64)
    except (ValueError, RecursionError) as error:
        reason = "too deeply nested" if isinstance(error, RecursionError) else str(error).split(":", maxsplit=1)[0]
        raise InputError(f"the request body is not valid JSON ({reason})") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _int64(text: str) -> int:
    value = int(text)
    if not -MAX_INT64 - 1 <= value <= MAX_INT64:
        raise ValueError("a whole number does not fit 64 bits")
    return value


def scan_of_request(body: Any) -> dict[str, Any]:
    """The scan of a plan request; unknown fields are left out, as the specification asks of servers.

    Raises:
        InputError: it is no object, or a field is wrongly typed or contradicts another.
    """
    if not isinstance(body, Mapping):
        raise InputError("the request body: expected a JSON object")
    if "filter" in body and body["filter"] is None:
        raise InputError("filter null: expected an expression, or no such field")
    return read_scan({name: body[name] for name in _REQUEST_FIELDS if body.get(name) is not None})


@dataclass(frozen=True)
class PinnedScan:
    """A scan with everything resolved that could change under it.

    Attributes:
        scan: the request's fields with ``snapshot-id`` and ``schema-id``, as tokens carry it.
        snapshot_id: what is scanned; ``None`` for a table without snapshots, and the end of an incremental scan.
        schema: what the filter is bound to.
    """

    scan: Mapping[str, Any]
    snapshot_id: int | None
    schema: Schema

    @cached_property
    def filter(self) -> Expression:
        """The filter, unbound.

        Raises:
            InputError: it is no expression.
        """
        return from_iceberg_json(self.scan["filter"]) if "filter" in self.scan else ALWAYS_TRUE

    @property
    def case_sensitive(self) -> bool:
        """Whether column names match by case."""
        return bool(self.scan["case-sensitive"])

    @property
    def start_snapshot_id(self) -> int | None:
        """The exclusive start of an incremental scan."""
        return self.scan.get("start-snapshot-id")

    @cached_property
    def stats_field_ids(self) -> frozenset[int]:
        """The columns whose statistics travel with the tasks.

        Raises:
            InputError: a column is not known.
        """
        ids = set()
        for name in self.scan.get("stats-fields", ()):
            try:
                ids.add(self.schema.find_field(name, case_sensitive=self.case_sensitive).field_id)
            except ValueError:
                raise InputError(f"stats-fields: the table has no column {name!r}") from None
        return frozenset(ids)

    @cached_property
    def key(self) -> str:
        """Equal for scans with equal plans: names sorted, and without the hint of how many rows are wanted."""
        fields = {name: value for name, value in self.scan.items() if name != "min-rows-requested"}
        for name in ("select", "stats-fields"):
            if name in fields:
                fields[name] = sorted(set(fields[name]))
        return json.dumps([fields, self.schema.schema_id], separators=(",", ":"), sort_keys=True)


def pin(scan: Mapping[str, Any], metadata: TableMetadata) -> PinnedScan:
    """Resolves the snapshot and the schema of a scan, or finds again those that a token pins.

    Raises:
        SnapshotGoneError: the table has no such snapshot or schema.
    """
    pinned = dict(scan)
    if "end-snapshot-id" in pinned:
        _require_snapshot(metadata, pinned["start-snapshot-id"])
        snapshot_id: int | None = pinned["end-snapshot-id"]
    else:
        snapshot_id = pinned.get("snapshot-id", metadata.current_snapshot_id)
        if snapshot_id is not None:
            pinned["snapshot-id"] = snapshot_id
    if snapshot_id is not None:
        _require_snapshot(metadata, snapshot_id)
    schema = _schema(pinned, metadata, snapshot_id)
    pinned["schema-id"] = schema.schema_id
    return PinnedScan(read_scan(pinned), snapshot_id, schema)


def _require_snapshot(metadata: TableMetadata, snapshot_id: int) -> None:
    if metadata.snapshot_by_id(snapshot_id) is None:
        raise SnapshotGoneError(f"snapshot {snapshot_id} is none of the table's (it may have expired)")


def _schema(scan: Mapping[str, Any], metadata: TableMetadata, snapshot_id: int | None) -> Schema:
    by_id = {schema.schema_id: schema for schema in metadata.schemas}
    if "schema-id" in scan:
        if scan["schema-id"] not in by_id:
            raise SnapshotGoneError(f"schema {scan['schema-id']} is none of the table's")
        return by_id[scan["schema-id"]]
    if scan["use-snapshot-schema"] and snapshot_id is not None:
        snapshot = metadata.snapshot_by_id(snapshot_id)
        if snapshot is not None and snapshot.schema_id in by_id:
            return by_id[snapshot.schema_id]
    return metadata.schema()
