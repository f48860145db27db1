"""What-ifs over a recorded picture: change it as an action would change the table, and plan the queries again.

A what-if is a function from picture to picture; :func:`compare` plans the same predicates on both. The rewrite of
manifests is predicted in ``planning_health.maintenance.prediction``, the other changes are

* statistics dropped or truncated (:func:`with_statistics`), and
* another partition spec with rewritten data (``planning_health.planning.respec``).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import BinaryType, StringType

from planning_health.errors import InputError
from planning_health.metadata.model import DATA, MANIFESTS_SCHEMA, STATISTICS, PlanningMetadata
from planning_health.planning.expressions import ReferenceResolver
from planning_health.planning.manifest_size import header_bytes
from planning_health.planning.report import plan_where
from planning_health.planning.respec import with_spec
from planning_health.planning.scan import ScanPlanner, SimulatedScan


@dataclass(frozen=True, slots=True)
class Reads:
    """What planning one predicate reads."""

    data_manifests: int
    delete_manifests: int
    data_files: int
    bytes: int
    metadata_bytes: int

    @classmethod
    def of(cls, scan: SimulatedScan) -> Reads:
        """Take the numbers from a simulated scan."""
        report = scan.report
        return cls(
            report.scanned_data_manifests,
            report.scanned_delete_manifests,
            report.result_data_files,
            report.total_file_size_in_bytes,
            report.metadata_bytes,
        )


@dataclass(frozen=True, slots=True)
class Effect:
    """One predicate before and after a change."""

    where: str
    before: Reads
    after: Reads

    @property
    def loses_file_pruning(self) -> bool:
        """More data files are read than before."""
        return self.after.data_files > self.before.data_files

    def document(self) -> dict[str, Any]:
        """The effect as JSON."""
        return {
            "where": self.where,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "loses_file_pruning": self.loses_file_pruning,
        }


def compare(
    before: PlanningMetadata, after: PlanningMetadata, wheres: Iterable[str], *, now: dt.datetime | None = None
) -> list[Effect]:
    """Plan predicates on two pictures of a table.

    Args:
        before: the recorded picture.
        after: the changed one.
        wheres: predicates in Spark SQL.
        now: the current time for both; the real one by default.

    Raises:
        InputError: a predicate does not parse or does not fit the table.
    """
    moment = now or dt.datetime.now(dt.UTC)
    planners = ScanPlanner(before), ScanPlanner(after)
    return [
        Effect(where, *(Reads.of(plan_where(planner, where, now=moment)) for planner in planners)) for where in wheres
    ]


def what_if_document(
    metadata: PlanningMetadata,
    wheres: Sequence[str],
    *,
    metrics: Mapping[str, str] | None = None,
    spec: Sequence[tuple[str, str]] | None = None,
    now: dt.datetime | None = None,
) -> dict[str, Any]:
    """Describe what other statistics and another partition spec would do to queries, as JSON.

    Args:
        metadata: the recorded picture.
        wheres: predicates in Spark SQL.
        metrics: metrics mode by column; None leaves this what-if out.
        spec: (column, transform) of another partition spec; None leaves this what-if out.
        now: the current time for all predicates; the real one by default.

    Raises:
        InputError: a predicate, column, mode or transform does not fit the table.
    """
    document: dict[str, Any] = {}
    if metrics:
        change = with_statistics(metadata, metrics)
        document["metrics"] = {
            "modes": dict(metrics),
            "saved_bytes": change.saved_bytes,
            "not_recorded": list(change.not_recorded),
            "predicates": _documents(compare(metadata, change.metadata, wheres, now=now)),
        }
    if spec:
        predicted = with_spec(metadata, spec)
        document["spec"] = {
            "fields": [{"column": column, "transform": transform} for column, transform in spec],
            "data_files": len(predicted.data_files),
            "data_manifests": len(predicted.manifests),
            "predicates": _documents(compare(metadata, predicted, wheres, now=now)),
        }
    return document


def _documents(effects: Iterable[Effect]) -> list[dict[str, Any]]:
    return [effect.document() for effect in effects]


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

    @property
    def keeps_bounds(self) -> bool:
        """Bounds are kept, whole or truncated."""
        return self.length != 0


@dataclass(frozen=True)
class StatisticsChange:
    """A picture with fewer statistics.

    Attributes:
        metadata: the picture as it would be.
        saved_bytes: predicted bytes of manifests saved, by column.
        not_recorded: columns without recorded bounds, whose saving is estimated from their share alone.
    """

    metadata: PlanningMetadata
    saved_bytes: dict[str, int]
    not_recorded: tuple[str, ...]


def with_statistics(metadata: PlanningMetadata, modes: Mapping[str, str]) -> StatisticsChange:
    """Drop or truncate the statistics of existing entries of data manifests.

    Statistics can only shrink: a mode that keeps more than what is there changes nothing. The bytes of a manifest
    shrink like its uncompressed statistics, which its compression keeps about in proportion.

    Args:
        metadata: the recorded picture.
        modes: metrics mode by column name.

    Raises:
        InputError: an unknown column or mode.
    """
    resolve = ReferenceResolver(metadata.info.schema)
    parsed = {name: (resolve(name), MetricsMode.parse(mode)) for name, mode in modes.items()}
    files = metadata.data_files
    raw_saved: dict[str, dict[int, float]] = {}
    for name, (ref, mode) in parsed.items():
        kept = _kept_columns(files, ref.field_id, mode, isinstance(ref.type, StringType | BinaryType))
        raw_saved[name] = _saved_by_manifest(metadata, files, kept, ref.field_id, mode)
        for column, values in kept.items():
            files = files.set_column(files.schema.get_field_index(column), files.schema.field(column), values)
    manifests, saved = _shrunk(metadata, raw_saved)
    recorded = metadata.info.recorded_field_ids
    return StatisticsChange(
        replace(metadata, data_files=files, manifests=manifests),
        saved,
        tuple(name for name, (ref, _) in parsed.items() if ref.field_id not in recorded),
    )


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
        return _truncated_bytes(raw, length, upper=upper)
    if len(text) <= length:
        return raw
    return text[:length].encode() if not upper else _rounded_up(text[:length])


def _rounded_up(text: str) -> bytes | None:
    for position in range(len(text) - 1, -1, -1):
        point = ord(text[position]) + 1
        if 0xD800 <= point <= 0xDFFF:  # surrogates are no code points of text
            point = 0xE000
        if point <= 0x10FFFF:
            return (text[:position] + chr(point)).encode()
    return None


def _truncated_bytes(raw: bytes, length: int, *, upper: bool) -> bytes | None:
    if len(raw) <= length or not upper:
        return raw[:length]
    for position in range(length - 1, -1, -1):
        if raw[position] < 0xFF:
            return raw[:position] + bytes([raw[position] + 1])
    return None


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
