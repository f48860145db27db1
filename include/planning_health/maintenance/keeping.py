"""What the next append makes of a layout, and the manifest size with which it leaves the layout alone.

Merge-append joins neighbouring manifests whatever they cover, so that one append can undo a clustering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from planning_health.maintenance.next_append import merge_groups, predict_next_append
from planning_health.maintenance.prediction import target_size
from planning_health.maintenance.proposals import WORTHWHILE
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata
from planning_health.settings import Query

_STEP: Final = 1024
"""Advised sizes are multiples of it."""


@dataclass(frozen=True)
class Keeping:
    """What the next append does to a table's manifests, but for the manifest of its own that it adds.

    Attributes:
        manifests: how many there are, and how many the append leaves of them.
        read_bytes: metadata that planning a query reads on average, now and then; 0 where no query is known.
        target_bytes: the size that manifests aim at now.
        keeping_bytes: the largest size to aim at with which the append merges nothing and no manifest is too large;
            ``None`` where there is none.
    """

    manifests: tuple[int, int]
    read_bytes: tuple[float, float]
    target_bytes: int
    keeping_bytes: int | None

    @property
    def merges(self) -> bool:
        """Whether the append merges any manifests."""
        return self.manifests[0] != self.manifests[1]

    @property
    def is_dearer(self) -> bool:
        """Whether planning reads notably more afterwards."""
        return self.read_bytes[1] > self.read_bytes[0] * (1 + WORTHWHILE)


def what_keeps(metadata: PlanningMetadata, queries: Sequence[Query]) -> Keeping:
    """Predicts the next append on a layout, and looks for the size that keeps it.

    Args:
        metadata: the measured snapshot.
        queries: the table's; without any, those that its partitioning invites.
    """
    later, target = predict_next_append(metadata), target_size(metadata.info.properties)
    workload = Workload.of(metadata, queries)
    return Keeping(
        manifests=(len(metadata.manifests), len(later.manifests)),
        read_bytes=(_read_bytes(workload, metadata), _read_bytes(workload, later)),
        target_bytes=target,
        keeping_bytes=target if later is metadata else _keeping_bytes(metadata),
    )


def _read_bytes(workload: Workload, metadata: PlanningMetadata) -> float:
    opened = workload.opened(metadata)
    weight = sum(item.query.weight for item in opened)
    return sum(item.query.weight * item.metadata_bytes for item in opened) / weight if weight else 0.0


def _keeping_bytes(metadata: PlanningMetadata) -> int | None:
    groups = [group["length"].to_pylist() for _, _, group in merge_groups(metadata.manifests)]
    together = min((first + second for group in groups for first, second in pairwise(group)), default=0)
    size = (together - 1) // _STEP * _STEP
    largest = max((length for group in groups for length in group), default=0)
    return size if size >= max(largest, _STEP) and predict_next_append(metadata, size) is metadata else None
