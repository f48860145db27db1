"""What each signal means, in one line, for readers who have never met a manifest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from planning_health.reports.model import GlossaryEntry


class _Term(NamedTuple):
    term: str
    meaning: str
    signals: tuple[str, ...] = ()


_ALWAYS: Final = (
    _Term(
        "Planning",
        "what an engine does before it reads data: it opens metadata to find the files that a query needs. "
        "Slow planning delays every query, however little data it reads.",
    ),
    _Term(
        "Manifest",
        "a metadata file that lists data files, with the range of partition values they cover. "
        "Planning skips a manifest whose range cannot match the query, and opens the others.",
    ),
    _Term(
        "Snapshot", "the state of a table after one commit; every number here belongs to the snapshot named beside it."
    ),
    _Term("Not measured", "the number is unknown. It is never shown as 0."),
)

_TERMS: Final = (
    _Term("Manifests", "how many manifest files the table's current snapshot has.", ("manifest_count", "manifests")),
    _Term(
        "Metadata size",
        "the bytes of all manifests together: what planning reads when nothing can be skipped.",
        ("manifest_bytes", "metadata_bytes", "total_manifest_bytes"),
    ),
    _Term(
        "Manifest size",
        "mean and largest size of a manifest; many small ones cost a request each, one huge one cannot be skipped.",
        (
            "manifest_mean_bytes",
            "manifest_bytes_mean",
            "mean_manifest_bytes",
            "manifest_bytes_max",
            "largest_manifest_bytes",
        ),
    ),
    _Term("Entries per manifest", "how many data files one manifest lists.", ("entries_per_manifest",)),
    _Term(
        "Partition range",
        "how far one manifest reaches along a partition field, for example 90 days. The wider, the more queries must open it.",
        ("partition_range", "partition_range_days", "wide_manifests"),
    ),
    _Term(
        "Overlap depth",
        "how many manifests planning opens to find one partition value: on average, for the worst 5 %, and at worst. 1 is ideal.",
        ("overlap_depth", "overlap_depth_mean", "overlap_depth_p95", "overlap_depth_worst"),
    ),
    _Term(
        "Clustering ratio",
        "1 when each partition value lies in a single manifest, 0 when every manifest may hold every value.",
        ("clustering_ratio",),
    ),
    _Term(
        "Deleted ratio",
        "the share of a manifest's entries that only say “this file was removed”. They are read and thrown away.",
        ("deleted_ratio", "deleted_ratio_max", "high_delete_manifests"),
    ),
    _Term(
        "Delete files",
        "files that mark rows as deleted (merge-on-read). Planning must match them to data files, and readers must apply them.",
        ("delete_files", "delete_files_per_data_file", "delete_rows", "delete_rows_per_data_file", "delete_manifests"),
    ),
    _Term(
        "Dangling deletes",
        "delete files that no longer apply to any data file, yet are still read by planning.",
        ("dangling_deletes", "dangling_delete_files"),
    ),
    _Term(
        "Statistics bytes",
        "what the recorded minimum, maximum and counts of a column take in the manifests. Useful only for columns that queries filter on.",
        ("statistics_bytes", "statistics_share", "column_statistics_bytes"),
    ),
    _Term(
        "Small files",
        "the share of data files far below the target size; each costs an entry in a manifest and a request to read.",
        ("small_files", "small_file_ratio", "small_files_ratio"),
    ),
    _Term(
        "File size skew",
        "the largest data file over the mean; one huge file keeps one task busy while others wait.",
        ("file_size_skew", "skew"),
    ),
    _Term(
        "Snapshots",
        "how many old states the table keeps; each keeps its metadata alive.",
        ("snapshots", "snapshot_count"),
    ),
    _Term(
        "Metadata to data",
        "bytes of metadata for each byte of data.",
        ("metadata_to_data_ratio", "metadata_data_ratio"),
    ),
    _Term(
        "Unreadable summaries",
        "manifests whose recorded range contradicts their entries: engines may skip data wrongly.",
        ("summary_mismatch", "inverted_bounds"),
    ),
)

_SIMULATIONS: Final = (
    _Term(
        "Default and greedy assignment",
        "two ways to share files among tasks: dealt out in turn, or the largest first to the least loaded task.",
    ),
    _Term(
        "Plan task",
        "a ticket with which a planning server hands out a long plan in parts; each ticket may make the server plan again.",
    ),
)


def signal_label(signal: str) -> str:
    """A signal's name in words."""
    return signal.replace("_", " ").replace(".", ": ").strip().capitalize()


def glossary(signals: Iterable[str], *, simulations: bool) -> list[GlossaryEntry]:
    """One line for each signal that the report shows, after the general terms.

    A signal that has no line of its own is left out: its name and unit stand in the table.
    """
    present = set(signals)
    used = [term for term in _TERMS if present.intersection(term.signals) or _starts_like(present, term)]
    chosen = [*_ALWAYS, *used, *(_SIMULATIONS if simulations else ())]
    return [GlossaryEntry(term=term.term, meaning=term.meaning) for term in chosen]


def _starts_like(present: set[str], term: _Term) -> bool:
    return any(signal.startswith(f"{known}_") for signal in present for known in term.signals)
