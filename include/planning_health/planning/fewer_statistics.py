"""What if a table kept fewer statistics: less metadata to read, and less to skip files by.

The bytes are predicted by encoding some of the table's real manifest entries again without those statistics; where a
recording holds no entries, by the share that the statistics have of a manifest before compression.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, PrimitiveType, StringType

from planning_health.errors import InputError
from planning_health.metadata.manifest_encoding import SampledManifest
from planning_health.metadata.model import DATA, MANIFESTS_SCHEMA, STATISTICS, PlanningMetadata, TableInfo
from planning_health.metadata.truncation import truncated_bytes, truncated_text
from planning_health.planning.expressions import ReferenceResolver
from planning_health.planning.manifest_size import header_bytes

DEFAULT: Final = "default"
"""What is saved under this name is that of all columns that are not named."""

_SORTED_DEFAULT: Final = "truncate(16)"
"""What the columns of the sort order get where the default is none or counts (``MetricsConfig``)."""


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """How much of a column's statistics is kept, in the words of ``write.metadata.metrics``.

    Attributes:
        counts: the value, null and NaN counts are kept.
        length: characters (or bytes) of text and binary bounds; None keeps them whole, 0 keeps no bounds.
    """

    counts: bool
    length: int | None

    @classmethod
    def parse(cls, text: str) -> MetricsMode:
        """Read ``none``, ``counts``, ``truncate(n)`` or ``full``.

        Raises:
            InputError: another word.
        """
        word = text.strip().lower()
        truncated = re.fullmatch(r"truncate\((\d+)\)", word)
        if truncated and int(truncated[1]):
            return cls(True, int(truncated[1]))
        modes = {"none": cls(False, 0), "counts": cls(True, 0), "full": cls(True, None)}
        if word not in modes:
            raise InputError(f"metrics mode {text!r}: expected none, counts, truncate(16) or full")
        return modes[word]

    def __str__(self) -> str:
        if not self.counts:
            return "none"
        if self.length is None:
            return "full"
        return f"truncate({self.length})" if self.length else "counts"

    @property
    def keeps_bounds(self) -> bool:
        """Bounds are kept, whole or truncated."""
        return self.length != 0


@dataclass(frozen=True)
class StatisticsChange:
    """A picture with fewer statistics.

    Attributes:
        metadata: the picture as it would be.
        saved_bytes: predicted bytes of manifests saved, by what was asked: a column, or ``default`` for all others.
        not_recorded: named columns without recorded bounds: predicates on them prune nothing, before or after.
        sampled_entries: real entries that were encoded again; 0 where the bytes were scaled.
    """

    metadata: PlanningMetadata
    saved_bytes: dict[str, int]
    not_recorded: tuple[str, ...]
    sampled_entries: int


@dataclass(frozen=True)
class _Asked:
    """One mode and the columns that it is for."""

    name: str
    mode: MetricsMode
    columns: Mapping[int, bool]
    """Field id → whether its bounds can be truncated."""

    def keep(self, statistic: str, field_id: int, value: Any) -> Any:
        """What is kept of one statistic of an entry."""
        if field_id not in self.columns:
            return value
        if not statistic.endswith("bound"):
            return value if self.mode.counts else None
        if not self.mode.keeps_bounds:
            return None
        if self.mode.length is None or not self.columns[field_id]:
            return value
        return truncate_bound(value, self.mode.length, upper=statistic == "upper_bound")


def with_statistics(
    metadata: PlanningMetadata, modes: Mapping[str, str], *, default: str | None = None
) -> StatisticsChange:
    """Drop or truncate the statistics of existing entries of data manifests.

    Statistics can only shrink: a mode that keeps more than what is there changes nothing.

    Args:
        metadata: the recorded picture.
        modes: metrics mode by column name.
        default: the mode of all other columns; ``None`` leaves them as they are. None or counts leave the columns of
            the sort order truncated bounds, as Iceberg does.

    Raises:
        InputError: an unknown column or mode.
    """
    asked = _asked(metadata.info, modes, default)
    sampled = [manifest for manifest in metadata.samples.manifests if manifest.content == DATA]
    manifests, saved = _encoded_again(metadata, sampled, asked) if sampled else _scaled(metadata, asked)
    recorded = metadata.info.recorded_field_ids
    named = [item for item in asked if item.name != DEFAULT]
    return StatisticsChange(
        replace(metadata, data_files=_with_less(metadata.data_files, asked), manifests=manifests),
        saved,
        tuple(item.name for item in named if not recorded.issuperset(item.columns)),
        sum(len(manifest.entries) for manifest in sampled),
    )


def with_fewer_bounds(metadata: PlanningMetadata, modes: Mapping[str, str]) -> PlanningMetadata:
    """Like :func:`with_statistics`, for what is pruned alone: the manifests' sizes stay as they were.

    Raises:
        InputError: an unknown column or mode.
    """
    return replace(metadata, data_files=_with_less(metadata.data_files, _asked(metadata.info, modes, None)))


def _with_less(files: pa.Table, asked: list[_Asked]) -> pa.Table:
    for item in asked:
        for field_id, truncatable in item.columns.items():
            for column, values in _kept_columns(files, field_id, item.mode, truncatable).items():
                files = files.set_column(files.schema.get_field_index(column), files.schema.field(column), values)
    return files


def _asked(info: TableInfo, modes: Mapping[str, str], default: str | None) -> list[_Asked]:
    resolve = ReferenceResolver(info.schema)
    leaves = leaf_columns(info.schema)
    asked: list[_Asked] = []
    for name, mode in modes.items():
        ref = resolve(name)
        asked.append(_Asked(name, MetricsMode.parse(mode), {ref.field_id: leaves.get(ref.field_id, False)}))
    if default is None:
        return asked
    others = {i: t for i, t in leaves.items() if all(i not in item.columns for item in asked)}
    parsed = MetricsMode.parse(default)
    if not parsed.keeps_bounds:
        in_order = {i: others.pop(i) for i in sorted(_sorted_by(info)) if i in others}
        if in_order:
            asked.append(_Asked(DEFAULT, MetricsMode.parse(_SORTED_DEFAULT), in_order))
    return [*asked, _Asked(DEFAULT, parsed, others)]


def leaf_columns(schema: Schema) -> dict[int, bool]:
    """The columns that have values of their own → whether their bounds are text or bytes."""
    kinds = {field_id: schema.find_type(field_id) for field_id in sorted(schema.field_ids)}
    return {i: isinstance(k, StringType | BinaryType) for i, k in kinds.items() if isinstance(k, PrimitiveType)}


def _sorted_by(info: TableInfo) -> set[int]:
    """The source columns of the table's sort order, those with a transform that keeps the order."""
    order = info.sort_order
    return {f.source_id for f in order.fields if f.transform.preserves_order} if order else set()


def _kept_columns(
    files: pa.Table, field_id: int, mode: MetricsMode, truncatable: bool
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Return the statistics columns that a mode changes, with their new values."""
    kept: dict[str, pa.Array | pa.ChunkedArray] = {}
    for statistic in STATISTICS:
        column = f"{statistic}.{field_id}"
        if column not in files.column_names:
            continue
        is_bound = statistic.endswith("bound")
        if not (mode.keeps_bounds if is_bound else mode.counts):
            kept[column] = pa.nulls(len(files), files.schema.field(column).type)
        elif is_bound and mode.length is not None and truncatable:
            kept[column] = _truncated(files[column], mode.length, upper=statistic == "upper_bound")
    return kept


def _truncated(bounds: pa.ChunkedArray, length: int, *, upper: bool) -> pa.Array:
    cut = [None if raw is None else truncate_bound(raw, length, upper=upper) for raw in bounds.to_pylist()]
    return pa.array(cut, pa.binary())


def truncate_bound(raw: bytes, length: int, *, upper: bool) -> bytes | None:
    """Truncate a text bound to a number of code points (other bytes to bytes).

    An upper bound is rounded up at its last code point that can be, so that it stays an upper bound; where none
    can, there is no bound.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return truncated_bytes(raw, length, upper=upper)
    return truncated_text(text, length, upper=upper)


def _encoded_again(
    metadata: PlanningMetadata, sampled: list[SampledManifest], asked: list[_Asked]
) -> tuple[pa.Table, dict[str, int]]:
    """Each manifest shrinks as its sampled entries do, one that is not sampled as the others do together."""
    stages = {manifest.path: _stages(manifest, asked) for manifest in sampled}
    sums = np.sum(list(stages.values()), axis=0)
    headers = {manifest.path: manifest.header_bytes for manifest in sampled}
    rows = metadata.manifests.to_pylist()
    saved = dict.fromkeys((item.name for item in asked), 0.0)
    for row in rows:
        if row["content"] != DATA:
            continue
        sizes = np.asarray(stages.get(row["path"], sums), dtype=np.float64)
        header = headers.get(row["path"], sampled[0].header_bytes)
        lengths = header + (row["length"] - header) * sizes / sizes[0]
        for item, lost in zip(asked, lengths[:-1] - lengths[1:], strict=True):
            saved[item.name] += lost
        row["length"] = row["file_size"] = round(float(lengths[-1]))
    return pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA), {name: round(lost) for name, lost in saved.items()}


def _stages(manifest: SampledManifest, asked: list[_Asked]) -> list[int]:
    """The encoded bytes of a manifest's sample: as it is, and after each of what is asked."""
    changed = (manifest.with_statistics(_all_of(asked[:count])) for count in range(1, len(asked) + 1))
    return [manifest.encoded_bytes(entries) for entries in (manifest.entries, *changed)]


def _all_of(asked: list[_Asked]) -> Callable[[str, int, Any], Any]:
    by_column = {field_id: item for item in asked for field_id in item.columns}

    def keep(statistic: str, field_id: int, value: Any) -> Any:
        item = by_column.get(field_id)
        return value if item is None else item.keep(statistic, field_id, value)

    return keep


def _scaled(metadata: PlanningMetadata, asked: list[_Asked]) -> tuple[pa.Table, dict[str, int]]:
    """Manifests shrink like their statistics before compression, which compression keeps about in proportion."""
    files = metadata.data_files
    saved: dict[str, dict[int, float]] = {}
    for item in asked:
        by_manifest = saved.setdefault(item.name, {})
        for field_id, truncatable in item.columns.items():
            kept = _kept_columns(files, field_id, item.mode, truncatable)
            for ordinal, amount in _saved_by_manifest(metadata, files, kept, field_id, item.mode).items():
                by_manifest[ordinal] = by_manifest.get(ordinal, 0.0) + amount
    return _shrunk(metadata, saved)


def _saved_by_manifest(
    metadata: PlanningMetadata,
    files: pa.Table,
    kept: Mapping[str, pa.Array | pa.ChunkedArray],
    field_id: int,
    mode: MetricsMode,
) -> dict[int, float]:
    """Return the uncompressed bytes saved in each data manifest."""
    total = _statistics_bytes(metadata.manifests, field_id)
    if not mode.counts:
        return total
    bounds = [column for column in kept if column.startswith(("lower", "upper"))]
    if bounds:
        ordinals = files["manifest_ordinal"].to_numpy()
        saved = sum(_encoded(files[column]) - _encoded(kept[column]) for column in bounds)
        per_manifest = np.bincount(ordinals, weights=saved, minlength=len(metadata.manifests))
        return {ordinal: min(float(per_manifest[ordinal]), total[ordinal]) for ordinal in total}
    entries = _entries(metadata.manifests)
    counts_bytes = 3 * 4  # key and count of about two bytes each in three maps
    whole = mode.length == 0
    return {o: max(0.0, share - counts_bytes * entries[o]) if whole else 0.0 for o, share in total.items()}


def _encoded(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return the bytes of each bound as an Avro map entry; 0 where there is none."""
    lengths = np.asarray(pc.binary_length(column).fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(lengths < 0, 0.0, lengths + np.where(lengths < 64, 1, 2) + 2)


def _statistics_bytes(manifests: pa.Table, field_id: int) -> dict[int, float]:
    data = manifests.filter(pc.equal(manifests["content"], DATA))
    rows = zip(data["ordinal"].to_pylist(), data["statistics_bytes"].to_pylist(), strict=True)
    return {
        ordinal: float(sum(item["bytes"] for item in columns or () if item["field_id"] == field_id))
        for ordinal, columns in rows
    }


def _entries(manifests: pa.Table) -> dict[int, int]:
    kinds = [manifests[f"entries_{kind}"].to_pylist() for kind in ("added", "existing", "deleted")]
    ordinals = manifests["ordinal"].to_pylist()
    return {ordinal: sum(count or 0 for count in counts) for ordinal, *counts in zip(ordinals, *kinds, strict=True)}


def _shrunk(
    metadata: PlanningMetadata, raw_saved: Mapping[str, Mapping[int, float]]
) -> tuple[pa.Table, dict[str, int]]:
    """Shrink manifests in proportion to their uncompressed bytes; return them and the bytes saved by column."""
    rows = metadata.manifests.to_pylist()
    header = header_bytes(metadata.info, min((row["length"] for row in rows), default=0))
    saved = dict.fromkeys(raw_saved, 0)
    for row in rows:
        uncompressed = row["uncompressed_bytes"] or 0
        gone = {name: by_manifest.get(row["ordinal"], 0.0) for name, by_manifest in raw_saved.items()}
        if not uncompressed or not any(gone.values()):
            continue
        per_byte = (row["length"] - header) / uncompressed
        for name, amount in gone.items():
            saved[name] += round(amount * per_byte)
        row["length"] = max(1, round(row["length"] - sum(gone.values()) * per_byte))
        row["file_size"] = row["length"]
        row["uncompressed_bytes"] = round(uncompressed - sum(gone.values()))
    return pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA), saved
