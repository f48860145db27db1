"""What a trim will make of one spec's data manifests: exactly which entry goes where, and how large that becomes.

The rewrite does what is predicted here: entries are clustered as Iceberg's ``rewrite_manifests`` clusters them, into
as many manifests as the trimmed bytes need at the target size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.maintenance.predicted_state import Replacement, partition_values, predicted_state
from planning_health.maintenance.prediction import Rewrite, RewritePrediction
from planning_health.maintenance.trim.rule import WHOLE, TrimRule
from planning_health.metadata.manifest_encoding import SampledManifest
from planning_health.metadata.model import DATA, MANIFESTS_SCHEMA, PlanningMetadata
from planning_health.metadata.single_values import decode_array


@dataclass(frozen=True)
class TrimPrediction(RewritePrediction):
    """What a trim of one spec will do.

    Attributes:
        rule: what is left of the statistics.
        replacement: the manifests that go, their live entries, and which of them each new manifest holds.
        removed_bytes: statistics that go, before compression; 0 where no entry carries more than the rule leaves.
        old_bytes: size of the manifests that go.
    """

    rule: TrimRule
    replacement: Replacement
    removed_bytes: int
    old_bytes: int


def predict_trim(
    metadata: PlanningMetadata, spec_id: int, target_size_bytes: int, sort_by: Sequence[str], rule: TrimRule
) -> TrimPrediction:
    """Predicts a trim of one spec's data manifests; delete manifests and those of other specs stay.

    Args:
        metadata: the recorded snapshot.
        spec_id: the spec.
        target_size_bytes: the size that new manifests aim at.
        sort_by: partition field names to cluster by; all fields of the spec, in the order of their field ids, when
            empty.
        rule: what is left of the statistics.
    """
    state, removed = _trimmed(metadata, spec_id, rule)
    rewrite = _InOrder(state, metadata.info.specs[spec_id], DATA, target_size_bytes, tuple(sort_by))
    replacement = rewrite.replacement()
    return TrimPrediction(
        spec_id=spec_id,
        sort_by=tuple(sort_by),
        rewrites=bool(replacement.groups),
        metadata=predicted_state(state, [replacement]),
        rule=rule,
        replacement=replacement,
        removed_bytes=removed,
        old_bytes=_bytes_of(metadata, rewrite.old.manifests["path"]),
    )


def unreadable_partition(metadata: PlanningMetadata, spec_id: int) -> str | None:
    """The first partition field of a spec with a value that is none of its type, which no summary can cover."""
    spec, files = metadata.info.specs[spec_id], metadata.data_files
    mine = files.filter(pc.equal(files["spec_id"], spec_id)).combine_chunks()
    for position, kind in enumerate(metadata.info.partition_types(spec)):
        raw = partition_values(mine, position)
        known = decode_array(raw, kind)[1].sum() if kind is not None else 0
        if known != len(raw) - raw.null_count:
            return spec.fields[position].name
    return None


def _bytes_of(metadata: PlanningMetadata, paths: pa.ChunkedArray) -> int:
    manifests = metadata.manifests
    mine = manifests.filter(pc.is_in(manifests["path"], value_set=paths.combine_chunks()))
    return pc.sum(mine["length"]).as_py() or 0


class _InOrder(Rewrite):
    """As Iceberg's rewrite, but files of an unpartitioned spec stay in their order: neighbours are often alike."""

    def _keys(self, entries: pa.Table) -> npt.NDArray[np.int64] | None:
        keys = super()._keys(entries)
        return np.arange(len(entries)) if keys is None else keys


def _trimmed(metadata: PlanningMetadata, spec_id: int, rule: TrimRule) -> tuple[PlanningMetadata, int]:
    """The snapshot with one spec's data entries trimmed where they stand, and the bytes of statistics removed."""
    sampled = [m for m in metadata.samples.manifests if (m.spec_id, m.content) == (spec_id, DATA)]
    left = _left_of_columns(sampled, rule)
    samples = metadata.samples.changed(spec_id, DATA, rule.keep)
    before, after = (held.bytes_per_entry(spec_id, DATA) for held in (metadata.samples, samples))
    ratio = after / before if before and after else None
    header = sampled[0].header_bytes if sampled else 0
    rows, removed = metadata.manifests.to_pylist(), 0
    for row in rows:
        if (row["partition_spec_id"], row["content"]) == (spec_id, DATA):
            removed += _trim_manifest(row, rule, left, ratio, header)
    state = replace(
        metadata,
        manifests=pa.Table.from_pylist(rows, schema=MANIFESTS_SCHEMA),
        data_files=trimmed_files(metadata.data_files, spec_id, rule),
        samples=samples,
    )
    return state, removed


def _left_of_columns(sampled: list[SampledManifest], rule: TrimRule) -> dict[int, float]:
    """The share of each column's statistics bytes that the rule leaves, by the sampled entries."""
    before, after = Counter[int](), Counter[int]()
    for manifest in sampled:
        before += manifest.statistics_bytes(manifest.entries)
        after += manifest.statistics_bytes(manifest.with_statistics(rule.keep))
    return {field_id: after[field_id] / count for field_id, count in before.items()}


def _trim_manifest(
    row: dict[str, Any], rule: TrimRule, left: dict[int, float], ratio: float | None, header: int
) -> int:
    """Changes a manifest's row in place; returns the bytes of statistics removed."""
    columns = row["statistics_bytes"] or []
    shares = {c["field_id"]: left.get(c["field_id"], 1.0) if c["field_id"] in rule.columns else 0.0 for c in columns}
    kept = [{"field_id": c["field_id"], "bytes": round(c["bytes"] * shares[c["field_id"]])} for c in columns]
    removed = int(sum(c["bytes"] for c in columns) - sum(c["bytes"] for c in kept))
    raw = row["uncompressed_bytes"] or 1
    share = ratio if ratio is not None else max(0.0, 1 - removed / raw)
    row["statistics_bytes"] = [c for c in kept if c["bytes"]]
    row["uncompressed_bytes"] = max(0, raw - removed)
    row["length"] = row["file_size"] = round(header + max(0, row["length"] - header) * share)
    return removed


def trimmed_files(files: pa.Table, spec_id: int, rule: TrimRule) -> pa.Table:
    """Recorded data files, those of one spec with the statistics that the rule leaves."""
    mine = pc.equal(files["spec_id"], spec_id)
    for name in files.column_names:
        statistic, _, column = name.partition(".")
        if not column:
            continue
        values = _left_of(files[name], statistic, rule, int(column))
        if values is not files[name]:
            values = pc.if_else(mine, values, files[name])
            files = files.set_column(files.schema.get_field_index(name), files.schema.field(name), values)
    return files


def _left_of(values: pa.ChunkedArray, statistic: str, rule: TrimRule, field_id: int) -> pa.ChunkedArray:
    kept = rule.columns.get(field_id)
    is_bound = statistic.endswith("bound")
    if kept is not None and (not is_bound or kept.length == WHOLE):
        return values
    if kept is None or not kept.length:
        return pa.chunked_array([pa.nulls(len(values), values.type)])
    encoded = values.combine_chunks().dictionary_encode()
    cut = [kept.bound(raw, upper=statistic == "upper_bound") for raw in encoded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(cut, values.type).take(encoded.indices)])
