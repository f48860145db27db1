"""The signals of one snapshot: named values by scope, "not measured" as ``None``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from planning_health.health.catalogue import SIGNALS
from planning_health.health.columns import Floats, Mask
from planning_health.health.data_files import positive_property
from planning_health.health.measures import Measures
from planning_health.health.overlap import OverlapDepth
from planning_health.health.partition_fields import FieldSummaries
from planning_health.health.picture import Picture
from planning_health.metadata.model import DATA, DELETES
from planning_health.settings.thresholds import FILES_PER_MANIFEST

MANIFEST_TARGET_PROPERTY: Final = "commit.manifest.target-size-bytes"
MANIFEST_TARGET_DEFAULT: Final = 8_388_608


@dataclass(frozen=True)
class Signal:
    """One value.

    Attributes:
        scope: ``table``, ``spec``, ``field``, ``column`` or ``query``.
        scope_key: empty for the table; a spec id; ``<spec id>.<field name>``; a column's or a query's name.
        signal: a name of :data:`planning_health.health.catalogue.SIGNALS`.
        value: ``None`` means not measured, never 0.
    """

    scope: str
    scope_key: str
    signal: str
    value: float | None
    unit: str


def all_signals(measures: Measures) -> list[Signal]:
    """Every signal of the snapshot, the table's first."""
    return [
        *_table_signals(measures),
        *_spec_signals(measures.picture),
        *_field_signals(measures.picture),
        *_column_signals(measures),
    ]


def make_signal(scope: str, scope_key: str, name: str, value: float | None, unit: str | None = None) -> Signal:
    """A signal with the catalogue's unit."""
    return Signal(scope, scope_key, name, value, SIGNALS[name].unit if unit is None else unit)


def _table_signals(measures: Measures) -> Iterator[Signal]:
    picture = measures.picture
    everything = np.ones(len(picture.manifests.length), dtype=np.bool_)
    values: dict[str, float | None] = {
        "manifests": len(everything),
        **_manifest_values(picture, everything),
        "manifests_to_expected": manifests_to_expected(picture, None),
        "zero_live_manifests": len(measures.integrity.zero_live),
        **_delete_values(measures),
        **_statistics_values(measures),
        **_file_values(measures),
        **_integrity_values(measures),
    }
    for name, value in values.items():
        yield make_signal("table", "", name, value)


def _manifest_values(picture: Picture, chosen: Mask) -> dict[str, float | None]:
    manifests = picture.manifests
    count = int(chosen.sum())
    size = int(manifests.length[chosen].sum())
    largest = int(manifests.length[chosen].max(initial=0)) if count else None
    target = positive_property(picture.info.properties, MANIFEST_TARGET_PROPERTY, MANIFEST_TARGET_DEFAULT)
    data = chosen & (manifests.content == DATA)
    data_entries = int(manifests.entries[data].sum())
    return {
        "data_manifests": int(data.sum()),
        "delete_manifests": int((chosen & (manifests.content == DELETES)).sum()),
        "manifest_bytes": size,
        "mean_manifest_bytes": size / count if count else None,
        "largest_manifest_bytes": largest,
        "largest_manifest_to_target": largest / target if largest is not None else None,
        "entries_per_manifest": int(manifests.entries[chosen].sum()) / count if count else None,
        "deleted_entry_share": int(manifests.deleted[data].sum()) / data_entries if data_entries else None,
        "deleted_ratio": _worst(np.where(data & (manifests.live > 0), manifests.deleted_ratio, np.nan)),
    }


def manifests_to_expected(picture: Picture, spec_id: int | None) -> float | None:
    """Data manifests / those expected for their live files; ``None`` without data manifests."""
    chosen = picture.manifests.of(DATA, spec_id)
    if not chosen.any():
        return None
    files = int(picture.manifests.live[chosen].sum())
    return int(chosen.sum()) / max(1, math.ceil(files / FILES_PER_MANIFEST))


def _delete_values(measures: Measures) -> dict[str, float | None]:
    deletes = measures.deletes
    return {
        "delete_files": deletes.files,
        "delete_rows": deletes.rows,
        "delete_files_per_data_file": deletes.files_per_data_file,
        "delete_rows_per_data_file": deletes.rows_per_data_file,
        "delete_files_per_partition": deletes.most_in_a_partition,
        "dangling_delete_files": deletes.dangling,
        "dangling_delete_ratio": deletes.dangling_ratio,
    }


def _statistics_values(measures: Measures) -> dict[str, float | None]:
    columns = measures.columns
    without = columns.columns_without
    coverage = columns.filter_coverage
    return {
        "statistics_bytes": columns.bytes if columns.share is not None else None,
        "statistics_share": columns.share,
        "statistics_bytes_per_file": columns.bytes_per_file,
        "columns_without_statistics": len(without) if without is not None else None,
        "filter_columns_without_bounds": (
            sum(item.share == 0 for item in coverage) if coverage else None  # no query filters by any
        ),
    }


def _file_values(measures: Measures) -> dict[str, float | None]:
    files, info = measures.files, measures.picture.info
    metadata_bytes = int(measures.picture.manifests.length.sum()) + info.manifest_list_bytes
    return {
        "data_files": files.files,
        "data_bytes": files.bytes,
        "small_file_share": files.small_share,
        "excess_file_share": files.excess_share,
        "file_size_skew": files.skew,
        "snapshots": len(info.metadata.snapshots),
        "metadata_to_data": metadata_bytes / files.bytes if files.bytes else None,
    }


def _integrity_values(measures: Measures) -> dict[str, float | None]:
    integrity = measures.integrity
    return {
        "wrong_manifest_lengths": len(integrity.wrong_lengths),
        "entries_outside_summary": integrity.entries_outside,
        "inverted_summaries": integrity.inverted_summaries,
        "duplicate_data_files": integrity.duplicate_files,
        "dropped_source_fields": len(integrity.dropped_sources),
        "uuid_partition_fields": len(integrity.uuid_fields),
    }


def _spec_signals(picture: Picture) -> Iterator[Signal]:
    for spec_id in picture.spec_ids:
        values = _manifest_values(picture, picture.manifests.spec_id == spec_id)
        values["manifests_to_expected"] = manifests_to_expected(picture, spec_id)
        for name, value in values.items():
            yield make_signal("spec", str(spec_id), name, value)


def _field_signals(picture: Picture) -> Iterator[Signal]:
    for spec in picture.specs:
        for summaries, overlap in zip(spec.data_summaries, spec.overlap, strict=True):
            yield from _range_signals(summaries)
            yield from _overlap_signals(overlap)


def _range_signals(summaries: FieldSummaries) -> Iterator[Signal]:
    if summaries.key.unit is None:
        return
    key = summaries.key.scope_key
    yield make_signal("field", key, "partition_range", _worst(summaries.range), summaries.key.unit)
    yield make_signal("field", key, "partition_range_days", _worst(summaries.range_days))


def _overlap_signals(overlap: OverlapDepth) -> Iterator[Signal]:
    key = overlap.key.scope_key
    yield make_signal("field", key, "overlap_depth_mean", overlap.mean)
    yield make_signal("field", key, "overlap_depth_p95", overlap.p95)
    yield make_signal("field", key, "overlap_depth_worst", overlap.worst)
    yield make_signal("field", key, "clustering_ratio", overlap.clustering_ratio)


def _column_signals(measures: Measures) -> Iterator[Signal]:
    for column in measures.columns.by_column:
        yield make_signal("column", column.column, "statistics_bytes", column.bytes)
        yield make_signal("column", column.column, "statistics_share", column.share)
    for coverage in measures.columns.coverage:
        yield make_signal("column", coverage.column, "bounds_coverage", coverage.share)


def _worst(values: Floats) -> float | None:
    measured = values[~np.isnan(values)]
    return float(measured.max()) if len(measured) else None
