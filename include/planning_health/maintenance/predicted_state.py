"""A snapshot as it will be: planning metadata in which some manifests are replaced by predicted ones.

Everything that measures a recorded snapshot measures a predicted one too.
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

from planning_health.metadata.model import (
    DATA,
    DELETED,
    DELETES,
    EXISTING,
    MANIFESTS_SCHEMA,
    PlanningMetadata,
    TableInfo,
)
from planning_health.metadata.single_values import decode_array

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Replacement:
    """Manifests that go, and what takes their place.

    Attributes:
        old: the manifests that go, all of one spec and content.
        entries: their live entries.
        groups: for each new manifest the rows of ``entries`` that it holds, in order.
    """

    old: OldManifests
    entries: pa.Table
    groups: Sequence[Rows]


class OldManifests:
    """Manifests of one spec and content that are to be replaced.

    Args:
        metadata: the snapshot.
        spec: their spec.
        content: data or deletes.
        manifests: their rows.
    """

    def __init__(self, metadata: PlanningMetadata, spec: PartitionSpec, content: int, manifests: pa.Table) -> None:
        self.metadata, self.spec, self.content, self.manifests = metadata, spec, content, manifests

    def live_entries(self) -> pa.Table:
        """Their live entries, in order."""
        files = self.metadata.data_files if self.content == DATA else self.metadata.delete_files
        ordinals = pa.array(self.manifests["ordinal"].to_pylist(), pa.int32())
        live = pc.and_(pc.is_in(files["manifest_ordinal"], value_set=ordinals), pc.not_equal(files["status"], DELETED))
        return files.filter(live).combine_chunks()

    def header_bytes(self) -> int:
        """About what a manifest takes beside its entries: Avro's header holds the schemas uncompressed."""
        info = self.metadata.info
        schema = len(info.schema.model_dump_json(by_alias=True, exclude_none=True))
        fixed = _HEADER_BYTES[min(info.format_version, max(_HEADER_BYTES))]
        smallest = pc.min(self.manifests["length"]).as_py()
        return min(fixed + _HEADER_BYTES_PER_FIELD * len(self.spec.fields) + schema, int(smallest * 0.95))

    def length(self, entries: int) -> int:
        """The predicted size of a new manifest of so many entries.

        The first entry of a manifest hardly compresses, later ones repeat much of it: so merging saves more than the
        headers.
        """
        header = self.header_bytes()
        body = max(0, self.total("length") - header * len(self.manifests))
        first = min(self.raw_entry_bytes * _FIRST_ENTRY_RATIO, body / max(1, len(self.manifests)))
        later = (body - first * len(self.manifests)) / max(1, self.entries - len(self.manifests))
        return header + round(first + later * (entries - 1))

    @cached_property
    def entries(self) -> int:
        """Entries of the old manifests, DELETED ones included."""
        return sum(self.total(f"entries_{kind}") for kind in ("added", "existing", "deleted"))

    @property
    def raw_entry_bytes(self) -> float:
        """Mean bytes of an entry before compression."""
        return self.total("uncompressed_bytes") / max(1, self.entries)

    def total(self, column: str) -> int:
        """The sum of one of their columns."""
        return int(pc.sum(self.manifests[column]).as_py() or 0)


_FIRST_ENTRY_RATIO: Final = 0.7
"""Compressed / raw bytes of a manifest's first entry, by deflate (measured)."""

_HEADER_BYTES: Final = {1: 5432, 2: 6676, 3: 7489}
_HEADER_BYTES_PER_FIELD: Final = 215
"""A manifest's header without the table's schema, by format version, and what a partition field adds (measured)."""


def predicted_state(metadata: PlanningMetadata, replacements: Sequence[Replacement]) -> PlanningMetadata:
    """The snapshot as Iceberg lists it: new manifests first, data before deletes, then those that were kept."""
    rows: list[dict[str, Any]] = []
    files: dict[int, list[pa.Table]] = {DATA: [], DELETES: []}
    replaced = {ordinal for item in replacements for ordinal in item.old.manifests["ordinal"].to_pylist()}
    for item in replacements:
        for group in item.groups:
            entries = _renumbered(item.entries.take(pa.array(group)), len(rows))
            files[item.old.content].append(entries)
            rows.append(_manifest_row(item.old, entries, len(rows)))
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


def _manifest_row(old: OldManifests, entries: pa.Table, ordinal: int) -> dict[str, Any]:
    samples = old.metadata.samples
    length = samples.manifest_bytes(old.spec.spec_id, old.content, entries) or old.length(len(entries))
    return {
        "ordinal": ordinal,
        "path": f"predicted-{ordinal}",
        "length": length,
        "file_size": length,
        "partition_spec_id": old.spec.spec_id,
        "content": old.content,
        "sequence_number": getattr(old.metadata.info.metadata, "last_sequence_number", -1) + 1,
        "min_sequence_number": pc.min(entries["sequence_number"]).as_py(),
        "added_files_count": 0,
        "existing_files_count": len(entries),
        "deleted_files_count": 0,
        "added_rows_count": 0,
        "existing_rows_count": pc.sum(entries["record_count"]).as_py(),
        "deleted_rows_count": 0,
        "partitions": partition_summaries(old.metadata.info, old.spec, entries),
        "entries_added": 0,
        "entries_existing": len(entries),
        "entries_deleted": 0,
        "uncompressed_bytes": round(old.raw_entry_bytes * len(entries)),
        "statistics_bytes": _scaled_statistics(old.manifests, len(entries) / max(1, old.entries)),
        "codec": "deflate",
    }


def _scaled_statistics(old: pa.Table, share: float) -> list[dict[str, int]]:
    """The columns' statistics bytes of all old manifests, shared out to one new manifest."""
    total: Counter[int] = Counter()
    for columns in old["statistics_bytes"].to_pylist():
        total.update({column["field_id"]: column["bytes"] for column in columns or ()})
    return [{"field_id": field_id, "bytes": round(count * share)} for field_id, count in sorted(total.items())]


def partition_summaries(info: TableInfo, spec: PartitionSpec, entries: pa.Table) -> list[dict[str, Any]]:
    """What a manifest of these entries says of their partition values, field by field."""
    return [
        _summary(partition_values(entries, position), field_type)
        for position, field_type in enumerate(info.partition_types(spec))
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
    if values.dtype.kind == "f":  # Iceberg has -0.0 before 0.0
        order = rows[np.lexsort((~np.signbit(values[rows]), values[rows]))]
    return {
        "contains_null": bool(raw.null_count),
        "contains_nan": bool((known & ~not_nan).any()),
        "lower_bound": raw[int(order[0])].as_py() if len(order) else None,
        "upper_bound": raw[int(order[-1])].as_py() if len(order) else None,
    }
