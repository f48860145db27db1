"""Encodes manifest entries again, as Iceberg's writer would: how large a manifest with other entries becomes.

Adding up the lengths of what an entry holds says little of a compressed file: entries repeat each other, and the order
they stand in decides how much. So a recording keeps some of a snapshot's real entries, which predictions put into
their order, change, and encode.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.metadata.avro_blocks import SYNC_MARKER_BYTES, beginning, blocks_from, encoded_block, varint
from planning_health.metadata.avro_reader import (
    METRIC_MAPS,
    AvroFile,
    field_schema,
    names_by_field_id,
    non_null,
    read_header,
    without_logical_types,
)

SAMPLED_MANIFESTS: Final = 64
SAMPLED_BYTES: Final = 4 * 1024 * 1024
"""Uncompressed bytes of the entries that are kept of one snapshot; at least one block of each sampled manifest."""

SAMPLES_SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("spec_id", pa.int32()),
        ("content", pa.int8()),
        ("header_bytes", pa.int64()),
        ("schema", pa.string()),
        ("codec", pa.string()),
        ("blocks", pa.list_(pa.struct([("entries", pa.int64()), ("bytes", pa.binary())]))),
    ]
)

BLOCK_BYTES: Final = 64_000
"""From how many bytes on Avro's Java writer ends a block (``DataFileConstants.DEFAULT_SYNC_INTERVAL``)."""

_STATUS, _SNAPSHOT, _FILE, _SEQUENCE_NUMBER, _FILE_SEQUENCE_NUMBER = range(5)
_PATH, _FIRST_ROW_ID, _CONTENT_OFFSET = 100, 142, 144
_EXISTING: Final = 0

Entry = dict[str, Any]
Keep = Callable[[str, int, Any], Any]
"""(statistic, column's field id, value) → the value to keep, or ``None`` to drop it."""
Inherited = Mapping[str, Any]
"""``snapshot_id``, ``sequence_number``, ``file_sequence_number`` and ``first_row_id`` of an entry."""


def sample_budgets(ordinals: Sequence[int]) -> dict[int, int]:
    """Which of a snapshot's manifests to keep entries of, evenly chosen, and how many bytes of each."""
    chosen = ordinals[:: max(1, -(-len(ordinals) // SAMPLED_MANIFESTS))]
    return dict.fromkeys(chosen, SAMPLED_BYTES // max(1, len(chosen)))


def sample_manifest(path: str, spec_id: int, content: int, raw: bytes, budget: int) -> dict[str, Any] | None:
    """The first entries of a manifest, as a row of ``SAMPLES_SCHEMA``; ``None`` without entries.

    Args:
        path: the manifest's path.
        spec_id: its partition spec.
        content: 0 for data, 1 for deletes.
        raw: the whole file.
        budget: after so many uncompressed bytes no further block is taken.
    """
    header = read_header(raw)
    blocks: list[dict[str, Any]] = []
    taken = 0
    for entries, body in blocks_from(raw, header.length):
        plain, whole = beginning(header.codec, body, max(budget - taken, BLOCK_BYTES * 2))
        blocks.append({"entries": entries, "bytes": plain} if whole else _cut(header.schema, plain))
        taken += len(plain)
        if taken >= budget:
            break
    if not blocks:
        return None
    return {
        "path": path,
        "spec_id": spec_id,
        "content": content,
        "header_bytes": header.length,
        "schema": header.schema,
        "codec": header.codec,
        "blocks": blocks,
    }


def _cut(schema: str, plain: bytes) -> dict[str, Any]:
    """The whole entries in the beginning of a block."""
    parsed = fastavro.parse_schema(without_logical_types(json.loads(schema)))
    stream, end, entries = io.BytesIO(plain), 0, 0
    try:
        while end < len(plain):
            fastavro.schemaless_reader(stream, parsed, None)
            end, entries = stream.tell(), entries + 1
    except (EOFError, ValueError, IndexError, UnicodeDecodeError):  # the entry that the cut goes through
        pass
    return {"entries": entries, "bytes": plain[:end]}


@dataclass(frozen=True)
class SampledManifest:
    """The first entries of one real manifest, and how to encode such entries.

    Attributes:
        header_bytes: the manifest's bytes before its first block: schemas and properties, uncompressed.
        avro: its schema, codec and sampled blocks.
    """

    path: str
    spec_id: int
    content: int
    header_bytes: int
    avro: AvroFile

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The sampled entries as raw Avro records."""
        return tuple(self.avro.records())

    def encoded_bytes(self, entries: Iterable[Entry]) -> int:
        """The bytes that entries take in a manifest, block by block, without its header."""
        total, count, block = 0, 0, io.BytesIO()
        for entry in entries:
            fastavro.schemaless_writer(block, self._parsed, entry)
            count += 1
            if block.tell() >= BLOCK_BYTES:
                total += self._block_bytes(count, block.getvalue())
                count, block = 0, io.BytesIO()
        return total + (self._block_bytes(count, block.getvalue()) if count else 0)

    def changed(self, keep: Keep) -> dict[str, Any]:
        """The sample with other column statistics, as a row of ``SAMPLES_SCHEMA``."""
        entries, stream = self.with_statistics(keep), io.BytesIO()
        for entry in entries:
            fastavro.schemaless_writer(stream, self._parsed, entry)
        return {
            "path": self.path,
            "spec_id": self.spec_id,
            "content": self.content,
            "header_bytes": self.header_bytes,
            "schema": json.dumps(self.avro.schema),
            "codec": self.avro.codec,
            "blocks": [{"entries": len(entries), "bytes": stream.getvalue()}],
        }

    def with_statistics(self, keep: Keep) -> list[Entry]:
        """The entries with other column statistics: each is kept, replaced or dropped."""
        maps = self._maps
        changed = []
        for entry in self.entries:
            file = dict(entry[self._names[_FILE]])
            for name, (statistic, key, value) in maps.items():
                kept = ((item[key], keep(statistic, item[key], item[value])) for item in file[name] or ())
                file[name] = [{key: column, value: left} for column, left in kept if left is not None] or None
            changed.append(entry | {self._names[_FILE]: file})
        return changed

    def statistics_bytes(self, entries: Iterable[Entry]) -> Counter[int]:
        """Encoded bytes of the entries' metric maps before compression, by the column's field id."""
        total = Counter[int]()
        for entry in entries:
            for name, (_, key, value) in self._maps.items():
                for item in entry[self._names[_FILE]][name] or ():
                    total[item[key]] += _pair_bytes(item[key], item[value])
        return total

    def identity(self, entry: Entry) -> tuple[str, int | None]:
        """What tells an entry from others: its file's path, and where in it a deletion vector begins."""
        file = entry[self._names[_FILE]]
        return file[self._file_names[_PATH]], file.get(self._file_names.get(_CONTENT_OFFSET, ""))

    def rewritten(self, entry: Entry, inherited: Inherited) -> Entry:
        """An entry as a rewrite copies it: EXISTING, with what it inherited written out."""
        own = {
            _STATUS: _EXISTING,
            _SNAPSHOT: inherited["snapshot_id"],
            _SEQUENCE_NUMBER: inherited["sequence_number"],
            _FILE_SEQUENCE_NUMBER: inherited["file_sequence_number"],
        }
        copy = entry | {self._names[field_id]: value for field_id, value in own.items() if field_id in self._names}
        if _FIRST_ROW_ID in self._file_names:
            name = self._names[_FILE]
            copy[name] = copy[name] | {self._file_names[_FIRST_ROW_ID]: inherited["first_row_id"]}
        return copy

    def _block_bytes(self, count: int, content: bytes) -> int:
        return len(encoded_block(self.avro.codec, count, content)) + SYNC_MARKER_BYTES

    @cached_property
    def _parsed(self) -> Any:
        return fastavro.parse_schema(without_logical_types(self.avro.schema))

    @cached_property
    def _names(self) -> dict[int, str]:
        return names_by_field_id(self.avro.schema)

    @cached_property
    def _file_schema(self) -> Any:
        return field_schema(self.avro.schema, self._names[_FILE])

    @cached_property
    def _file_names(self) -> dict[int, str]:
        return names_by_field_id(self._file_schema)

    @cached_property
    def _maps(self) -> dict[str, tuple[str, str, str]]:
        """The name of each metric map → (what it holds, name of its key, name of its value)."""
        maps = {}
        for field_id, statistic in METRIC_MAPS.items():
            if field_id in self._file_names:
                name = self._file_names[field_id]
                key, value = non_null(field_schema(self._file_schema, name)["items"])["fields"]
                maps[name] = statistic, key["name"], value["name"]
        return maps


class EntrySamples:
    """Some real entries of a snapshot; predictions that change its manifests keep them.

    Args:
        table: rows of ``SAMPLES_SCHEMA``; without any, sizes cannot be told.
    """

    def __init__(self, table: pa.Table | None = None) -> None:
        self.table = SAMPLES_SCHEMA.empty_table() if table is None else table
        self._rates: dict[tuple[int | None, int], float | None] = {}

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any] | None]) -> EntrySamples:
        """Samples of the rows that :func:`sample_manifest` made."""
        return cls(pa.Table.from_pylist([row for row in rows if row is not None], schema=SAMPLES_SCHEMA))

    @cached_property
    def manifests(self) -> tuple[SampledManifest, ...]:
        """The sampled manifests, those whose entries cannot be mixed with the others of their kind left out."""
        return tuple(_sampled(row) for row in self._rows)

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        schemas: dict[tuple[int, int], str] = {}
        return [
            row
            for row in self.table.to_pylist()
            if schemas.setdefault((row["spec_id"], row["content"]), row["schema"]) == row["schema"]
        ]

    def changed(self, spec_id: int, content: int, keep: Keep) -> EntrySamples:
        """The samples with other column statistics in the entries of one spec and content."""
        return EntrySamples.of(
            manifest.changed(keep) if (manifest.spec_id, manifest.content) == (spec_id, content) else row
            for manifest, row in zip(self.manifests, self._rows, strict=True)
        )

    def first(self, spec_id: int | None, content: int) -> SampledManifest | None:
        """The first sampled manifest of a spec (of any, for ``None``) and content."""
        return next(iter(self._of(spec_id, content)), None)

    def manifest_bytes(self, spec_id: int, content: int, files: pa.Table) -> int | None:
        """The size of a manifest that holds files of a spec as EXISTING entries in this order.

        To the byte where all of the files are sampled; else by the bytes that a sampled entry takes among the others.

        Args:
            spec_id: the partition spec.
            content: 0 for data, 1 for deletes.
            files: rows of the recording's data or delete files.

        Returns:
            ``None`` when nothing of the kind is sampled.
        """
        coder = self.first(spec_id, content)
        if coder is None or not len(files):
            return None
        known, paths = self._entries[spec_id, content]
        scaled = coder.header_bytes + round(len(files) * (self.bytes_per_entry(spec_id, content) or 0))
        if not pc.all(pc.is_in(files["file_path"], value_set=paths)).as_py():
            return scaled
        rows = files.select(
            ["file_path", "content_offset", "snapshot_id", "sequence_number", "file_sequence_number", "first_row_id"]
        ).to_pylist()
        found = [(known.get((row["file_path"], row["content_offset"])), row) for row in rows]
        entries = [coder.rewritten(entry, row) for entry, row in found if entry is not None]
        # deletion vectors share a file, of which only some may be sampled
        return coder.header_bytes + coder.encoded_bytes(entries) if len(entries) == len(rows) else scaled

    def bytes_per_entry(self, spec_id: int | None, content: int) -> float | None:
        """The bytes that an entry takes among others of its partition, encoded and compressed.

        Args:
            spec_id: the partition spec, ``None`` for the entries of all specs.
            content: 0 for data, 1 for deletes.

        Returns:
            ``None`` when nothing of the kind is sampled.
        """
        key = spec_id, content
        if key not in self._rates:
            manifests = self._of(spec_id, content)
            coder = manifests[0] if manifests else None
            same = [m for m in manifests if coder and m.spec_id == coder.spec_id]
            entries = [entry for manifest in same for entry in manifest.entries]
            entries.sort(key=lambda entry: coder.identity(entry)[0] if coder else "")
            self._rates[key] = coder.encoded_bytes(entries) / len(entries) if coder and entries else None
        return self._rates[key]

    def _of(self, spec_id: int | None, content: int) -> list[SampledManifest]:
        return [m for m in self.manifests if m.content == content and spec_id in (None, m.spec_id)]

    @cached_property
    def _entries(self) -> dict[tuple[int, int], tuple[dict[tuple[str, int | None], Entry], pa.Array]]:
        """The sampled entries of each spec and content by their files, and the paths of these."""
        found: dict[tuple[int, int], dict[tuple[str, int | None], Entry]] = {}
        for manifest in self.manifests:
            known = found.setdefault((manifest.spec_id, manifest.content), {})
            known.update({manifest.identity(entry): entry for entry in manifest.entries})
        return {key: (known, pa.array([path for path, _ in known], pa.string())) for key, known in found.items()}


def _sampled(row: Mapping[str, Any]) -> SampledManifest:
    blocks = tuple((block["entries"], block["bytes"]) for block in row["blocks"])
    avro = AvroFile(json.loads(row["schema"]), row["codec"], blocks)
    return SampledManifest(row["path"], row["spec_id"], row["content"], row["header_bytes"], avro)


def _pair_bytes(key: int, value: int | bytes) -> int:
    if isinstance(value, int):
        return len(varint(key)) + len(varint(abs(value)))
    return len(varint(key)) + len(varint(len(value))) + len(value)
