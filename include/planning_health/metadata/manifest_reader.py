"""Decodes a manifest: its entries as Arrow rows, and the bytes that each column's statistics take.

Runs on Spark's executors and in this process alike; needs NumPy, PyArrow and fastavro only.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from planning_health.errors import NotMeasurableError
from planning_health.metadata.avro_reader import (
    DAMAGE,
    METRIC_MAPS,
    AvroFile,
    field_schema,
    names_by_field_id,
    non_null,
    read_avro,
)
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.model import (
    ADDED,
    DATA,
    DELETE_FILE_PATH_ID,
    DELETE_FILE_POS_ID,
    DELETED,
    files_schema,
)

_SCALARS: Final = {
    100: "file_path",
    103: "record_count",
    104: "file_size_in_bytes",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}


COMPILED_FROM_BYTES: Final = 2 * 1024 * 1024
"""From this many bytes of manifests on, loading the compiled decoder pays."""


def worth_compiling(manifests: Iterable[ManifestFile]) -> bool:
    """Whether a snapshot is large enough for the compiled decoder."""
    return sum(manifest.length for manifest in manifests) >= COMPILED_FROM_BYTES


@dataclass
class DecodedManifest:
    """What reading one manifest tells.

    Attributes:
        files: one row an entry, in physical order; schema of ``files_schema``.
        statistics_bytes: field id → Avro-encoded bytes (before compression) of its entries in all metric maps.
        equality_ids: the columns that equality deletes in this manifest compare.
    """

    files: pa.Table
    entries: Counter[int]
    statistics_bytes: Counter[int]
    uncompressed_bytes: int
    codec: str
    equality_ids: frozenset[int] = field(default_factory=frozenset)

    def columns(self) -> dict[str, Any]:
        """The part of the manifest's row in the planning metadata that only reading it tells."""
        return {
            "entries_existing": self.entries[0],
            "entries_added": self.entries[1],
            "entries_deleted": self.entries[2],
            "uncompressed_bytes": self.uncompressed_bytes,
            "statistics_bytes": [
                {"field_id": field_id, "bytes": count} for field_id, count in sorted(self.statistics_bytes.items())
            ],
            "codec": self.codec,
        }


def recorded_in(manifest: ManifestFile, recorded: frozenset[int]) -> frozenset[int]:
    """The columns to record of a manifest: delete manifests also keep the reserved columns of position deletes."""
    return recorded if manifest.content == DATA else recorded | {DELETE_FILE_PATH_ID, DELETE_FILE_POS_ID}


def decode_manifest(
    manifest: ManifestFile,
    content: bytes,
    recorded: frozenset[int],
    *,
    compiled: bool = False,
    entries: int | None = None,
) -> DecodedManifest:
    """Decodes a manifest's entries.

    Sequence numbers, snapshot ids and first row ids that an entry leaves out are inherited as the specification says.

    Args:
        manifest: the manifest list's row.
        content: the manifest file's bytes.
        recorded: ids of the columns whose statistics are kept.
        compiled: use the compiled decoder, where its library is installed; the result is the same.
        entries: decode only this many entries from the manifest's beginning.

    Raises:
        NotMeasurableError: naming the manifest, when it is damaged.
    """
    avro = read_avro(manifest.path, content, entries)
    columns = recorded_in(manifest, recorded)
    try:
        return (compiled and _decode_compiled(manifest, avro, columns)) or _Decoder(manifest, avro, columns).decode()
    except DAMAGE as error:
        raise NotMeasurableError(
            f"manifest {manifest.path} cannot be decoded ({type(error).__name__}: {error})"
        ) from error


def _decode_compiled(manifest: ManifestFile, avro: AvroFile, recorded: frozenset[int]) -> DecodedManifest | None:
    """``None`` where Numba is not installed or the schema has an unusual part: then fastavro decodes."""
    try:
        from planning_health.metadata.compiled_reader import UnsupportedLayoutError, decode_columns
    except ModuleNotFoundError:
        return None
    try:
        files, statistics_bytes = decode_columns(manifest, avro, recorded)
    except UnsupportedLayoutError:
        return None
    counted = pc.value_counts(files["status"]).to_pylist()
    equality_ids = pc.unique(pc.list_flatten(files["equality_ids"])).to_pylist()
    return DecodedManifest(
        files,
        Counter({item["values"]: item["counts"] for item in counted}),
        statistics_bytes,
        avro.uncompressed_bytes,
        avro.codec,
        frozenset(equality_ids),
    )


class _Decoder:
    def __init__(self, manifest: ManifestFile, avro: AvroFile, recorded: frozenset[int]) -> None:
        self.manifest = manifest
        self.avro = avro
        self.recorded = recorded
        self.schema = files_schema(recorded)
        self.entry_names = names_by_field_id(avro.schema)
        self.file_schema = field_schema(avro.schema, self.entry_names[2])
        self.file_names = names_by_field_id(self.file_schema)
        self.maps = {
            self.file_names[field_id]: (statistic, *self._key_and_value(field_id))
            for field_id, statistic in METRIC_MAPS.items()
            if field_id in self.file_names
        }
        self.partition_encoders = self._partition_encoders()
        self.next_row_id = manifest.first_row_id

    def decode(self) -> DecodedManifest:
        columns: dict[str, list[Any]] = {name: [] for name in self.schema.names}
        entries: Counter[int] = Counter()
        statistics_bytes: Counter[int] = Counter()
        equality_ids: set[int] = set()
        for position, entry in enumerate(self.avro.records()):
            row = self._row(position, entry, statistics_bytes)
            entries[row["status"]] += 1
            equality_ids.update(row["equality_ids"] or ())
            for name, values in columns.items():
                values.append(row.get(name))
        files = pa.table([pa.array(columns[item.name], type=item.type) for item in self.schema], schema=self.schema)
        return DecodedManifest(
            files, entries, statistics_bytes, self.avro.uncompressed_bytes, self.avro.codec, frozenset(equality_ids)
        )

    def _row(self, position: int, entry: dict[str, Any], statistics_bytes: Counter[int]) -> dict[str, Any]:
        file = entry[self.entry_names[2]]
        row: dict[str, Any] = {name: file.get(self.file_names.get(field_id, "")) for field_id, name in _SCALARS.items()}
        status = entry[self.entry_names[0]]
        row |= {
            "manifest_ordinal": self.manifest.ordinal,
            "position": position,
            "status": status,
            "spec_id": self.manifest.partition_spec_id,
            "content": file.get(self.file_names.get(134, ""), 0) or 0,
            "file_format": file[self.file_names[101]].upper(),
            "partition": self._partition(file[self.file_names[102]]),
            "snapshot_id": self._optional(entry, 1, self.manifest.added_snapshot_id),
        }
        self._inherit_sequence_numbers(row, entry)
        self._inherit_first_row_id(row)
        self._statistics(row, file, statistics_bytes)
        return row

    def _optional(self, entry: dict[str, Any], field_id: int, default: Any) -> Any:
        value = entry.get(self.entry_names.get(field_id, ""))
        return default if value is None else value

    def _inherit_sequence_numbers(self, row: dict[str, Any], entry: dict[str, Any]) -> None:
        inherits = row["status"] == ADDED or self.manifest.sequence_number == 0
        inherited = self.manifest.sequence_number if inherits else None
        row["sequence_number"] = self._optional(entry, 3, inherited)
        row["file_sequence_number"] = self._optional(entry, 4, inherited)

    def _inherit_first_row_id(self, row: dict[str, Any]) -> None:
        if self.manifest.first_row_id is None:
            row["first_row_id"] = None
        elif row["first_row_id"] is None and row["status"] != DELETED and self.next_row_id is not None:
            row["first_row_id"] = self.next_row_id
            self.next_row_id += row["record_count"]

    def _statistics(self, row: dict[str, Any], file: dict[str, Any], statistics_bytes: Counter[int]) -> None:
        for name, (statistic, key, value) in self.maps.items():
            for item in file[name] or ():
                field_id, content = item[key], item[value]
                statistics_bytes[field_id] += _encoded_size(field_id, content)
                if field_id in self.recorded:
                    row[f"{statistic}.{field_id}"] = content

    def _key_and_value(self, field_id: int) -> tuple[str, str]:
        key, value = non_null(field_schema(self.file_schema, self.file_names[field_id])["items"])["fields"]
        return key["name"], value["name"]

    def _partition_encoders(self) -> list[tuple[str, Callable[[Any], bytes]]]:
        partition_schema = field_schema(self.file_schema, self.file_names[102])
        return [(item["name"], _single_value_encoder(non_null(item["type"]))) for item in partition_schema["fields"]]

    def _partition(self, values: dict[str, Any]) -> list[bytes | None]:
        return [None if values[name] is None else encode(values[name]) for name, encode in self.partition_encoders]


def _single_value_encoder(avro_type: Any) -> Callable[[Any], bytes]:
    """Wire value → single-value serialization (Iceberg specification, appendix D) of one Avro type."""
    kind = avro_type["type"] if isinstance(avro_type, dict) else avro_type
    logical = avro_type.get("logicalType") if isinstance(avro_type, dict) else None
    if logical == "decimal":
        return _minimal_unscaled
    return _ENCODERS[kind]


def _minimal_unscaled(raw: bytes) -> bytes:
    unscaled = int.from_bytes(raw, "big", signed=True)
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


_ENCODERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "int": struct.Struct("<i").pack,
    "long": struct.Struct("<q").pack,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "string": lambda value: value.encode("utf-8"),
    "bytes": bytes,
    "fixed": bytes,
    "null": bytes,  # the source column was dropped: every value is null
}


def _encoded_size(key: int, value: int | bytes) -> int:
    """Bytes of one map entry in Avro: the key and the value, each a zigzag varint or length-prefixed bytes."""
    if isinstance(value, int):
        return _varint_size(key) + _varint_size(value)
    return _varint_size(key) + _varint_size(len(value)) + len(value)


def _varint_size(value: int) -> int:
    zigzag = (value << 1) if value >= 0 else ((-value << 1) - 1)
    return max(1, (zigzag.bit_length() + 6) // 7)


def concat_files(decoded: Iterable[pa.Table], recorded: frozenset[int]) -> pa.Table:
    """All manifests' rows as one table; an empty one of the right schema when there are none."""
    tables = list(decoded)
    return pa.concat_tables(tables) if tables else files_schema(recorded).empty_table()
