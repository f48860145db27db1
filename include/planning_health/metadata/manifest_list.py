"""Decodes a manifest list: the manifests of one snapshot, with raw partition summaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from planning_health.errors import NotMeasurableError
from planning_health.metadata.avro_reader import DAMAGE, names_by_field_id, non_null, read_avro
from planning_health.metadata.model import DATA

_COUNTS: Final = {
    504: "added_files_count",
    505: "existing_files_count",
    506: "deleted_files_count",
    512: "added_rows_count",
    513: "existing_rows_count",
    514: "deleted_rows_count",
    520: "first_row_id",
}
_KEY_METADATA: Final = 519


@dataclass(frozen=True)
class ManifestFile:
    """One manifest as the manifest list describes it (Iceberg specification, "Manifest Lists").

    ``partitions`` is ``None`` where the writer left the summaries out.
    """

    ordinal: int
    path: str
    length: int
    partition_spec_id: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    counts: dict[str, int | None]
    partitions: list[dict[str, Any]] | None

    @property
    def first_row_id(self) -> int | None:
        """The first row id that entries without one inherit (v3)."""
        return self.counts["first_row_id"]

    def columns(self) -> dict[str, Any]:
        """The manifest's row in the planning metadata, without what only reading the manifest tells."""
        fixed = {
            "ordinal": self.ordinal,
            "path": self.path,
            "length": self.length,
            "partition_spec_id": self.partition_spec_id,
            "content": self.content,
            "sequence_number": self.sequence_number,
            "min_sequence_number": self.min_sequence_number,
            "added_snapshot_id": self.added_snapshot_id,
            "partitions": self.partitions,
        }
        return fixed | self.counts


def read_manifest_list(path: str, content: bytes) -> list[ManifestFile]:
    """Decodes a manifest list, in the order in which it lists the manifests.

    Raises:
        NotMeasurableError: when the file is damaged or its manifests are encrypted.
    """
    avro = read_avro(path, content)
    try:
        names = names_by_field_id(avro.schema)
        return [_manifest(ordinal, record, names, avro.schema) for ordinal, record in enumerate(avro.records())]
    except DAMAGE as error:
        raise NotMeasurableError(f"manifest list {path} cannot be decoded ({type(error).__name__}: {error})") from error


def _manifest(ordinal: int, record: dict[str, Any], names: dict[int, str], schema: dict[str, Any]) -> ManifestFile:
    def value(field_id: int, default: Any = None) -> Any:
        found = record.get(names.get(field_id, ""))
        return default if found is None else found

    if value(_KEY_METADATA) is not None:
        raise NotMeasurableError(f"manifest {value(500)} is encrypted; encrypted tables are not supported")
    return ManifestFile(
        ordinal=ordinal,
        path=value(500),
        length=value(501),
        partition_spec_id=value(502, 0),
        content=value(517, DATA),
        sequence_number=value(515, 0),
        min_sequence_number=value(516, 0),
        added_snapshot_id=value(503, -1),
        counts={column: value(field_id) for field_id, column in _COUNTS.items()},
        partitions=_summaries(value(507), schema, names),
    )


def _summaries(summaries: Any, schema: dict[str, Any], names: dict[int, str]) -> list[dict[str, Any]] | None:
    if summaries is None:
        return None
    field = next(field for field in schema["fields"] if field["name"] == names[507])
    items = names_by_field_id(non_null(non_null(field["type"])["items"]))
    return [
        {
            "contains_null": summary[items[509]],
            "contains_nan": summary.get(items.get(518, "")),
            "lower_bound": summary.get(items.get(510, "")),
            "upper_bound": summary.get(items.get(511, "")),
        }
        for summary in summaries
    ]
