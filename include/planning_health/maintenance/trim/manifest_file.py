"""Makes manifests: the Avro file from entries, and its description as Iceberg's ``ManifestFiles.decode`` reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import fastavro

from planning_health.metadata.avro_blocks import SYNC_MARKER_BYTES, encoded_block
from planning_health.metadata.avro_reader import AvroFile, read_avro
from planning_health.metadata.manifest_encoding import BLOCK_BYTES


@dataclass(frozen=True)
class EmptyManifest:
    """A manifest without entries as Iceberg wrote it: it ends with its sync marker."""

    content: bytes

    @cached_property
    def avro(self) -> AvroFile:
        """Its entry schema and codec."""
        return read_avro("an empty manifest", self.content)

    def filled(self, entries: Iterable[memoryview | bytes]) -> bytes:
        """The manifest with these encoded entries, in blocks as large as those of Iceberg's writer."""
        sync = self.content[-SYNC_MARKER_BYTES:]
        parts, block, size = [self.content], [], 0
        for entry in entries:
            block.append(entry)
            size += len(entry)
            if size >= BLOCK_BYTES:
                parts += [encoded_block(self.avro.codec, len(block), b"".join(block)), sync]
                block, size = [], 0
        if block:
            parts += [encoded_block(self.avro.codec, len(block), b"".join(block)), sync]
        return b"".join(parts)


def _field(field_id: int, name: str, schema: Any, *, optional: bool = False) -> dict[str, Any]:
    found = {"name": name, "type": ["null", schema] if optional else schema, "field-id": field_id}
    return found | {"default": None} if optional else found


_SUMMARY: Final = {
    "type": "record",
    "name": "org.apache.iceberg.GenericPartitionFieldSummary",
    "fields": [
        _field(509, "contains_null", "boolean"),
        _field(518, "contains_nan", "boolean", optional=True),
        _field(510, "lower_bound", "bytes", optional=True),
        _field(511, "upper_bound", "bytes", optional=True),
    ],
}
_DESCRIPTION: Final = {
    "type": "record",
    "name": "org.apache.iceberg.GenericManifestFile",
    "fields": [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
        _field(517, "content", "int"),
        _field(515, "sequence_number", "long"),
        _field(516, "min_sequence_number", "long"),
        _field(503, "added_snapshot_id", "long", optional=True),
        _field(504, "added_files_count", "int"),
        _field(505, "existing_files_count", "int"),
        _field(506, "deleted_files_count", "int"),
        _field(512, "added_rows_count", "long"),
        _field(513, "existing_rows_count", "long"),
        _field(514, "deleted_rows_count", "long"),
        _field(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508}, optional=True),
        _field(519, "key_metadata", "bytes", optional=True),
        _field(520, "first_row_id", "long", optional=True),
    ],
}
_MAGIC: Final = b"\xc2\x01"
_UNASSIGNED: Final = -1


def described(path: str, length: int, row: Mapping[str, Any]) -> bytes:
    """A manifest that the commit which adds it assigns to its snapshot.

    Args:
        path: where it lies.
        length: its size in bytes.
        row: its spec, counts, partition summaries and exact minimum sequence number, as planning metadata has them.
    """
    schema = json.dumps(_DESCRIPTION).encode()
    datum = {name: row[name] for name in ("partition_spec_id", "content", "min_sequence_number", "partitions")}
    datum |= {name: row[name] for name in row if name.endswith(("_files_count", "_rows_count"))}
    datum |= {
        "manifest_path": path,
        "manifest_length": length,
        "sequence_number": _UNASSIGNED,
        "added_snapshot_id": None,
        "key_metadata": None,
        "first_row_id": None,
    }
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(_DESCRIPTION), datum)
    return _MAGIC + len(schema).to_bytes(2, "big") + schema + out.getvalue()
