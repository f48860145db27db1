"""The reference lesson's six diagnostic steps, each an automatic check with its evidence.

Steps 2 and 3 read the planning simulation of the table's queries where there is one; step 1 reads the planning times
that Iceberg's own reporter gave while Spark measured the table. How long a query runs after planning is not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.transforms import BucketTransform

from planning_health.health.findings import Assessment, Finding
from planning_health.health.picture import SpecPicture
from planning_health.health.properties import merging_told
from planning_health.health.thresholds import Level, worst
from planning_health.wording import mean_number, rough_time

LOW_SKIPPING: Final = 0.5
"""Below this part of skipped manifests or files, a step looks for the reason."""

SLOW_PLANNING_MS: Final = (1_000.0, 10_000.0)
"""Planning times of one query that are a warning, and critical: an interactive query should start within a second."""

_TITLES: Final = (
    "Planning time of the queries",
    "Manifests skipped, by transform and predicate",
    "Files skipped, by the statistics collected",
    "Manifest size",
    "Manifest count and merging",
    "Delete files per partition",
)


@dataclass(frozen=True)
class Step:
    """The outcome of one step."""

    step: int
    title: str
    level: Level
    evidence: str


def six_steps(
    assessment: Assessment, findings: Sequence[Finding], planning: Mapping[str, Any] | None = None
) -> list[Step]:
    """Runs the six steps.

    Args:
        assessment: measurements and thresholds.
        findings: the table's findings; a step is as bad as the findings that belong to it.
        planning: data of the planning result, with its simulated predicates, if there is one.
    """
    predicates = list((planning or {}).get("predicates") or [])
    outcomes = (
        _query_time(planning),
        _manifests_skipped(assessment, findings, predicates),
        _files_skipped(assessment, findings, predicates),
        _manifest_size(assessment, findings),
        _manifest_count(assessment, findings),
        _delete_files(assessment, findings),
    )
    return [
        Step(number, title, level, evidence)
        for number, (title, (level, evidence)) in enumerate(zip(_TITLES, outcomes, strict=True), start=1)
    ]


Outcome = tuple[Level, str]


def _level(findings: Iterable[Finding], *signals: str) -> Level:
    return worst([finding.level for finding in findings if finding.signal in signals])


def _query_time(planning: Mapping[str, Any] | None) -> Outcome:
    model = (planning or {}).get("cost_model")
    predicted = f" The planning simulation's cost model: {model}." if isinstance(model, str) else ""
    measured = [item for item in (planning or {}).get("predicates") or () if item.get("measured")]
    if not measured:
        return (
            "not_measured",
            f"Not measured: planning is timed where Spark measures the table.{_foretold(planning)} Compare the scan "
            f"node's total planning duration in the Spark UI with the query's.{predicted}",
        )
    slowest = max(item["measured"]["median_ms"] for item in measured)
    level: Level = (
        "critical" if slowest >= SLOW_PLANNING_MS[1] else "warning" if slowest >= SLOW_PLANNING_MS[0] else "ok"
    )
    times = "; ".join(f"{item['name']} {item['measured']['median_ms']:,.0f} ms" for item in measured)
    return level, f"Iceberg's own planning time, median of up to three runs: {times}.{predicted}"


def _foretold(planning: Mapping[str, Any] | None) -> str:
    """The predicted planning time of each query, where the simulation gives one."""
    times = [
        f"{item['name']} {rough_time(item['predicted_ms'])}"
        for item in (planning or {}).get("predicates") or ()
        if item.get("predicted_ms") is not None
    ]
    return f" Predicted: {'; '.join(times)}." if times else ""


def _manifests_skipped(a: Assessment, findings: Sequence[Finding], predicates: list[Mapping[str, Any]]) -> Outcome:
    if not a.picture.specs:
        return "not_measured", "Not measured: the snapshot has no manifests."
    fields = [line for spec in a.picture.specs for line in _lookups(spec, a.spec(spec.spec_id))]
    queries = [_skipping(item, "data_manifests") for item in predicates]
    level = _level(findings, "partition_range_days", "overlap_depth_mean")
    return level, " ".join([*[line for line in queries if line], *fields]) or "The table is not partitioned."


def _lookups(spec: SpecPicture, name: str) -> Iterable[str]:
    """What an equality lookup on each field opens, and which predicates its transform can use."""
    for overlap in spec.overlap:
        if overlap.mean is None:
            yield f"{overlap.key.name} of {name}: not measured, no live value."
            continue
        kind = (
            "only equality predicates can skip by a bucket"
            if isinstance(overlap.key.transform, BucketTransform)
            else "equality and range predicates can skip"
        )
        yield (
            f"Equality on {overlap.key.name} in {name} opens {mean_number(overlap.mean)} of {overlap.manifests} "
            f"manifests on average; {kind}."
        )


def _skipping(predicate: Mapping[str, Any], part: str) -> str | None:
    counts = predicate.get(part) or {}
    total, skipped = counts.get("total"), counts.get("skipped")
    if not total or skipped is None:
        return None
    name = predicate.get("name") or predicate.get("where")
    low = ", low" if skipped / total < LOW_SKIPPING else ""
    return f"Query {name} skips {skipped} of {total} {part.replace('_', ' ')} ({skipped / total:.0%}{low})."


def _files_skipped(a: Assessment, findings: Sequence[Finding], predicates: list[Mapping[str, Any]]) -> Outcome:
    coverage = a.measures.columns.filter_coverage
    if not coverage and not predicates:
        return "not_measured", "Not measured: no query is configured and none was simulated."
    queries = [line for line in (_skipping(item, "data_files") for item in predicates) if line]
    prunable = [f"Predicates on {item.column} can prune {item.share:.0%} of the files." for item in coverage]
    return _level(findings, "filter_columns_without_bounds"), " ".join([*queries, *prunable])


def _manifest_size(a: Assessment, findings: Sequence[Finding]) -> Outcome:
    mean, largest = a.signal("mean_manifest_bytes").value, a.signal("largest_manifest_bytes").value
    if mean is None or largest is None:
        return "not_measured", "Not measured: the snapshot has no manifests."
    per_file, share = a.measures.columns.bytes_per_file, a.measures.columns.share
    statistics = f"; statistics take {per_file:,.0f} bytes a file" if per_file is not None else ""
    part = f", {share:.0%} of the uncompressed metadata" if share is not None else ""
    return (
        _level(findings, "largest_manifest_to_target", "statistics_bytes_per_file"),
        f"Mean {mean:,.0f} bytes, largest {largest:,.0f}{statistics}{part}.",
    )


def _manifest_count(a: Assessment, findings: Sequence[Finding]) -> Outcome:
    count, ratio = a.signal("data_manifests").value, a.signal("manifests_to_expected").value
    if ratio is None:
        return "not_measured", "Not measured: the snapshot has no data manifests."
    return (
        _level(findings, "manifests_to_expected"),
        f"{count:.0f} data manifests, {ratio:.1f} times what one for 500 files would make. "
        f"{merging_told(a.picture.info)}",
    )


def _delete_files(a: Assessment, findings: Sequence[Finding]) -> Outcome:
    deletes = a.measures.deletes
    level = _level(findings, "delete_files_per_data_file", "delete_files_per_partition", "dangling_delete_ratio")
    if not deletes.files:
        return level, "No delete files."
    return (
        level,
        f"{deletes.files:,} delete files, at most {deletes.most_in_a_partition:,} in one partition, for "
        f"{deletes.data_files:,} data files; {deletes.dangling:,} of them apply to nothing any more.",
    )
