"""The proof that a trim changed nothing but the layout and the statistics that it was to remove."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from planning_health.maintenance.predicted_state import partition_summaries
from planning_health.maintenance.trim.prediction import trimmed_files
from planning_health.maintenance.trim.rule import WHOLE, TrimRule
from planning_health.maintenance.verification import (
    Check,
    VerificationReport,
    content_checks,
    equal,
    lowest_sequence_numbers,
    none,
    ordered,
    report_of,
)
from planning_health.metadata.model import DATA, PlanningMetadata
from planning_health.metadata.single_values import decode


def compare_trimmed(
    before: PlanningMetadata, after: PlanningMetadata, spec_id: int, rule: TrimRule
) -> VerificationReport:
    """Compares the snapshots before and after a trim of one spec.

    As :func:`compare_snapshots`, with these differences: recorded statistics of the spec's data files must be exactly
    what the rule leaves, and bounds that changed must still be bounds; columns that are not recorded are compared by
    their bytes; all manifests but the spec's data manifests must be the same files; and new manifests must have the
    exact minimum sequence number. A manifest of the spec that stands in both snapshots (one that was committed
    meanwhile) keeps its statistics.

    Args:
        before: the earlier snapshot.
        after: the later one.
        spec_id: the spec that was trimmed.
        rule: what was to be left of the statistics.
    """
    replaced = _replaced(before, after)
    files = before.data_files
    mine = pc.is_in(files["manifest_ordinal"], pa.array(replaced, pa.int32()))
    trimmed = trimmed_files(files.filter(mine), spec_id, rule)
    expected = replace(before, data_files=pa.concat_tables([trimmed, files.filter(pc.invert(mine))]))
    checks = [
        *content_checks(expected, after),
        _statistics_bytes(before, after, spec_id, rule),
        _bounds(before, after),
        *_manifests(before, after, spec_id),
    ]
    return report_of(before, after, checks)


def _statistics_bytes(before: PlanningMetadata, after: PlanningMetadata, spec_id: int, rule: TrimRule) -> Check:
    earlier, later = _bytes_by_column(before, spec_id, after), _bytes_by_column(after, spec_id, before)
    dropped = pc.sum(before.manifests["entries_deleted"]).as_py()
    wrong = [
        f"column {field_id}: {count} of {earlier[field_id]} bytes"
        for field_id, count in sorted((earlier | later).items())
        if not _bytes_allowed(earlier[field_id], later[field_id], rule, field_id, bool(dropped))
    ]
    return none("columns with other statistics than the metrics properties leave (bytes)", wrong)


def _bytes_allowed(earlier: int, later: int, rule: TrimRule, field_id: int, dropped: bool) -> bool:
    kept = rule.columns.get(field_id)
    if kept is None:
        return later == 0
    return later == earlier if kept.length == WHOLE and not dropped else later <= earlier


def _bytes_by_column(metadata: PlanningMetadata, spec_id: int, other: PlanningMetadata) -> Counter[int]:
    """Bytes in the spec's data manifests that the other snapshot does not have."""
    manifests = metadata.manifests
    mine = pc.and_(pc.equal(manifests["content"], DATA), pc.equal(manifests["partition_spec_id"], spec_id))
    mine = pc.and_(mine, pc.is_in(manifests["ordinal"], pa.array(_replaced(metadata, other), pa.int32())))
    total = Counter[int]()
    for columns in manifests.filter(mine)["statistics_bytes"].to_pylist():
        total.update({column["field_id"]: column["bytes"] for column in columns or ()})
    return total


def _replaced(metadata: PlanningMetadata, other: PlanningMetadata) -> list[int]:
    """Ordinals of the manifests that the other snapshot does not have."""
    manifests = metadata.manifests
    missing = pc.invert(pc.is_in(manifests["path"], other.manifests["path"].combine_chunks()))
    ordinals: list[int] = manifests["ordinal"].filter(missing).to_pylist()
    return ordinals


def _bounds(before: PlanningMetadata, after: PlanningMetadata) -> Check:
    """Changed bounds are still bounds, whatever the rule says: a beginning below, something greater above."""
    earlier, later = ordered(before.data_files), ordered(after.data_files)
    wrong: list[str] = []
    if len(earlier) != len(later):
        return none("changed bounds that are no bounds", ["another number of files"])
    for name in earlier.column_names:
        statistic = name.partition(".")[0]
        if not statistic.endswith("_bound") or name not in later.column_names:
            continue
        changed = pc.fill_null(pc.not_equal(earlier[name], later[name]), False)
        pairs = zip(earlier[name].filter(changed).to_pylist(), later[name].filter(changed).to_pylist(), strict=True)
        wrong += [name for old, new in pairs if not still_bounds(old, new, upper=statistic == "upper_bound")]
    return none("changed bounds that are no bounds", wrong)


def still_bounds(old: bytes, new: bytes, *, upper: bool) -> bool:
    """Whether a bound that was changed is shorter and still one: a beginning below, something greater above."""
    return new > old if upper else old.startswith(new)


def _manifests(before: PlanningMetadata, after: PlanningMetadata, spec_id: int) -> list[Check]:
    earlier, later = _rows(before), _rows(after)
    kept = {path for path, row in earlier.items() if (row["partition_spec_id"], row["content"]) != (spec_id, DATA)}
    others = {path for path, row in later.items() if (row["partition_spec_id"], row["content"]) != (spec_id, DATA)}
    lowest = lowest_sequence_numbers(after.data_files)
    new = [row for path, row in later.items() if path not in earlier]
    inexact = [row["path"] for row in new if row["min_sequence_number"] != lowest.get(row["ordinal"])]
    misplaced = [row["path"] for row in new if not _summarised(after, row, spec_id)]
    return [
        equal("other manifests are the same files", len(others & kept), len(kept | others)),
        none("new manifests with an inexact minimum sequence number", inexact),
        none("new manifests with other partition summaries than their entries", misplaced),
    ]


def _summarised(metadata: PlanningMetadata, row: dict[str, Any], spec_id: int) -> bool:
    """Whether a manifest's summaries are those of its entries; bounds of promoted columns may be of either width."""
    info, files = metadata.info, metadata.data_files
    spec = info.specs[spec_id]
    mine = files.filter(pc.equal(files["manifest_ordinal"], row["ordinal"])).combine_chunks()
    kinds, found = info.partition_types(spec), partition_summaries(info, spec, mine)
    return len(row["partitions"] or ()) == len(found) and all(
        _decoded(told, kind) == _decoded(summary, kind)
        for told, summary, kind in zip(row["partitions"] or (), found, kinds, strict=True)
    )


def _decoded(summary: dict[str, Any], kind: Any) -> list[Any]:
    bounds = [summary["lower_bound"], summary["upper_bound"]]
    values = [decode(raw, kind) if raw is not None and kind is not None else raw for raw in bounds]
    return [summary["contains_null"], summary["contains_nan"], *values]


def _rows(metadata: PlanningMetadata) -> dict[str, dict[str, Any]]:
    columns = ["path", "ordinal", "content", "partition_spec_id", "min_sequence_number", "partitions"]
    return {row["path"]: row for row in metadata.manifests.select(columns).to_pylist()}
