"""Contradictions between what the metadata says and what the files hold: readers may lose rows or crash over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from pyiceberg.types import UUIDType

from planning_health.health.columns import Ints, Mask
from planning_health.health.partition_fields import FieldKey, FieldSummaries, FieldValues
from planning_health.health.picture import Picture, SpecPicture


@dataclass(frozen=True)
class SummaryProblems:
    """Where summaries of one partition field contradict the entries, by manifest.

    Attributes:
        entries: live data entries outside their manifest's summary, by manifest ordinal.
        inverted: manifests whose lower bound lies above the upper one.
        width: manifests whose number of summaries is not the spec's number of fields.
    """

    key: FieldKey
    entries: dict[int, int] = field(default_factory=dict)
    inverted: list[int] = field(default_factory=list)
    width: list[int] = field(default_factory=list)


class Integrity:
    """The contradictions of one snapshot."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture

    @cached_property
    def wrong_lengths(self) -> list[int]:
        """Manifests whose length in the manifest list is not the file's: some readers then skip entries silently."""
        manifests = self._picture.manifests
        return _ordinals((manifests.file_size >= 0) & (manifests.file_size != manifests.length))

    @cached_property
    def duplicate_files(self) -> int:
        """Entries of live data files that another entry names too: their rows are read twice."""
        rows = np.flatnonzero(self._picture.data.live)
        paths = self._picture.metadata.data_files["file_path"].take(rows)
        return len(paths) - len(paths.unique())

    @cached_property
    def summaries(self) -> list[SummaryProblems]:
        """For each partition field of each spec what its summaries get wrong."""
        return [
            _problems(self._picture, spec, values, summary)
            for spec in self._picture.specs
            for values, summary in zip(spec.values, spec.data_summaries, strict=True)
        ]

    @property
    def entries_outside(self) -> int:
        """Live data entries outside their manifest's summary, over all fields."""
        return sum(sum(problem.entries.values()) for problem in self.summaries)

    @property
    def inverted_summaries(self) -> int:
        """Manifest summaries whose bounds are the wrong way round."""
        return sum(len(problem.inverted) for problem in self.summaries)

    @cached_property
    def dropped_sources(self) -> list[FieldKey]:
        """Fields of specs in use whose source column the current schema has no more."""
        return [key for spec in self._picture.specs for key in spec.keys if key.source_dropped]

    @cached_property
    def uuid_fields(self) -> list[FieldKey]:
        """Fields of specs in use whose partition values are UUIDs."""
        return [key for spec in self._picture.specs for key in spec.keys if isinstance(key.value_type, UUIDType)]

    @cached_property
    def zero_live(self) -> list[int]:
        """Manifests of either content without any live entry."""
        return _ordinals(self._picture.manifests.live == 0)


def _problems(picture: Picture, spec: SpecPicture, values: FieldValues, summary: FieldSummaries) -> SummaryProblems:
    listed = np.asarray(picture.metadata.manifests["partitions"].combine_chunks().is_valid())
    outside = _outside(picture, spec, values, summary)
    manifests, counts = np.unique(picture.data.manifest[spec.rows[outside]], return_counts=True)
    return SummaryProblems(
        key=summary.key,
        entries=dict(zip(manifests.tolist(), counts.tolist(), strict=True)),
        inverted=summary.ordinals[summary.inverted].tolist(),
        width=summary.ordinals[~summary.present & listed[summary.ordinals]].tolist(),
    )


def _outside(picture: Picture, spec: SpecPicture, values: FieldValues, summary: FieldSummaries) -> Ints:
    """Entries of the spec that are live and lie outside their manifest's summary of the field."""
    row_of = np.full(len(picture.manifests.length), -1, dtype=np.int64)
    row_of[summary.ordinals] = np.arange(len(summary.ordinals))
    rows = row_of[picture.data.manifest[spec.rows]]
    checked = np.flatnonzero(spec.live & (rows >= 0))
    checked = checked[summary.present[rows[checked]]]
    codes, manifest = values.codes[checked], rows[checked]
    null = codes < 0
    column = values.distinct
    if not len(column.keys):
        return checked[null & ~summary.contains_null[manifest]]
    nan, known = column.nan[codes] & ~null, column.known[codes] & ~null
    inside: Mask = np.where(null, summary.contains_null[manifest], True)
    inside = np.where(nan, summary.contains_nan[manifest], inside)
    number = known & ~nan
    inside[number] = _within(column.keys[codes[number]], summary, manifest[number])
    return checked[~inside]


def _within(keys: Ints, summary: FieldSummaries, manifest: Ints) -> Mask:
    """Whether values lie between their manifest's bounds; a bound that does not decode excludes nothing."""
    result = ~(summary.lower.absent[manifest] | summary.upper.absent[manifest])
    low, high = summary.lower.known[manifest], summary.upper.known[manifest]
    result[low] &= np.asarray(keys[low] >= summary.lower.keys[manifest[low]], dtype=np.bool_)
    result[high] &= np.asarray(keys[high] <= summary.upper.keys[manifest[high]], dtype=np.bool_)
    return result


def _ordinals(chosen: Mask) -> list[int]:
    return [int(ordinal) for ordinal in np.flatnonzero(chosen)]
