"""The measured snapshot as NumPy arrays, and split by partition spec: what all signals are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from planning_health.health.columns import Floats, Ints, Mask, integers
from planning_health.health.overlap import OverlapDepth, overlap_depth
from planning_health.health.partition_fields import (
    FieldKey,
    FieldSummaries,
    FieldValues,
    fields_of,
    summaries_by_field,
    values_by_field,
)
from planning_health.metadata.model import DATA, DELETED, DELETES, PlanningMetadata


@dataclass(frozen=True)
class ManifestColumns:
    """One value a manifest, in the manifest list's order."""

    length: Ints
    file_size: Ints
    spec_id: Ints
    content: Ints
    added: Ints
    existing: Ints
    deleted: Ints
    uncompressed: Ints

    @property
    def entries(self) -> Ints:
        """All entries, DELETED ones included, as counted in the manifests themselves."""
        return self.added + self.existing + self.deleted

    @property
    def live(self) -> Ints:
        """Entries that are not DELETED."""
        return self.added + self.existing

    @property
    def deleted_ratio(self) -> Floats:
        """DELETED / all entries of a data manifest; NaN (not measured) without entries and for delete manifests."""
        entries = self.entries
        measured = (entries > 0) & (self.content == DATA)
        return np.where(measured, self.deleted / np.maximum(entries, 1), np.nan)

    def of(self, content: int, spec_id: int | None = None) -> Mask:
        """Which manifests have this content, and this spec if one is given."""
        chosen: Mask = self.content == content
        return chosen if spec_id is None else chosen & (self.spec_id == spec_id)


@dataclass(frozen=True)
class FileColumns:
    """One value an entry of the data manifests or of the delete manifests."""

    manifest: Ints
    live: Mask
    spec_id: Ints
    content: Ints
    sequence: Ints
    records: Ints
    size: Ints


@dataclass(frozen=True)
class SpecPicture:
    """One partition spec: its fields, its data entries' values and its manifests' summaries.

    Attributes:
        rows: the spec's entries in ``data_files``.
        live: which of them are not DELETED.
        values: one for each field, over ``rows``.
        data_summaries: one for each field, over the spec's data manifests.
        delete_summaries: one for each field, over the spec's delete manifests.
        overlap: one for each field.
    """

    spec_id: int
    keys: list[FieldKey]
    rows: Ints
    live: Mask
    values: list[FieldValues]
    data_summaries: list[FieldSummaries]
    delete_summaries: list[FieldSummaries]
    overlap: list[OverlapDepth]


class Picture:
    """A recorded snapshot, ready for the signals.

    Args:
        metadata: the recording; its manifests' ordinals count from 0 in order.
    """

    def __init__(self, metadata: PlanningMetadata) -> None:
        self.metadata = metadata
        self.info = metadata.info
        table = metadata.manifests
        self.manifests = ManifestColumns(
            length=integers(table, "length"),
            file_size=integers(table, "file_size", absent=-1),
            spec_id=integers(table, "partition_spec_id"),
            content=integers(table, "content"),
            added=integers(table, "entries_added"),
            existing=integers(table, "entries_existing"),
            deleted=integers(table, "entries_deleted"),
            uncompressed=integers(table, "uncompressed_bytes"),
        )
        self.data = _file_columns(metadata.data_files)
        self.deletes = _file_columns(metadata.delete_files)

    @cached_property
    def paths(self) -> list[str]:
        """The manifests' paths."""
        paths: list[str] = self.metadata.manifests["path"].to_pylist()
        return paths

    @cached_property
    def spec_ids(self) -> list[int]:
        """The specs that have manifests, ascending."""
        return [int(spec_id) for spec_id in np.unique(self.manifests.spec_id)]

    @cached_property
    def specs(self) -> list[SpecPicture]:
        """The specs that have manifests, ascending; one that the table's metadata lacks is taken as unpartitioned."""
        return [self._spec(spec_id) for spec_id in self.spec_ids]

    @cached_property
    def _summaries(self) -> pa.Array:
        return _one_chunk(self.metadata.manifests["partitions"])

    @cached_property
    def data_partitions(self) -> pa.Array:
        """The ``partition`` column of ``data_files``."""
        return _one_chunk(self.metadata.data_files["partition"])

    @cached_property
    def delete_partitions(self) -> pa.Array:
        """The ``partition`` column of ``delete_files``."""
        return _one_chunk(self.metadata.delete_files["partition"])

    def _spec(self, spec_id: int) -> SpecPicture:
        spec = self.info.specs.get(spec_id)
        keys = fields_of(self.info, spec) if spec else []
        rows = np.flatnonzero(self.data.spec_id == spec_id)
        live = self.data.live[rows]
        values = values_by_field(keys, self.data_partitions.take(pa.array(rows))) if keys else []
        data, deletes = (self._field_summaries(keys, self.manifests.of(kind, spec_id)) for kind in (DATA, DELETES))
        lives = self.manifests.live[np.flatnonzero(self.manifests.of(DATA, spec_id))] > 0
        overlap = [overlap_depth(value, live, summary, lives) for value, summary in zip(values, data, strict=True)]
        return SpecPicture(spec_id, keys, rows, live, values, data, deletes, overlap)

    def _field_summaries(self, keys: list[FieldKey], chosen: Mask) -> list[FieldSummaries]:
        ordinals = np.flatnonzero(chosen)
        return summaries_by_field(keys, ordinals, self._summaries.take(pa.array(ordinals))) if keys else []


def _file_columns(table: pa.Table) -> FileColumns:
    return FileColumns(
        manifest=integers(table, "manifest_ordinal"),
        live=integers(table, "status") != DELETED,
        spec_id=integers(table, "spec_id"),
        content=integers(table, "content"),
        sequence=integers(table, "sequence_number", absent=-1),
        records=integers(table, "record_count"),
        size=integers(table, "file_size_in_bytes"),
    )


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return pa.concat_arrays(combined.chunks) if combined.num_chunks else pa.array([], type=column.type)
    return combined
