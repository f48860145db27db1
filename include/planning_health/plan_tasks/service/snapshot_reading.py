"""Reads what planning one scan needs, and no more: the manifests that survive the filter, or the entries a token names.

The result is ordinary planning metadata, with the files of the manifests that were read; the scan-planning simulation
answers from it what Iceberg would plan. Manifests are read again for every plan that is computed: what is kept
between requests is the plan cache's business.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.snapshots import Operation

from planning_health.errors import InputError
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.manifest_reader import DecodedManifest, concat_files, decode_manifest
from planning_health.metadata.model import ADDED, DATA, DELETES, PlanningMetadata, TableInfo
from planning_health.metadata.record import manifests_of, manifests_table
from planning_health.metadata.store import delete_files_recorded
from planning_health.plan_tasks.service.scan_request import PinnedScan
from planning_health.plan_tasks.service.source import SourceTable
from planning_health.planning.expressions import BoundPredicate, bind, leaves
from planning_health.planning.scan import ScanPlanner

_READERS: Final = ThreadPoolExecutor(8, thread_name_prefix="manifests")
"""Shared by all plans: more threads would decode no faster, and each keeps memory of its own."""

_COUNTS: Final = ("added_files_count", "existing_files_count", "deleted_files_count")


@dataclass(frozen=True)
class Survivors:
    """What is left of a snapshot after manifest pruning; no manifest was opened for it.

    Attributes:
        table: the table.
        scan: the pinned scan.
        manifests: the manifests that were looked at, in the manifest list's order.
        data: the data manifests that might hold matching files.
        deletes: the delete manifests that might apply.
        appended: of an incremental scan, the snapshots whose added files are meant; ``None`` for all live files.
    """

    table: SourceTable
    scan: PinnedScan
    manifests: Sequence[ManifestFile]
    data: Sequence[ManifestFile]
    deletes: Sequence[ManifestFile]
    appended: frozenset[int] | None = None

    def read(self) -> PlanningMetadata:
        """Reads all surviving manifests."""
        filter_ids = _filter_field_ids(self.scan)
        recorded = filter_ids | self.scan.stats_field_ids
        deletes = self._decode(self.deletes, recorded)
        equality = frozenset[int]().union(*(decoded.equality_ids for decoded in deletes))
        if not equality <= recorded:
            recorded |= equality
            deletes = self._decode(self.deletes, recorded)
        data = self._decode(self.data, recorded)
        return self._metadata([decoded.files for decoded in data], [decoded.files for decoded in deletes], recorded)

    def read_ranges(self, ranges: Sequence[tuple[ManifestFile, int, int]]) -> PlanningMetadata:
        """Reads entries [start, end) of data manifests, each manifest from its beginning to the end of its range.

        Raises:
            IndexError: a manifest has fewer entries than its range.
        """
        recorded = _filter_field_ids(self.scan) | self.scan.stats_field_ids
        decoded = self._decode([manifest for manifest, _, _ in ranges], recorded, [end for _, _, end in ranges])
        for (manifest, _, end), files in zip(ranges, decoded, strict=True):
            if len(files.files) < end:
                raise IndexError(f"manifest {manifest.path} has {len(files.files)} entries, not {end}")
        parts = [files.files.slice(start) for (_, start, _), files in zip(ranges, decoded, strict=True)]
        return self._metadata(parts, [], recorded)

    def entries(self) -> list[int]:
        """Physical entries of each surviving data manifest; one whose counts are not recorded is read for them."""
        known = [[manifest.counts.get(name) for name in _COUNTS] for manifest in self.data]
        unknown = [manifest for manifest, counts in zip(self.data, known, strict=True) if None in counts]
        counted = {m.ordinal: len(d.files) for m, d in zip(unknown, self._decode(unknown, frozenset()), strict=True)}
        return [
            counted[manifest.ordinal] if manifest.ordinal in counted else sum(count or 0 for count in counts)
            for manifest, counts in zip(self.data, known, strict=True)
        ]

    def _decode(
        self, manifests: Sequence[ManifestFile], recorded: frozenset[int], entries: Sequence[int] | None = None
    ) -> list[DecodedManifest]:
        def decode(manifest: ManifestFile, limit: int | None) -> DecodedManifest:
            content = self.table.read(manifest.path)
            # A server reads manifests all day: loading the compiled decoder pays at once.
            return decode_manifest(manifest, content, recorded, compiled=True, entries=limit)

        limits: Sequence[int | None] = entries if entries is not None else [None] * len(manifests)
        return _in_parallel(decode, manifests, limits)

    def _metadata(self, data: list[pa.Table], deletes: list[pa.Table], recorded: frozenset[int]) -> PlanningMetadata:
        if self.appended is not None:
            data = [_added_by(files, self.appended) for files in data]
        return _metadata(self.table, self.scan, self.manifests, data, deletes, recorded)


def survivors(table: SourceTable, scan: PinnedScan, named: Container[str] | None = None) -> Survivors:
    """Reads a snapshot's manifest list and prunes its manifests by the scan's filter.

    Args:
        table: the table.
        scan: the pinned scan.
        named: paths of the data manifests to look at; without it, all.

    Raises:
        InputError: the filter does not fit the table.
        NotMeasurableError: the manifest list cannot be read.
    """
    if scan.start_snapshot_id is None:
        manifests, _ = manifests_of(table.metadata, scan.snapshot_id, table.read)
        return _pruned(table, scan, manifests, named)
    appends = frozenset(_appends(table, scan))
    manifests = _appended_manifests(table, appends)
    return replace(_pruned(table, scan, manifests, named), appended=appends)


def _appends(table: SourceTable, scan: PinnedScan) -> Iterator[int]:
    """The snapshots after the start, up to and with the end, that append: those of Iceberg's IncrementalAppendScan."""
    snapshot_id = scan.snapshot_id
    while snapshot_id != scan.start_snapshot_id:
        snapshot = table.metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else None
        if snapshot is None:
            raise InputError(f"snapshot {scan.start_snapshot_id} is no ancestor of snapshot {scan.snapshot_id}")
        if snapshot.summary is not None and snapshot.summary.operation is Operation.APPEND:
            yield snapshot.snapshot_id
        snapshot_id = snapshot.parent_snapshot_id


def _appended_manifests(table: SourceTable, appends: frozenset[int]) -> list[ManifestFile]:
    """The data manifests that one of the snapshots wrote, each once."""
    by_path = {
        manifest.path: manifest
        for append in sorted(appends)
        for manifest in manifests_of(table.metadata, append, table.read)[0]
        if manifest.content == DATA and manifest.added_snapshot_id in appends
    }
    return list(by_path.values())


def _added_by(files: pa.Table, snapshots: frozenset[int]) -> pa.Table:
    among = pc.is_in(files["snapshot_id"], value_set=pa.array(sorted(snapshots), pa.int64()))
    return files.filter(pc.and_(among, pc.equal(files["status"], ADDED)))


def _pruned(
    table: SourceTable, scan: PinnedScan, listed: Sequence[ManifestFile], named: Container[str] | None
) -> Survivors:
    chosen = [item for item in listed if named is None or item.content == DELETES or item.path in named]
    manifests = [replace(manifest, ordinal=ordinal) for ordinal, manifest in enumerate(chosen)]
    skeleton = _metadata(table, scan, manifests, [], [], frozenset())
    planned = ScanPlanner(skeleton).plan(scan.filter, case_sensitive=scan.case_sensitive)
    opened = [manifests[ordinal] for ordinal in planned.scanned_manifests.tolist()]
    data = [manifest for manifest in opened if manifest.content == DATA]
    return Survivors(table, scan, manifests, data, [manifest for manifest in opened if manifest.content == DELETES])


def _filter_field_ids(scan: PinnedScan) -> frozenset[int]:
    bound = bind(scan.filter, scan.schema, case_sensitive=scan.case_sensitive)
    return frozenset(leaf.ref.field_id for leaf in leaves(bound) if isinstance(leaf, BoundPredicate))


def _metadata(
    table: SourceTable,
    scan: PinnedScan,
    manifests: Sequence[ManifestFile],
    data: Iterable[pa.Table],
    deletes: Iterable[pa.Table],
    recorded: frozenset[int],
) -> PlanningMetadata:
    info = TableInfo(
        name=table.name,
        metadata=table.metadata,
        metadata_location=table.location,
        snapshot_id=scan.snapshot_id,
        ref=None,
        schema=scan.schema,
        recorded_field_ids=recorded,
        recorder="pyiceberg",
        measured_at="",
        manifest_list_bytes=0,
        record_ms=0.0,
    )
    return PlanningMetadata(
        info=info,
        manifests=manifests_table([manifest.columns() for manifest in manifests]),
        data_files=concat_files(data, recorded),
        delete_files=concat_files(deletes, delete_files_recorded(recorded)),
    )


def _in_parallel(
    work: Callable[[ManifestFile, int | None], DecodedManifest],
    manifests: Sequence[ManifestFile],
    limits: Sequence[int | None],
) -> list[DecodedManifest]:
    return list(_READERS.map(work, manifests, limits))
