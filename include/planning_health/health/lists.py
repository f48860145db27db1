"""The manifests one by one: the reference lesson's two raw lists, and the rows that the report draws."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from planning_health.health.columns import Floats
from planning_health.health.display import number
from planning_health.health.partition_fields import FieldSummaries
from planning_health.health.picture import Picture
from planning_health.health.thresholds import Thresholds
from planning_health.metadata.model import DATA

MANIFESTS_SHOWN: Final = 2000


class ManifestLists:
    """The manifests of one snapshot as rows.

    Args:
        picture: the snapshot.
        thresholds: from which values on a manifest is listed, and how long the lists are.
    """

    def __init__(self, picture: Picture, thresholds: Thresholds) -> None:
        self._picture = picture
        self._thresholds = thresholds
        self._fields: dict[int, list[tuple[FieldSummaries, int]]] = {}
        for spec in picture.specs:
            for summaries in (*spec.data_summaries, *spec.delete_summaries):
                for row, ordinal in enumerate(summaries.ordinals.tolist()):
                    self._fields.setdefault(ordinal, []).append((summaries, row))
        self._range_days = self._widest_field()

    def _widest_field(self) -> Floats:
        """For each manifest the range in days of its widest time field; NaN without one."""
        widest = np.full(len(self._picture.manifests.length), np.nan)
        for spec in self._picture.specs:
            for summaries in (*spec.data_summaries, *spec.delete_summaries):
                widest[summaries.ordinals] = np.fmax(widest[summaries.ordinals], summaries.range_days)
        return widest

    def rows(self) -> list[dict[str, Any]]:
        """At most ``MANIFESTS_SHOWN`` manifests in the manifest list's order; of more, the worst are kept."""
        count = len(self._range_days)
        if count <= MANIFESTS_SHOWN:
            return [self.row(ordinal) for ordinal in range(count)]
        ratio = np.nan_to_num(self._picture.manifests.deleted_ratio)
        badness = np.lexsort((-ratio, -np.nan_to_num(self._range_days)))
        return [self.row(ordinal) for ordinal in sorted(badness[:MANIFESTS_SHOWN].tolist())]

    def row(self, ordinal: int) -> dict[str, Any]:
        """One manifest."""
        manifests = self._picture.manifests
        ratio = float(manifests.deleted_ratio[ordinal])
        return {
            "ordinal": ordinal,
            "path": self._picture.paths[ordinal],
            "content": int(manifests.content[ordinal]),
            "spec_id": int(manifests.spec_id[ordinal]),
            "length": int(manifests.length[ordinal]),
            "entries": int(manifests.entries[ordinal]),
            "live_entries": int(manifests.live[ordinal]),
            "deleted_ratio": None if np.isnan(ratio) else ratio,
            "ranges": [_range(summaries, row) for summaries, row in self._fields.get(ordinal, [])],
        }

    def lists(self) -> dict[str, list[Any]]:
        """The two raw lists, each the worst first, and the paths of the manifests that are over both thresholds.

        Only data manifests with entries are listed; a threshold is the warning level of ``deleted_ratio`` and of
        ``partition_range_days``.
        """
        data = (self._picture.manifests.content == DATA) & (self._picture.manifests.entries > 0)
        by_ratio = self._over("deleted_ratio", np.where(data, self._picture.manifests.deleted_ratio, np.nan))
        by_range = self._over("partition_range_days", np.where(data, self._range_days, np.nan))
        length = self._thresholds.list_length
        both = set(by_range)
        return {
            "by_deleted_ratio": [self._listed(ordinal) for ordinal in by_ratio[:length]],
            "by_partition_range": [self._listed(ordinal) for ordinal in by_range[:length]],
            "in_both": [self._picture.paths[ordinal] for ordinal in by_ratio if ordinal in both],
        }

    def _over(self, signal: str, values: Floats) -> list[int]:
        """Manifests at or above the signal's warning level, the worst first."""
        threshold = self._thresholds.by_signal[signal].warning
        order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
        return [int(ordinal) for ordinal in order if values[ordinal] >= threshold]

    def _listed(self, ordinal: int) -> dict[str, Any]:
        days = float(self._range_days[ordinal])
        return self.row(ordinal) | {"range_days": None if np.isnan(days) else days}


def _range(summaries: FieldSummaries, row: int) -> dict[str, Any]:
    key = summaries.key
    lower, upper = summaries.raw_lower[row].as_py(), summaries.raw_upper[row].as_py()
    return {
        "field": key.name,
        "transform": str(key.transform),
        "unit": key.unit,
        "lower": number(key.decode(lower)),
        "upper": number(key.decode(upper)),
        "lower_display": key.display(lower),
        "upper_display": key.display(upper),
        "contains_null": bool(summaries.contains_null[row]) if summaries.present[row] else None,
        "range": _measured(summaries.range[row]),
        "range_days": _measured(summaries.range_days[row]),
    }


def _measured(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
