"""Findings: what makes planning slow or unsafe in a table, with evidence, an explanation and what to do about it.

A threshold alone does not make a finding. Where the repair could not improve a value, the value stands as a signal
and is not held against the table: one clustered manifest covers everything, and of two partition fields only one can
be clustered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypedDict

import numpy as np

from planning_health.health.columns import Floats, Ints
from planning_health.health.display import days_since_epoch
from planning_health.health.measures import Measures
from planning_health.health.overlap import OverlapDepth
from planning_health.health.partition_fields import FieldKey, FieldSummaries, FieldValues
from planning_health.health.picture import SpecPicture
from planning_health.health.properties import MERGE_ENABLED, merging_told
from planning_health.health.signals import Signal
from planning_health.health.thresholds import Level, Thresholds
from planning_health.metadata.model import DATA, own_order
from planning_health.planning.spec_text import spec_name
from planning_health.settings.thresholds import (
    FEW_FILES,
    FEW_MANIFESTS,
    FILES_PER_MANIFEST,
    MANY_FILES,
    WELL_CLUSTERED,
)
from planning_health.wording import mean_number


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        id: unique in the table: the rule, and the spec or field it concerns.
        level: ``warning`` or ``critical``.
        signal: the signal that it rests on; scope and key with it name one :class:`Signal`.
        threshold: the threshold that was reached.
        evidence: what was measured, with the manifests' paths.
    """

    id: str
    title: str
    level: Level
    scope: str
    scope_key: str
    signal: str
    value: float | None
    unit: str
    threshold: float | None
    evidence: str
    explanation: str
    recommendation: str


class Assessment:
    """What the rules read: measurements, signals, thresholds."""

    def __init__(self, measures: Measures, signals: Sequence[Signal], thresholds: Thresholds) -> None:
        self.measures = measures
        self.picture = measures.picture
        self.thresholds = thresholds
        self._signals = {(item.scope_key, item.signal): item for item in signals}

    def signal(self, name: str, scope_key: str = "") -> Signal:
        """One signal."""
        return self._signals[scope_key, name]

    def raised(self, name: str, scope_key: str = "") -> bool:
        """Whether a signal is at or above its warning level."""
        return self.thresholds.level(name, self.signal(name, scope_key).value) in ("warning", "critical")

    def spec(self, spec_id: int) -> str:
        """A spec for people, with its fields."""
        return spec_name(self.picture.info, spec_id)

    def finding(self, rule: str, name: str, scope_key: str = "", **text: str) -> Finding:
        """A finding on a raised signal; a threshold that is not held against every table says so in the evidence."""
        signal = self.signal(name, scope_key)
        level = self.thresholds.level(name, signal.value)
        if floor := self.thresholds.held_against(name):
            text["evidence"] = f"{text['evidence']} {floor}"
        return Finding(
            id=f"{rule}:{scope_key}" if scope_key else rule,
            level=level,
            scope=signal.scope,
            scope_key=scope_key,
            signal=name,
            value=signal.value,
            unit=signal.unit,
            threshold=self.thresholds.reached(name, level),
            **text,
        )

    def manifests(self, ordinals: Sequence[int] | Ints, note: Callable[[int], str]) -> str:
        """Manifests for the evidence: the first ones with a note each, and how many more there are."""
        shown = [int(ordinal) for ordinal in ordinals[: self.thresholds.list_length]]
        lines = [f"{_file_name(self.picture.paths[ordinal])} ({note(ordinal)})" for ordinal in shown]
        more = len(ordinals) - len(shown)
        return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


class Texts(TypedDict):
    """What a finding says."""

    title: str
    evidence: str
    explanation: str
    recommendation: str


Rule = Callable[[Assessment], Iterator[Finding]]


def _when_raised(signal: str, rule: str) -> Callable[[Callable[[Assessment], Texts]], Rule]:
    """A rule that finds something as soon as its signal is raised: the function only says what."""

    def decorate(texts: Callable[[Assessment], Texts]) -> Rule:
        def apply(a: Assessment) -> Iterator[Finding]:
            if a.raised(signal):
                yield a.finding(rule, signal, **texts(a))

        return apply

    return decorate


def all_findings(assessment: Assessment) -> list[Finding]:
    """The findings, critical ones first, then in the order of the rules."""
    found = [finding for rule in _RULES for finding in rule(assessment)]
    return sorted(found, key=lambda finding: finding.level != "critical")


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _counted(number: int, one: str, several: str) -> str:
    """``1 manifest has``, ``2 manifests have``."""
    return f"{number:,} {one if number == 1 else several}"


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _mean(value: float | None) -> str:
    return "not measured" if value is None else mean_number(value)


def _wide(a: Assessment) -> Iterator[Finding]:
    """Manifests wider than the threshold and than twice their fair share of the spec's live range."""
    threshold = a.thresholds.by_signal["partition_range_days"].warning
    for spec in a.picture.specs:
        for summaries, values in zip(spec.data_summaries, spec.values, strict=True):
            fair = fair_range_days(spec, summaries, values)
            if fair is None:
                continue
            ranges = summaries.range_days
            wide = np.flatnonzero((ranges >= threshold) & (ranges > 2 * fair))
            if len(wide):
                yield _wide_finding(a, summaries, wide[np.argsort(-ranges[wide], kind="stable")], fair)


def fair_range_days(spec: SpecPicture, summaries: FieldSummaries, values: FieldValues) -> float | None:
    """Days that each manifest would cover if the spec's live entries were clustered: their range / manifests."""
    used = values.used(spec.live)
    used = used[values.distinct.known[used]]
    if summaries.key.unit is None or not len(used) or not len(summaries.ordinals):
        return None
    days: Floats = days_since_epoch(summaries.key.transform, values.distinct.keys[used])
    return float(days.max() - days.min()) / len(summaries.ordinals)


def _wide_finding(a: Assessment, summaries: FieldSummaries, wide: Ints, fair: float) -> Finding:
    key = summaries.key
    days = {int(summaries.ordinals[row]): float(summaries.range_days[row]) for row in wide}
    named = a.manifests(list(days), lambda ordinal: f"{days[ordinal]:g} days")
    return a.finding(
        "wide_manifests",
        "partition_range_days",
        key.scope_key,
        title=(
            f"{len(wide)} of {_counted(len(summaries.ordinals), 'manifest', 'manifests')} "
            f"{'is' if len(wide) == 1 else 'are'} wide in {key.name}"
        ),
        evidence=f"Clustered, each manifest would cover about {fair:.1f} days. Widest: {named}.",
        explanation=(
            f"A manifest is skipped only when the query's dates lie outside its range of {key.name}. These ranges are "
            "so wide that almost every query opens these manifests. Late data in each commit does that."
        ),
        recommendation=_cluster(a, key),
    )


def _cluster(a: Assessment, key: FieldKey) -> str:
    """A rewrite clusters by the spec's first field; another one has to be named as the sort order."""
    first = next((field.name for field in own_order(a.picture.info.specs[key.spec_id])), key.name)
    if first == key.name:
        return f"Rewrite the manifests of {a.spec(key.spec_id)}: that clusters them by {key.name}."
    return (
        f"Rewrite the manifests of {a.spec(key.spec_id)} sorted by {key.name} if queries filter by it more than by "
        f"{first}: without a sort order they are clustered by {first}."
    )


def _overlapping(a: Assessment) -> Iterator[Finding]:
    """Fields whose lookups open too many manifests, unless another field of the spec is clustered."""
    for spec in a.picture.specs:
        if any(overlap.mean is not None and overlap.mean <= WELL_CLUSTERED for overlap in spec.overlap):
            continue
        for overlap in spec.overlap:
            if a.raised("overlap_depth_mean", overlap.key.scope_key) and _can_improve(a, overlap):
                yield _overlap_finding(a, overlap)


def _can_improve(a: Assessment, overlap: OverlapDepth) -> bool:
    """Whether clustering would halve the depth, and the depth is not one of manifests without a live entry.

    A value with more files than a manifest holds spans several in the best case.
    """
    opened = float(overlap.opened.mean())
    chosen = a.picture.manifests.of(DATA, overlap.key.spec_id)
    chosen &= a.picture.manifests.live > 0
    files_per_value = int(a.picture.manifests.live[chosen].sum()) / max(1, overlap.values)
    files_per_manifest = max(1.0, float(a.picture.manifests.live[chosen].mean()))
    reachable = max(1.0, files_per_value / files_per_manifest)
    return opened > 2 * reachable and a.thresholds.level("overlap_depth_mean", opened) != "ok"


def _overlap_finding(a: Assessment, overlap: OverlapDepth) -> Finding:
    key = overlap.key
    deepest = int(np.argmax(overlap.depths))
    return a.finding(
        "overlapping_manifests",
        "overlap_depth_mean",
        key.scope_key,
        title=f"A lookup on {key.name} opens {_mean(overlap.mean)} of {overlap.manifests} manifests",
        evidence=(
            f"Over {overlap.values} values of {key.name}: mean {_mean(overlap.mean)}, 95 % within "
            f"{_mean(overlap.p95)}, worst {overlap.worst} (for {key.display(overlap.raw[deepest])}); "
            f"clustering ratio {_number(overlap.clustering_ratio)}."
        ),
        explanation="Files of the same partition value are spread over many manifests; planning opens each of them.",
        recommendation=_cluster(a, key),
    )


def _high_deleted_ratio(a: Assessment) -> Iterator[Finding]:
    if not a.raised("deleted_ratio"):
        return
    manifests = a.picture.manifests
    ratios = np.where(manifests.live > 0, manifests.deleted_ratio, np.nan)
    over = np.flatnonzero(ratios >= a.thresholds.by_signal["deleted_ratio"].warning)
    over = over[np.argsort(-ratios[over], kind="stable")]
    named = a.manifests(over, lambda ordinal: f"{ratios[ordinal]:.0%} of {manifests.entries[ordinal]} entries")
    empty = int((manifests.entries > 0).sum() - (manifests.live > 0).sum())
    passed_over = (
        f" {_counted(empty, 'other manifest has', 'other manifests have')} DELETED entries only (100%): scans pass "
        f"{'it' if empty == 1 else 'them'} over."
        if empty
        else ""
    )
    yield a.finding(
        "high_deleted_ratio",
        "deleted_ratio",
        title=f"{_counted(len(over), 'manifest holds', 'manifests hold')} many DELETED entries",
        evidence=f"{named}.{passed_over}",
        explanation=(
            "A delete or an overwrite leaves DELETED entries in the manifests that it rewrote. Planning reads and "
            "drops them until these manifests are written again."
        ),
        recommendation="Rewrite the manifests; the next commit that touches them does the same.",
    )


def _delete_files(a: Assessment) -> Iterator[Finding]:
    raised = [name for name in ("delete_files_per_data_file", "delete_files_per_partition") if a.raised(name)]
    if not raised:
        return
    deletes = a.measures.deletes
    signal = min(raised, key=lambda name: a.thresholds.level(name, a.signal(name).value))  # "critical" < "warning"
    named = a.manifests(deletes.manifests, lambda ordinal: f"{deletes.files_of_manifest[ordinal]} delete files")
    yield a.finding(
        "many_delete_files",
        signal,
        title=f"{deletes.files:,} delete files for {deletes.data_files:,} data files",
        evidence=(
            f"{deletes.rows:,} deleted rows; up to {deletes.most_in_a_partition:,} delete files in one partition. "
            f"Delete manifests: {named}."
        ),
        explanation=(
            "Merge-on-read deletes are listed in delete manifests. Planning reads them for each query and matches "
            "their files with the data files of the same partition; reading then applies them."
        ),
        recommendation=(
            "Compact the affected partitions with rewrite_data_files (delete-file-threshold), or "
            "rewrite_position_delete_files; rewriting manifests alone does not remove deletes."
        ),
    )


@_when_raised("dangling_delete_ratio", "dangling_deletes")
def _dangling(a: Assessment) -> Texts:
    deletes = a.measures.deletes
    return Texts(
        title=f"{deletes.dangling:,} of {deletes.files:,} delete files apply to nothing any more",
        evidence=(
            f"{deletes.dangling:,} delete files have no live data file of their partition that is old enough, or "
            "name a data file that is gone; doubtful ones are not counted."
        ),
        explanation="Compaction wrote the rows anew without them, but they stay listed: each planning reads them.",
        recommendation=(
            "Run rewrite_data_files with the option remove-dangling-deletes = true, or rewrite_position_delete_files "
            "for position deletes; rewrite_manifests does not remove them."
        ),
    )


@_when_raised("zero_live_manifests", "zero_live_manifests")
def _zero_live(a: Assessment) -> Texts:
    zero = a.measures.integrity.zero_live
    entries = a.picture.manifests.entries
    return Texts(
        title=f"{_counted(len(zero), 'manifest has', 'manifests have')} no live entry left",
        evidence=f"{a.manifests(zero, lambda ordinal: f'{entries[ordinal]} DELETED entries')}.",
        explanation="They record what the last commit removed. Scans pass them over, but the manifest list names them.",
        recommendation="Nothing to run: the next commit drops them. Rewriting manifests may leave them in place.",
    )


def _too_many(a: Assessment) -> Iterator[Finding]:
    """Specs with many more manifests than their files need, unless a field is clustered: then few are opened."""
    for spec in a.picture.specs:
        key = str(spec.spec_id)
        count = int(a.picture.manifests.of(DATA, spec.spec_id).sum())
        clustered = any(item.mean is not None and item.mean <= WELL_CLUSTERED for item in spec.overlap)
        if count <= FEW_MANIFESTS or clustered or not a.raised("manifests_to_expected", key):
            continue
        files = int(spec.live.sum())
        merging = a.picture.info.properties.get(MERGE_ENABLED, "").lower()
        yield a.finding(
            "too_many_manifests",
            "manifests_to_expected",
            key,
            title=f"{count} data manifests for {files:,} files of {a.spec(spec.spec_id)}",
            evidence=(
                f"About {FILES_PER_MANIFEST} files fit a manifest; here it is {files / count:.1f}. "
                f"{merging_told(a.picture.info)}"
            ),
            explanation="Each manifest that cannot be skipped is a request of its own, however little is in it.",
            recommendation=f"Rewrite the manifests of {a.spec(spec.spec_id)}"
            + {"false": ", or switch merging on.", "": f", and set {MERGE_ENABLED} = true if PyIceberg writes it."}.get(
                merging, "."
            ),
        )


@_when_raised("largest_manifest_to_target", "large_manifest")
def _large(a: Assessment) -> Texts:
    lengths = a.picture.manifests.length
    largest = np.argsort(-lengths, kind="stable")[:1]
    return Texts(
        title=f"The largest manifest is {_number(a.signal('largest_manifest_to_target').value)} times the target size",
        evidence=f"{a.manifests(largest, lambda ordinal: f'{lengths[ordinal]:,} bytes')}.",
        explanation="One thread reads and decodes a manifest, so that a large one decides how long planning takes.",
        recommendation="Rewrite the manifests; reduce column statistics if they are what makes it large.",
    )


@_when_raised("statistics_bytes_per_file", "heavy_statistics")
def _statistics(a: Assessment) -> Texts:
    columns = a.measures.columns
    costly = ", ".join(
        f"{item.column} ({_number(item.bytes)})" for item in columns.by_column[: a.thresholds.list_length]
    )
    return Texts(
        title=f"Statistics of {len(columns.by_column)} columns take {_number(columns.bytes_per_file)} bytes a file",
        evidence=f"{_share(columns.share)} of the uncompressed metadata. Costliest columns in bytes: {costly}.",
        explanation="Bounds and counts of columns that no query filters by are read and decoded in each planning.",
        recommendation=(
            "Keep statistics of the columns that queries filter by (write.metadata.metrics.*). The setting reaches "
            "new files only; trimming the existing entries is an action of its own."
        ),
    )


def _share(value: float | None) -> str:
    return "Not measured" if value is None else f"{value:.0%}"


@_when_raised("filter_columns_without_bounds", "filter_columns_without_bounds")
def _missing_bounds(a: Assessment) -> Texts:
    missing = [item.column for item in a.measures.columns.filter_coverage if item.share == 0]
    without = a.measures.columns.columns_without or []
    return Texts(
        title=f"Queries filter by {_counted(len(missing), 'column', 'columns')} without bounds",
        evidence=(
            f"No live file has bounds of {', '.join(missing)}; "
            f"{_counted(len(without), 'column has', 'columns have')} no statistics at all."
        ),
        explanation=(
            "Without bounds a predicate on the column skips no file. Statistics stop after 100 columns by default "
            "(write.metadata.metrics.max-inferred-column-defaults), or a metrics mode switched them off."
        ),
        recommendation=(
            "Set write.metadata.metrics.column.<name> for these columns and rewrite the data files: statistics "
            "cannot be added to files that were written without them."
        ),
    )


def _excess_files(a: Assessment) -> Iterator[Finding]:
    files = a.measures.files
    if files.excess < FEW_FILES or not a.raised("excess_file_share"):
        return
    found = a.finding(
        "small_files",
        "excess_file_share",
        title=f"{files.excess:,} of {files.files:,} data files could be saved by compaction",
        evidence=(
            f"{files.small:,} files are below 75 % of the target of {files.target:,} bytes; mean "
            f"{_number(files.bytes / files.files)} bytes; up to {files.largest_partition_files:,} files in a partition."
        ),
        explanation="Each file is an entry that planning decodes and a task to open, however small it is.",
        recommendation="Run rewrite_data_files on partitions with many small files.",
    )
    if found.level == "critical" and files.excess < MANY_FILES:
        found = replace(found, level="warning", threshold=a.thresholds.reached("excess_file_share", "warning"))
    yield found


@_when_raised("file_size_skew", "skewed_files")
def _skew(a: Assessment) -> Texts:
    return Texts(
        title=f"The largest data file is {_number(a.measures.files.skew)} times the mean",
        evidence=f"{a.measures.files.files:,} files, {a.measures.files.bytes:,} bytes.",
        explanation="Work is assigned by files; unequal ones leave some workers busy when others are done.",
        recommendation="Balance by size (greedy assignment), and compact small files.",
    )


@_when_raised("snapshots", "many_snapshots")
def _snapshots(a: Assessment) -> Texts:
    return Texts(
        title=f"{_number(a.signal('snapshots').value)} snapshots are kept",
        evidence="Counted in the table's metadata file.",
        explanation="Each query and each commit reads the whole metadata file first, and it grows with every snapshot.",
        recommendation="Expire old snapshots (expire_snapshots), with a cut-off older than the longest job.",
    )


def _metadata_ratio(a: Assessment) -> Iterator[Finding]:
    """Only for tables of some size: in a small one metadata always weighs much."""
    if a.measures.files.files < FILES_PER_MANIFEST * FEW_MANIFESTS or not a.raised("metadata_to_data"):
        return
    yield a.finding(
        "heavy_metadata",
        "metadata_to_data",
        title=f"Metadata is {_share(a.signal('metadata_to_data').value)} of the data",
        evidence=f"{a.signal('manifest_bytes').value:,} bytes of manifests, {a.measures.files.bytes:,} bytes of data.",
        explanation="Files are too small, or statistics too many, for what they describe.",
        recommendation="Compact small files; reduce column statistics.",
    )


@_when_raised("wrong_manifest_lengths", "wrong_manifest_lengths")
def _wrong_lengths(a: Assessment) -> Texts:
    manifests = a.picture.manifests
    named = a.manifests(
        a.measures.integrity.wrong_lengths,
        lambda ordinal: f"listed {manifests.length[ordinal]:,}, file {manifests.file_size[ordinal]:,} bytes",
    )
    return Texts(
        title="Manifests are not as long as the manifest list says",
        evidence=f"{named}.",
        explanation="Some readers trust the listed length and skip the entries behind it without an error.",
        recommendation="Rewrite these manifests with Spark, which reads the whole file; look for what changed them.",
    )


def _summaries(a: Assessment) -> Iterator[Finding]:
    integrity = a.measures.integrity
    for signal, what in (
        ("entries_outside_summary", "live entries lie outside their manifest's summary"),
        ("inverted_summaries", "manifest summaries have a lower bound above the upper one"),
    ):
        if not a.raised(signal):
            continue
        per_manifest = {
            ordinal: problem.key.name
            for problem in integrity.summaries
            for ordinal in (problem.entries if signal == "entries_outside_summary" else problem.inverted)
        }
        yield a.finding(
            signal,
            signal,
            title=f"{_number(a.signal(signal).value)} {what}",
            evidence=f"{a.manifests(list(per_manifest), lambda ordinal, names=per_manifest: names[ordinal])}.",  # type: ignore[misc]
            explanation="Engines skip manifests by these summaries, so that queries can lose rows.",
            recommendation="Find the writer that made them; rewriting the manifests with Spark corrects them.",
        )


@_when_raised("duplicate_data_files", "duplicate_data_files")
def _duplicates(a: Assessment) -> Texts:
    return Texts(
        title=f"{_number(a.signal('duplicate_data_files').value)} entries name a data file a second time",
        evidence="Counted over the live entries of all data manifests.",
        explanation="A file that is listed twice is read twice: queries return its rows twice.",
        recommendation="Find out how it was added (add_files without its check does that) before any maintenance.",
    )


def _not_rewritable(a: Assessment) -> Iterator[Finding]:
    integrity = a.measures.integrity
    cases: tuple[tuple[str, list[FieldKey], str], ...] = (
        ("dropped_source_fields", integrity.dropped_sources, "whose source column was dropped"),
        ("uuid_partition_fields", integrity.uuid_fields, "with UUID values"),
    )
    for signal, fields, what in cases:
        if a.raised(signal):
            named = ", ".join(f"{field.name} from {field.source} in {a.spec(field.spec_id)}" for field in fields)
            yield a.finding(
                signal,
                signal,
                title=f"{_counted(len(fields), 'partition field', 'partition fields')} {what}: not to be rewritten",
                evidence=f"{named}.",
                explanation="Reading works, but Spark fails to rewrite manifests or list partitions of such a spec.",
                recommendation=(
                    "Leave the manifests of these specs alone; rewriting their data files moves the data to the "
                    "current spec."
                ),
            )


_RULES: Final[tuple[Rule, ...]] = (
    _wrong_lengths,
    _summaries,
    _duplicates,
    _wide,
    _overlapping,
    _high_deleted_ratio,
    _delete_files,
    _dangling,
    _zero_live,
    _too_many,
    _large,
    _statistics,
    _missing_bounds,
    _excess_files,
    _skew,
    _snapshots,
    _metadata_ratio,
    _not_rewritable,
)
