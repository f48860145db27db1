"""Predicts what Iceberg's ``rewrite_manifests`` will make of one spec's manifests.

The rule is that of Iceberg's Spark action: the number of new manifests is the size of the old ones over the target,
rounded up; live entries are range-partitioned by their partition (nulls first) into that many, and equal partitions
never part, unless a manifest outgrows the target by a fifth. The result is planning metadata again, so that
everything that measures a table measures the prediction too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec

from planning_health.health.data_files import positive_property
from planning_health.metadata.model import DATA, DELETED, DELETES, EXISTING, MANIFESTS_SCHEMA, PlanningMetadata
from planning_health.metadata.single_values import decode_array

TARGET_SIZE_PROPERTY: Final = "commit.manifest.target-size-bytes"
DEFAULT_TARGET_SIZE: Final = 8 * 1024 * 1024

_ROLL_CHECK_ROWS: Final = 250
_ROLL_FACTOR: Final = 1.2

Order = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RewritePrediction:
    """What a rewrite of one spec will do.

    Attributes:
        rewrites: false where Iceberg itself would leave everything as it is (nothing to merge).
        metadata: the planning metadata as it will be.
    """

    spec_id: int
    sort_by: tuple[str, ...]
    rewrites: bool
    metadata: PlanningMetadata


def target_size(properties: dict[str, str]) -> int:
    """The manifest size that commits and rewrites of a table aim at, in bytes."""
    return positive_property(properties, TARGET_SIZE_PROPERTY, DEFAULT_TARGET_SIZE)


def predict_rewrite_manifests(
    metadata: PlanningMetadata, spec_id: int, target_size_bytes: int, sort_by: Sequence[str] | None = None
) -> RewritePrediction:
    """Predicts a rewrite of one spec's data and delete manifests.

    Args:
        metadata: the recorded snapshot.
        spec_id: the spec whose manifests are rewritten; the others stay.
        target_size_bytes: the size that new manifests aim at.
        sort_by: partition field names to cluster by; all fields of the spec, in the order of their field ids, when
            empty.
    """
    spec = metadata.info.specs[spec_id]
    order = tuple(sort_by or ())
    parts = [
        part
        for content in (DATA, DELETES)
        if (part := _Part(metadata, spec, content, target_size_bytes, order)).is_rewritten
    ]
    if not parts:
        return RewritePrediction(spec_id, order, False, metadata)
    return RewritePrediction(spec_id, order, True, _assemble(metadata, parts))


class _Part:
    """The data or the delete manifests of the spec."""

    def __init__(
        self, metadata: PlanningMetadata, spec: PartitionSpec, content: int, target: int, sort_by: tuple[str, ...]
    ) -> None:
        self.metadata, self.spec, self.content, self.target, self.sort_by = metadata, spec, content, target, sort_by
        manifests = metadata.manifests
        mine = pc.and_(pc.equal(manifests["content"], content), pc.equal(manifests["partition_spec_id"], spec.spec_id))
        self.old = manifests.filter(mine)
        self.wanted = -(-self._total("length") // target)
        self.is_rewritten = len(self.old) > 0 and not (self.wanted == 1 and len(self.old) == 1)

    def groups(self) -> tuple[pa.Table, list[Order]]:
        """The live entries, and for each new manifest the rows of it in their new order."""
        files = self.metadata.data_files if self.content == DATA else self.metadata.delete_files
        ordinals = pa.array(self.old["ordinal"].to_pylist(), pa.int32())
        live = pc.and_(pc.is_in(files["manifest_ordinal"], value_set=ordinals), pc.not_equal(files["status"], DELETED))
        entries = files.filter(live).combine_chunks()
        if not len(entries):
            return entries, []
        keys = self._keys(entries)
        if keys is None:  # unpartitioned: dealt out evenly
            rows = np.arange(len(entries))
            dealt = [rows[start :: self.wanted] for start in range(self.wanted)]
        else:
            order = np.argsort(keys, kind="stable")
            dealt = _split(order, keys[order], self.wanted)
        return entries, [piece for group in dealt if len(group) for piece in self._rolled(group, len(entries))]

    def _keys(self, entries: pa.Table) -> npt.NDArray[np.int64] | None:
        """One number an entry that orders it as Spark orders its partition; ``None`` for an unpartitioned spec."""
        if not self.spec.fields:
            return None
        by_name = {field.name: position for position, field in enumerate(self.spec.fields)}
        by_id = sorted(range(len(self.spec.fields)), key=lambda position: self.spec.fields[position].field_id)
        positions = [by_name[name] for name in self.sort_by] or by_id
        types = self.metadata.info.partition_types(self.spec)
        keys: npt.NDArray[np.int64] = np.zeros(len(entries), dtype=np.int64)
        for position in positions:
            field_type = types[position]
            if field_type is None:
                continue
            values, known = decode_array(partition_values(entries, position), field_type)
            ranks = np.zeros(len(entries), dtype=np.int64)  # 0 is null, which Spark sorts first
            if known.any():
                ranks[known] = np.unique(values[known], return_inverse=True)[1].reshape(-1) + 1
            keys = keys * (ranks.max() + 1) + ranks
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return keys

    def _rolled(self, group: Order, entries: int) -> list[Order]:
        """Splits a manifest where it would outgrow the target by a fifth; the writer looks every 250 rows."""
        bytes_per_entry = self._total("length") / entries
        rows = int(self.target * _ROLL_FACTOR / bytes_per_entry) + 1
        rows = -(-rows // _ROLL_CHECK_ROWS) * _ROLL_CHECK_ROWS
        return [group[start : start + rows] for start in range(0, len(group), rows)]

    def header_bytes(self) -> int:
        """About what a manifest takes beside its entries: Avro's header holds the schemas uncompressed."""
        info = self.metadata.info
        schema = len(info.schema.model_dump_json(by_alias=True, exclude_none=True))
        fixed = _HEADER_BYTES[min(info.format_version, max(_HEADER_BYTES))]
        smallest = pc.min(self.old["length"]).as_py()
        return min(fixed + _HEADER_BYTES_PER_FIELD * len(self.spec.fields) + schema, int(smallest * 0.95))

    def length(self, entries: int) -> int:
        """The predicted size of a new manifest of so many entries.

        The first entry of a manifest hardly compresses, later ones repeat much of it: so merging saves more than the
        headers.
        """
        header = self.header_bytes()
        body = max(0, self._total("length") - header * len(self.old))
        first = min(self.raw_entry_bytes * _FIRST_ENTRY_RATIO, body / max(1, len(self.old)))
        later = (body - first * len(self.old)) / max(1, self.entries - len(self.old))
        return header + round(first + later * (entries - 1))

    @cached_property
    def entries(self) -> int:
        """Entries of the old manifests, DELETED ones included."""
        return sum(self._total(f"entries_{kind}") for kind in ("added", "existing", "deleted"))

    @property
    def raw_entry_bytes(self) -> float:
        """Mean bytes of an entry before compression."""
        return self._total("uncompressed_bytes") / max(1, self.entries)

    def _total(self, column: str) -> int:
        return int(pc.sum(self.old[column]).as_py() or 0)


_FIRST_ENTRY_RATIO: Final = 0.7
"""Compressed / raw bytes of a manifest's first entry, by deflate (measured)."""

_HEADER_BYTES: Final = {1: 5432, 2: 6676, 3: 7489}
_HEADER_BYTES_PER_FIELD: Final = 215
"""A manifest's header without the table's schema, by format version, and what a partition field adds (measured)."""


def _split(order: Order, keys: npt.NDArray[np.int64], wanted: int) -> list[Order]:
    """Spark's range partitioning: bounds where the running count passes equal steps, never within equal keys."""
    step = len(keys) / wanted
    goal, bounds = step, list[int]()
    for position, key in enumerate(keys.tolist(), start=1):
        if len(bounds) == wanted - 1:
            break
        if position >= goal and (not bounds or key > bounds[-1]):
            bounds.append(key)
            goal += step
    cuts = np.searchsorted(keys, np.array(bounds, dtype=np.int64), side="right")
    return np.split(order, cuts)


def _assemble(metadata: PlanningMetadata, parts: list[_Part]) -> PlanningMetadata:
    """The snapshot as Iceberg lists it: new manifests first, data before deletes, then those that were kept."""
    rows: list[dict[str, Any]] = []
    files: dict[int, list[pa.Table]] = {DATA: [], DELETES: []}
    replaced = {ordinal for part in parts for ordinal in part.old["ordinal"].to_pylist()}
    for part in parts:
        entries, groups = part.groups()
        for group in groups:
            new_entries = _renumbered(entries.take(pa.array(group)), len(rows))
            files[part.content].append(new_entries)
            rows.append(_manifest_row(part, new_entries, len(rows)))
    moved = np.full(len(metadata.manifests) + 1, -1, dtype=np.int32)  # old ordinal → new one; -1 is replaced
    for row in metadata.manifests.to_pylist():
        if row["ordinal"] not in replaced:
            moved[row["ordinal"]] = len(rows)
            rows.append(row | {"ordinal": len(rows)})
    files[DATA].append(_kept(metadata.data_files, moved))
    files[DELETES].append(_kept(metadata.delete_files, moved))
    return replace(
        metadata,
        manifests=pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA),
        data_files=pa.concat_tables([metadata.data_files.schema.empty_table(), *files[DATA]]),
        delete_files=pa.concat_tables([metadata.delete_files.schema.empty_table(), *files[DELETES]]),
    )


def _kept(files: pa.Table, moved: npt.NDArray[np.int32]) -> pa.Table:
    """The entries of the manifests that stay, with their manifests' new ordinals."""
    ordinals = moved[files["manifest_ordinal"].to_numpy()]
    stays = ordinals >= 0
    return _with(files.filter(pa.array(stays)), "manifest_ordinal", pa.array(ordinals[stays], pa.int32()))


def _renumbered(entries: pa.Table, ordinal: int) -> pa.Table:
    count = len(entries)
    entries = _with(entries, "manifest_ordinal", pa.array([ordinal] * count, pa.int32()))
    entries = _with(entries, "position", pa.array(range(count), pa.int32()))
    return _with(entries, "status", pa.array([EXISTING] * count, pa.int8()))


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)


def _manifest_row(part: _Part, entries: pa.Table, ordinal: int) -> dict[str, Any]:
    length = part.length(len(entries))
    return {
        "ordinal": ordinal,
        "path": f"predicted-{ordinal}",
        "length": length,
        "file_size": length,
        "partition_spec_id": part.spec.spec_id,
        "content": part.content,
        "sequence_number": getattr(part.metadata.info.metadata, "last_sequence_number", -1) + 1,
        "min_sequence_number": pc.min(entries["sequence_number"]).as_py(),
        "added_files_count": 0,
        "existing_files_count": len(entries),
        "deleted_files_count": 0,
        "added_rows_count": 0,
        "existing_rows_count": pc.sum(entries["record_count"]).as_py(),
        "deleted_rows_count": 0,
        "partitions": _summaries(part, entries),
        "entries_added": 0,
        "entries_existing": len(entries),
        "entries_deleted": 0,
        "uncompressed_bytes": round(part.raw_entry_bytes * len(entries)),
        "statistics_bytes": _scaled_statistics(part.old, len(entries) / max(1, part.entries)),
        "codec": "deflate",
    }


def _scaled_statistics(old: pa.Table, share: float) -> list[dict[str, int]]:
    """The columns' statistics bytes of all old manifests, shared out to one new manifest."""
    total: Counter[int] = Counter()
    for columns in old["statistics_bytes"].to_pylist():
        total.update({column["field_id"]: column["bytes"] for column in columns or ()})
    return [{"field_id": field_id, "bytes": round(count * share)} for field_id, count in sorted(total.items())]


def _summaries(part: _Part, entries: pa.Table) -> list[dict[str, Any]]:
    return [
        _summary(partition_values(entries, position), field_type)
        for position, field_type in enumerate(part.metadata.info.partition_types(part.spec))
    ]


def partition_values(files: pa.Table, position: int) -> pa.Array:
    """The raw values of one partition field; all rows must be of the spec that the position belongs to."""
    return pc.list_element(files["partition"].combine_chunks(), position)


def _summary(raw: pa.Array, field_type: Any) -> dict[str, Any]:
    values, known = (
        decode_array(raw, field_type) if field_type is not None else (np.array([]), np.zeros(len(raw), bool))
    )
    not_nan = known.copy()
    not_nan[known] = values[known] == values[known]
    rows = np.flatnonzero(not_nan)
    order = rows[np.argsort(values[rows], kind="stable")]
    return {
        "contains_null": bool(raw.null_count),
        "contains_nan": bool((known & ~not_nan).any()),
        "lower_bound": raw[int(order[0])].as_py() if len(order) else None,
        "upper_bound": raw[int(order[-1])].as_py() if len(order) else None,
    }
