"""What is read for a plan: surviving manifests only, and of a manifest no more than an entry range needs."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import fastavro
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.plan_tasks.service.conftest import APPENDS, EVENTS, KINDS

from planning_health.errors import NotMeasurableError
from planning_health.metadata.avro_reader import read_avro
from planning_health.metadata.manifest_reader import decode_manifest
from planning_health.plan_tasks.service.scan_request import PinnedScan, pin, scan_of_request
from planning_health.plan_tasks.service.snapshot_reading import Survivors, survivors
from planning_health.plan_tasks.service.source import CatalogSource, SourceTable
from planning_health.settings import SettingsDocument


class Reading:
    """A table whose reads are written down."""

    def __init__(self, table: SourceTable) -> None:
        self.read_paths: list[str] = []
        self.damaged: set[str] = set()
        self._read = table.read
        self.table = replace(table, read=self.read)

    def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        content = self._read(path)
        return content[:-40] if path in self.damaged else content

    def survivors(self, **request: object) -> Survivors:
        return survivors(self.table, self.pinned(**request))

    def pinned(self, **request: object) -> PinnedScan:
        scan = scan_of_request({name.replace("_", "-"): value for name, value in request.items()})
        return pin(scan, self.table.metadata)


@pytest.fixture
def reading(lake_settings: SettingsDocument, writer: SqlCatalog) -> Reading:
    return Reading(CatalogSource(lake_settings, "lake").load(EVENTS[:-1], EVENTS[-1]))


def test_manifests_that_the_filter_rules_out_are_not_opened(reading: Reading) -> None:
    left = reading.survivors(filter={"type": "eq", "term": "kind", "value": "no such kind"})
    assert not left.data
    assert len(reading.read_paths) == 1  # the manifest list


def test_entries_come_from_the_manifest_list_without_opening_a_manifest(reading: Reading) -> None:
    assert reading.survivors().entries() == [len(KINDS)] * APPENDS
    assert len(reading.read_paths) == 1


def test_a_manifest_without_counts_is_read_for_them(reading: Reading) -> None:
    left = reading.survivors()
    unknown = replace(left.data[2], counts=left.data[2].counts | {"added_files_count": None})
    left = replace(left, data=[*left.data[:2], unknown, *left.data[3:]])
    assert left.entries() == [len(KINDS)] * APPENDS
    assert reading.read_paths[1:] == [unknown.path]


def test_a_range_opens_its_own_manifests_only(reading: Reading) -> None:
    left = reading.survivors()
    metadata = left.read_ranges([(left.data[1], 1, 3), (left.data[2], 0, 1)])
    assert sorted(reading.read_paths[1:]) == sorted([left.data[1].path, left.data[2].path])
    positions = zip(
        metadata.data_files["manifest_ordinal"].to_pylist(), metadata.data_files["position"].to_pylist(), strict=True
    )
    assert list(positions) == [(left.data[1].ordinal, 1), (left.data[1].ordinal, 2), (left.data[2].ordinal, 0)]


def test_reading_stops_at_the_end_of_the_range(reading: Reading) -> None:
    """The manifest's last block is damaged: whoever reads beyond the range would fail."""
    left = reading.survivors()
    reading.damaged.add(left.data[0].path)
    assert len(left.read_ranges([(left.data[0], 0, len(KINDS) - 1)]).data_files) == len(KINDS) - 1
    with pytest.raises(NotMeasurableError):
        left.read()


def in_one_block(content: bytes) -> bytes:
    """The manifest with all entries in one block, as Iceberg Java writes it; PyIceberg writes a block for each."""
    reader = fastavro.reader(io.BytesIO(content))
    written = io.BytesIO()
    fastavro.writer(written, reader.writer_schema, list(reader), "deflate", sync_interval=2**20)
    return written.getvalue()


@pytest.mark.parametrize("rewritten", [bytes, in_one_block])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_beginning_of_a_manifest_decodes_like_the_whole(
    reading: Reading, compiled: bool, rewritten: Callable[[bytes], bytes]
) -> None:
    manifest = reading.survivors().data[0]
    content = rewritten(reading.table.read(manifest.path))
    whole = decode_manifest(manifest, content, frozenset({1, 3}), compiled=compiled).files
    for entries in range(1, len(KINDS) + 1):
        part = decode_manifest(manifest, content, frozenset({1, 3}), compiled=compiled, entries=entries).files
        assert part.equals(whole.slice(0, entries))
        assert sum(count for count, _ in read_avro(manifest.path, content, entries).blocks) == entries


def test_keys_of_equal_scans_are_equal(reading: Reading) -> None:
    keys = {
        reading.pinned(select=["id", "kind"], stats_fields=["day", "id"]).key,
        reading.pinned(select=["kind", "id", "id"], stats_fields=["id", "day"], min_rows_requested=5).key,
        reading.pinned(
            select=["kind", "id"],
            stats_fields=["id", "day"],
            snapshot_id=reading.table.metadata.current_snapshot_id,
        ).key,
    }
    assert len(keys) == 1
    others = [
        reading.pinned().key,
        reading.pinned(select=["id"]).key,
        reading.pinned(case_sensitive=False).key,
        reading.pinned(use_snapshot_schema=True).key,
        reading.pinned(filter=False).key,
        reading.pinned(snapshot_id=reading.table.metadata.snapshots[0].snapshot_id).key,
        *keys,
    ]
    assert len(set(others)) == len(others)
