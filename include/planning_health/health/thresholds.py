"""When a signal becomes a warning or critical: defaults, overridden table by table in the settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from planning_health.errors import InputError
from planning_health.settings.models import TableRule, Threshold

Level = Literal["ok", "warning", "critical", "not_measured"]

LIST_LENGTH: Final = 5
"""Length of the reference lesson's two lists."""


@dataclass(frozen=True)
class Default:
    """A default threshold and why it is what it is."""

    warning: float
    critical: float
    reason: str

    @property
    def threshold(self) -> Threshold:
        """The levels alone."""
        return Threshold(warning=self.warning, critical=self.critical)


DEFAULTS: Final[dict[str, Default]] = {
    "deleted_ratio": Default(0.3, 0.6, "the reference lesson's 30 %; twice that as critical"),
    "partition_range_days": Default(30, 90, "the reference lesson's 30 days; a quarter as critical"),
    "overlap_depth_mean": Default(
        5, 20, "a planner opens a few manifests at once; beyond that a lookup waits for several rounds of requests"
    ),
    "manifests_to_expected": Default(
        10, 50, "the reference lesson expects a manifest for 500 files; ten times that is a request for 50 files"
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
    "excess_file_share": Default(0.5, 0.9, "half, and nine tenths, of all entries and tasks could be saved"),
    "file_size_skew": Default(10, 100, "tasks of that unequal size finish late in proportion"),
    "snapshots": Default(1000, 10_000, "about a kilobyte each in the metadata file: 1 and 10 MB before each query"),
    "metadata_to_data": Default(0.01, 0.1, "metadata is usually a thousandth of the data or less"),
    "wrong_manifest_lengths": Default(1, 1, "some readers stop at the listed length and skip entries silently"),
    "entries_outside_summary": Default(1, 1, "queries lose rows"),
    "inverted_summaries": Default(1, 1, "queries lose rows"),
    "duplicate_data_files": Default(1, 1, "queries return these rows twice"),
    "dropped_source_fields": Default(1, math.inf, "reading works, rewriting the spec does not"),
    "uuid_partition_fields": Default(1, math.inf, "reading works, rewriting the spec does not"),
}
"""By signal. The level is reached at the value or above it."""


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of one table."""

    by_signal: Mapping[str, Threshold]
    list_length: int = LIST_LENGTH

    def level(self, signal: str, value: float | None) -> Level:
        """The level of a value: ``not_measured`` without one, ``ok`` for a signal without thresholds."""
        if value is None or math.isnan(value):
            return "not_measured"
        threshold = self.by_signal.get(signal)
        if threshold is None or value < threshold.warning:
            return "ok"
        return "critical" if value >= threshold.critical else "warning"

    def reached(self, signal: str, level: Level) -> float | None:
        """The threshold that a level stands for; ``None`` below a warning."""
        threshold = self.by_signal.get(signal)
        if threshold is None or level not in ("warning", "critical"):
            return None
        return threshold.critical if level == "critical" else threshold.warning


def resolve_thresholds(rule: TableRule | None) -> Thresholds:
    """The defaults, overridden by a table's rule.

    Raises:
        InputError: for an unknown signal, or levels in the wrong order.
    """
    overrides = dict(rule.thresholds) if rule else {}
    for signal, threshold in overrides.items():
        if signal not in DEFAULTS:
            raise InputError(f"thresholds: unknown signal {signal!r}; known: {', '.join(sorted(DEFAULTS))}")
        if not threshold.warning <= threshold.critical:
            raise InputError(
                f"thresholds.{signal}: warning {threshold.warning:g} is above critical {threshold.critical:g}"
            )
    defaults = {signal: default.threshold for signal, default in DEFAULTS.items()}
    return Thresholds(defaults | overrides, rule.list_length if rule else LIST_LENGTH)


def worst(levels: list[Level]) -> Level:
    """The worst level; ``ok`` when there is none."""
    order: tuple[Level, ...] = ("critical", "warning", "ok", "not_measured")
    return min(levels, key=order.index, default="ok")
