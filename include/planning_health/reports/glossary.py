"""What each signal means, in one line, for readers who have never met a manifest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from planning_health.health.catalogue import SIGNALS
from planning_health.reports.model import GlossaryEntry


class _Term(NamedTuple):
    """A line that explains one signal, or several that belong together."""

    term: str
    meaning: str
    signals: tuple[str, ...] = ()


_ALWAYS: Final = (
    _Term(
        "Planning",
        "What an engine does before it reads data: it opens metadata to find the files that a query needs. "
        "Slow planning delays every query, however little data it reads.",
    ),
    _Term(
        "Manifest",
        "A metadata file that lists data files, with the range of partition values they cover. "
        "Planning skips a manifest whose range cannot match the query, and opens the others.",
    ),
    _Term(
        "Snapshot", "The state of a table after one commit. Every number here belongs to the snapshot named beside it."
    ),
    _Term(
        "Spec",
        "The rule by which a table's rows are partitioned. A table whose rule was changed has several, numbered from "
        "0, and manifests of each.",
    ),
    _Term(
        "Planning cost",
        "What planning the queries opens and reads as one number: the bytes of the manifests that are opened, and "
        "65,536 for opening each. × 0.5 means half of it.",
    ),
    _Term("Not measured", "The number is unknown. It is never shown as 0."),
)

_TERMS: Final = (
    _Term("Manifests", "How many manifest files the snapshot has.", ("manifests", "data_manifests")),
    _Term(
        "Metadata size",
        "The bytes of all manifests together: what planning reads when it can skip nothing.",
        ("manifest_bytes",),
    ),
    _Term(
        "Manifest size",
        "Mean and largest size of a manifest. Many small ones cost a request each; one huge one is read by one thread.",
        ("mean_manifest_bytes", "largest_manifest_bytes", "largest_manifest_to_target"),
    ),
    _Term(
        "Partition range",
        "How far one manifest reaches along a partition field, for example 90 days. "
        "The wider, the more queries must open it.",
        ("partition_range", "partition_range_days"),
    ),
    _Term(
        "Overlap depth",
        "How many manifests planning opens to look up one partition value: on average, for 95 % of the values, and at "
        "worst. 1 is ideal.",
        ("overlap_depth_mean", "overlap_depth_p95", "overlap_depth_worst"),
    ),
    _Term(
        "Clustering ratio",
        "1 when each partition value lies in a single manifest, 0 when every manifest may hold every value.",
        ("clustering_ratio",),
    ),
    _Term(
        "Deleted ratio",
        "The share of a manifest's entries that only say that a file was removed. They are read and thrown away.",
        ("deleted_ratio", "deleted_entry_share", "zero_live_manifests"),
    ),
    _Term(
        "Delete files",
        "Files that mark rows as deleted (merge-on-read). Planning must match them to data files, and readers must "
        "apply them.",
        (
            "delete_files",
            "delete_rows",
            "delete_manifests",
            "delete_files_per_data_file",
            "delete_rows_per_data_file",
            "delete_files_per_partition",
        ),
    ),
    _Term(
        "Dangling deletes",
        "Delete files that no longer apply to any data file, yet are still read by planning.",
        ("dangling_delete_files", "dangling_delete_ratio"),
    ),
    _Term(
        "Column statistics",
        "Recorded minimum, maximum and counts of each column of each file. They let planning skip files, but only for "
        "columns that queries filter by; the others are read for nothing.",
        ("statistics_bytes", "statistics_share", "statistics_bytes_per_file", "bounds_coverage"),
    ),
    _Term(
        "Small files",
        "Data files far below the target size. Each costs an entry in a manifest and a request to read.",
        ("small_file_share", "excess_file_share"),
    ),
    _Term(
        "Metadata to data",
        "Bytes of metadata for each byte of data.",
        ("metadata_to_data",),
    ),
)

_SIMULATIONS: Final = (
    _Term(
        "Default and greedy assignment",
        "Two ways to share files among tasks: dealt out in turn, or the largest first to the least loaded task.",
    ),
    _Term(
        "Home of a file",
        "The worker that affinity routing prefers for it, by a hash of the file's path and the worker's address. It "
        "says nothing of what a worker keeps.",
    ),
    _Term(
        "Plan task",
        "A ticket with which a planning server hands out a long plan in parts. Each ticket may make the server plan "
        "again.",
    ),
)

_PERCENTAGES: Final = frozenset(
    {
        "bounds_coverage",
        "dangling_delete_ratio",
        "deleted_entry_share",
        "deleted_ratio",
        "excess_file_share",
        "metadata_to_data",
        "small_file_share",
        "statistics_share",
    }
)


def signal_label(signal: str) -> str:
    """A signal's name in words."""
    return signal.replace("_", " ").strip().capitalize().replace("Uuid", "UUID")


def signal_meaning(signal: str) -> str:
    """What a signal is, exactly; empty for one that is not catalogued."""
    return SIGNALS[signal].meaning if signal in SIGNALS else ""


def signal_unit(signal: str, unit: str) -> str:
    """The unit to show a signal in: some plain ratios read better as percentages."""
    return "ratio" if not unit and signal in _PERCENTAGES else unit


def glossary(signals: Iterable[str], *, simulations: bool) -> list[GlossaryEntry]:
    """The general terms, then a line for each signal that the report shows (one for those that belong together)."""
    present = set(signals)
    grouped = {signal for term in _TERMS for signal in term.signals}
    terms = [*_ALWAYS, *(term for term in _TERMS if present.intersection(term.signals))]
    others = [_Term(signal_label(name), SIGNALS[name].meaning) for name in SIGNALS if name in present - grouped]
    terms += _SIMULATIONS if simulations else ()
    return [
        *(GlossaryEntry(term=term.term, meaning=term.meaning) for term in terms),
        *(GlossaryEntry(term=term.term, meaning=term.meaning, basic=False) for term in others),
    ]
