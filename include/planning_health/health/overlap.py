"""Overlap depth: how many manifests an equality lookup on a partition field opens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planning_health.health.columns import Ints, Mask
from planning_health.health.display import number
from planning_health.health.partition_fields import FieldKey, FieldSummaries, FieldValues

SERIES_POINTS: Final = 400


@dataclass(frozen=True)
class OverlapDepth:
    """The depth of one partition field over its distinct non-null values of live files, each counted once.

    Attributes:
        key: the field.
        manifests: data manifests of the spec.
        depths: for each value, in Iceberg's order (NaN last), the data manifests whose summary contains it; a
            manifest without a usable summary contains everything.
        opened: the same without manifests that have no live entry, which scans pass over.
        raw: the values as they are stored, in the same order.
    """

    key: FieldKey
    manifests: int
    depths: Ints
    opened: Ints
    raw: list[bytes]

    @property
    def values(self) -> int:
        """Number of distinct values."""
        return len(self.depths)

    @property
    def mean(self) -> float | None:
        """Mean depth; ``None`` without values."""
        return float(self.depths.mean()) if self.values else None

    @property
    def p95(self) -> float | None:
        """95th percentile, interpolated; ``None`` without values."""
        return float(np.percentile(self.depths, 95)) if self.values else None

    @property
    def worst(self) -> int | None:
        """Largest depth; ``None`` without values."""
        return int(self.depths.max()) if self.values else None

    @property
    def clustering_ratio(self) -> float | None:
        """1 − (mean − 1)/(manifests − 1): 1 when each value lies in one manifest, 0 when it lies in all of them."""
        if self.mean is None:
            return None
        return 1.0 if self.manifests <= 1 else 1 - (self.mean - 1) / (self.manifests - 1)

    def as_json(self) -> dict[str, Any]:
        """The field's part of the health result, with at most ``SERIES_POINTS`` points."""
        return {
            "spec_id": self.key.spec_id,
            "field": self.key.name,
            "transform": str(self.key.transform),
            "manifests": self.manifests,
            "values": self.values,
            "mean": self.mean,
            "p95": self.p95,
            "worst": self.worst,
            "clustering_ratio": self.clustering_ratio,
            "series": [self._point(index) for index in self._shown()],
        }

    def _shown(self) -> list[int]:
        """All values, or the deepest one of each of 400 stretches of equal length: no peak is lost."""
        if self.values <= SERIES_POINTS:
            return list(range(self.values))
        edges = np.linspace(0, self.values, SERIES_POINTS + 1).astype(np.int64)
        return [int(start + np.argmax(self.depths[start:end])) for start, end in pairwise(edges)]

    def _point(self, index: int) -> dict[str, Any]:
        raw = self.raw[index]
        return {
            "value": number(self.key.decode(raw)),
            "display": self.key.display(raw),
            "depth": int(self.depths[index]),
        }


def overlap_depth(values: FieldValues, live: Mask, summaries: FieldSummaries, manifest_lives: Mask) -> OverlapDepth:
    """Counts, for each distinct value of live files, the data manifests whose summary contains it.

    Args:
        values: the field's values over all entries of the spec's data manifests.
        live: which of these entries are not DELETED.
        summaries: the summaries of all data manifests of the spec.
        manifest_lives: which of these manifests have a live entry.
    """
    used = values.used(live)
    used = used[values.distinct.known[used]]
    column = values.distinct.take(used)
    numbers = used[~column.nan]
    keys, first = np.unique(values.distinct.keys[numbers], return_index=True)
    nan = used[column.nan][:1]
    every = np.ones(len(summaries.ordinals), dtype=np.bool_)
    depths, opened = (_depths(keys, summaries, chosen, nan=bool(len(nan))) for chosen in (every, manifest_lives))
    raw = [values.raw[int(index)].as_py() for index in (*numbers[first], *nan)]
    return OverlapDepth(summaries.key, len(summaries.ordinals), depths, opened, raw)


def _depths(keys: NDArray[Any], summaries: FieldSummaries, chosen: Mask, *, nan: bool) -> Ints:
    """For each key, and then for NaN if it is asked for, the chosen manifests whose summary contains it."""
    ranges = summaries.bounded & ~summaries.inverted & chosen
    lowers, uppers = np.sort(summaries.lower.keys[ranges]), np.sort(summaries.upper.keys[ranges])
    within = np.searchsorted(lowers, keys, side="right") - np.searchsorted(uppers, keys, side="left")
    unknown = summaries.unknown & chosen
    depths = within.astype(np.int64) + int(unknown.sum())
    return np.append(depths, int((summaries.contains_nan & chosen | unknown).sum())) if nan else depths
