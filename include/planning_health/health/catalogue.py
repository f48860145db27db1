"""Every signal by name: its unit, and what it means in one line (the report's glossary)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class SignalDefinition:
    """A signal's unit and meaning; ``unit`` is empty for plain ratios."""

    unit: str
    meaning: str


_MANIFESTS = {
    "manifests": SignalDefinition("manifests", "Manifests of the snapshot, data and delete manifests together."),
    "data_manifests": SignalDefinition("manifests", "Manifests that list data files."),
    "delete_manifests": SignalDefinition("manifests", "Manifests that list delete files; each query reads them too."),
    "manifest_bytes": SignalDefinition("bytes", "Size of all manifests: what planning reads without pruning."),
    "mean_manifest_bytes": SignalDefinition("bytes", "Mean size of a manifest."),
    "largest_manifest_bytes": SignalDefinition("bytes", "Size of the largest manifest."),
    "largest_manifest_to_target": SignalDefinition(
        "", "Size of the largest manifest / commit.manifest.target-size-bytes; one manifest is read by one thread."
    ),
    "entries_per_manifest": SignalDefinition("entries", "Entries, DELETED ones included, / manifests."),
    "manifests_to_expected": SignalDefinition(
        "", "Data manifests / manifests expected at about 500 files each: how much more often planning opens a file."
    ),
    "zero_live_manifests": SignalDefinition("manifests", "Manifests in which no entry is live any more."),
}
_DELETES = {
    "deleted_ratio": SignalDefinition(
        "", "DELETED entries / all entries of one data manifest: the worst one that still has live entries."
    ),
    "deleted_entry_share": SignalDefinition("", "DELETED entries / all entries of all data manifests."),
    "delete_files": SignalDefinition(
        "files", "Live delete files: position deletes, equality deletes, deletion vectors."
    ),
    "delete_rows": SignalDefinition("rows", "Rows in live delete files."),
    "delete_files_per_data_file": SignalDefinition("", "Live delete files / live data files."),
    "delete_rows_per_data_file": SignalDefinition("rows", "Rows in live delete files / live data files."),
    "delete_files_per_partition": SignalDefinition(
        "files", "Live delete files of the partition that has most of them."
    ),
    "dangling_delete_files": SignalDefinition(
        "files", "Live delete files that certainly apply to no live data file, and are read all the same."
    ),
    "dangling_delete_ratio": SignalDefinition("", "Dangling delete files / live delete files."),
}
_LAYOUT = {
    "partition_range": SignalDefinition(
        "", "Widest manifest: upper − lower bound of a time partition field, in the transform's unit."
    ),
    "partition_range_days": SignalDefinition("days", "Widest manifest: upper − lower bound of a time field in days."),
    "overlap_depth_mean": SignalDefinition(
        "manifests", "Manifests that an equality lookup on the field opens, mean over its distinct live values."
    ),
    "overlap_depth_p95": SignalDefinition("manifests", "Overlap depth that 95 % of the values do not exceed."),
    "overlap_depth_worst": SignalDefinition("manifests", "Overlap depth of the worst value."),
    "clustering_ratio": SignalDefinition(
        "", "1 − (mean overlap depth − 1)/(manifests − 1): 1 = each value in one manifest, 0 = in all of them."
    ),
}
_COLUMNS = {
    "statistics_bytes": SignalDefinition("bytes", "Uncompressed bytes of column statistics in the manifests."),
    "statistics_share": SignalDefinition("", "Statistics bytes / uncompressed bytes of all manifests."),
    "statistics_bytes_per_file": SignalDefinition(
        "bytes", "Statistics bytes of data manifests / their entries: what each file costs to plan by."
    ),
    "columns_without_statistics": SignalDefinition(
        "columns", "Columns of which no file has statistics (the default stops after 100 columns)."
    ),
    "filter_columns_without_bounds": SignalDefinition(
        "columns",
        "Columns that configured queries filter by and that can prune no file: no bounds, no exact partition. "
        "Not measured without queries.",
    ),
    "bounds_coverage": SignalDefinition("", "Live data files that a predicate on the column can prune / all of them."),
}
_FILES = {
    "data_files": SignalDefinition("files", "Live data files."),
    "data_bytes": SignalDefinition("bytes", "Size of all live data files."),
    "small_file_share": SignalDefinition("", "Data files below 75 % of the target size / all of them."),
    "excess_file_share": SignalDefinition(
        "",
        "Data files that compaction of partitions with five or more of them could save / all data files.",
    ),
    "file_size_skew": SignalDefinition("", "Largest / mean data file size: 1 = even."),
    "snapshots": SignalDefinition("snapshots", "Snapshots in the table's metadata file, which each query reads first."),
    "metadata_to_data": SignalDefinition("", "Bytes of manifests and manifest list / bytes of live data files."),
}
_INTEGRITY = {
    "wrong_manifest_lengths": SignalDefinition(
        "manifests", "Manifests whose length in the manifest list is not the file's size."
    ),
    "entries_outside_summary": SignalDefinition(
        "entries", "Live data entries whose partition lies outside their manifest's summary: queries can lose rows."
    ),
    "inverted_summaries": SignalDefinition("summaries", "Summaries whose lower bound lies above the upper one."),
    "duplicate_data_files": SignalDefinition("entries", "Live entries that name a data file which another one names."),
    "dropped_source_fields": SignalDefinition(
        "fields", "Partition fields in use whose source column was dropped: the spec cannot be rewritten."
    ),
    "uuid_partition_fields": SignalDefinition(
        "fields", "Partition fields in use with UUID values: rewrite_manifests fails on them."
    ),
}
_WORKLOAD = {
    "manifests_opened": SignalDefinition("manifests", "Manifests that planning of a query opens (simulated)."),
    "files_planned": SignalDefinition("files", "Data files that planning of a query returns (simulated)."),
}

SIGNALS: Final[dict[str, SignalDefinition]] = (
    _MANIFESTS | _DELETES | _LAYOUT | _COLUMNS | _FILES | _INTEGRITY | _WORKLOAD
)
