"""The default thresholds of the signals, and why each is what it is; the settings override them table by table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

WELL_CLUSTERED: Final = 2.0
"""Mean overlap depth up to which a field counts as clustered: a value's manifest and the one it continues in."""

FEW_MANIFESTS: Final = 20
"""So many manifests open in a few requests, whatever is in them."""

FILES_PER_MANIFEST: Final = 500
"""The reference lesson's rule of thumb."""

FEW_FILES: Final = 100
"""Saving fewer files than this changes no planning time that anyone notices."""

MANY_FILES: Final = 1_000
"""Compaction is critical only where it saves this many files: in a small table even all of them cost little."""


@dataclass(frozen=True)
class Default:
    """A default threshold and why it is what it is.

    Attributes:
        floor: what the threshold is held against, where that is not every table: the others could not be better, or
            gain nothing that anyone notices.
    """

    warning: float
    critical: float
    reason: str
    floor: str = ""


DEFAULTS: Final[dict[str, Default]] = {
    "deleted_ratio": Default(0.3, 0.6, "a rule of thumb, 30 %; twice that as critical"),
    "partition_range_days": Default(
        30,
        90,
        "a rule of thumb, 30 days; a quarter as critical",
        "manifests that are more than twice as wide as they would be in a clustered spec",
    ),
    "overlap_depth_mean": Default(
        5,
        20,
        "a planner opens a few manifests at once; beyond that a lookup waits for several rounds of requests",
        f"specs without a clustered field (mean of {WELL_CLUSTERED:g} or less), where clustering would halve the mean",
    ),
    "manifests_to_expected": Default(
        10,
        50,
        f"a rule of thumb expects a manifest for {FILES_PER_MANIFEST} files; ten times that is a request for "
        f"{FILES_PER_MANIFEST // 10} files",
        f"specs with more than {FEW_MANIFESTS} data manifests and no clustered field",
    ),
    "largest_manifest_to_target": Default(
        2, 8, "merging stops at the target size; a multiple of it is one long sequential read and decode"
    ),
    "statistics_bytes_per_file": Default(
        2048, 8192, "about 40 and 160 columns with full statistics, where the rest of an entry takes some 300 bytes"
    ),
    "filter_columns_without_bounds": Default(
        1, 3, "a query on such a column reads every file that its partition keeps"
    ),
    "delete_files_per_data_file": Default(0.2, 1, "one file in five; more delete files than data files"),
    "delete_files_per_partition": Default(
        100, 1000, "planning matches each data file with the delete files of its partition, and reading opens them"
    ),
    "dangling_delete_ratio": Default(0.1, 0.5, "read in each planning without any effect"),
    "zero_live_manifests": Default(10, 100, "each is listed and pruned for nothing; the next commit drops them"),
    "excess_file_share": Default(
        0.5,
        0.9,
        "half, and nine tenths, of all entries and tasks could be saved",
        f"tables where compaction saves {FEW_FILES} files or more, as critical from {MANY_FILES:,} on",
    ),
    "file_size_skew": Default(10, 100, "tasks of that unequal size finish late in proportion"),
    "snapshots": Default(1000, 10_000, "about a kilobyte each in the metadata file: 1 and 10 MB before each query"),
    "metadata_to_data": Default(
        0.01,
        0.1,
        "metadata is usually a thousandth of the data or less",
        f"tables of {FILES_PER_MANIFEST * FEW_MANIFESTS:,} data files or more",
    ),
    "wrong_manifest_lengths": Default(1, 1, "some readers stop at the listed length and skip entries silently"),
    "entries_outside_summary": Default(1, 1, "queries lose rows"),
    "inverted_summaries": Default(1, 1, "queries lose rows"),
    "duplicate_data_files": Default(1, 1, "queries return these rows twice"),
    "dropped_source_fields": Default(1, math.inf, "reading works, rewriting the spec does not"),
    "uuid_partition_fields": Default(1, math.inf, "reading works, rewriting the spec does not"),
}
"""By signal. The level is reached at the value or above it."""
