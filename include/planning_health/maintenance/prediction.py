"""Predicts what Iceberg's ``rewrite_manifests`` will make of one spec's manifests.

The rule is that of Iceberg's Spark action: the number of new manifests is the size of the old ones over the target,
rounded up; live entries are range-partitioned by their partition (nulls first) into that many, and equal partitions
never part, unless a manifest outgrows the target by a fifth. The result is planning metadata again, so that
everything that measures a table measures the prediction too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec

from planning_health.health.data_files import positive_property
from planning_health.maintenance.predicted_state import (
    OldManifests,
    Replacement,
    Rows,
    partition_values,
    predicted_state,
)
from planning_health.metadata.model import DATA, DELETES, PlanningMetadata
from planning_health.metadata.single_values import decode_array

TARGET_SIZE_PROPERTY: Final = "commit.manifest.target-size-bytes"
DEFAULT_TARGET_SIZE: Final = 8 * 1024 * 1024

_ROLL_CHECK_ROWS: Final = 250
_ROLL_FACTOR: Final = 1.2


@dataclass(frozen=True)
class RewritePrediction:
    """What a rewrite of one spec will do.

    Attributes:
        rewrites: false where Iceberg itself would leave everything as it is (nothing to merge).
        metadata: the planning metadata as it will be.
    """

    spec_id: int
    sort_by: tuple[str, ...]
    rewrites: bool
    metadata: PlanningMetadata


def target_size(properties: dict[str, str]) -> int:
    """The manifest size that commits and rewrites of a table aim at, in bytes."""
    return positive_property(properties, TARGET_SIZE_PROPERTY, DEFAULT_TARGET_SIZE)


def predict_rewrite_manifests(
    metadata: PlanningMetadata, spec_id: int, target_size_bytes: int, sort_by: Sequence[str] | None = None
) -> RewritePrediction:
    """Predicts a rewrite of one spec's data and delete manifests.

    Args:
        metadata: the recorded snapshot.
        spec_id: the spec whose manifests are rewritten; the others stay.
        target_size_bytes: the size that new manifests aim at.
        sort_by: partition field names to cluster by; all fields of the spec, in the order of their field ids, when
            empty.
    """
    spec = metadata.info.specs[spec_id]
    order = tuple(sort_by or ())
    rewrites = [Rewrite(metadata, spec, content, target_size_bytes, order) for content in (DATA, DELETES)]
    replacements = [rewrite.replacement() for rewrite in rewrites if rewrite.is_run]
    if not replacements:
        return RewritePrediction(spec_id, order, False, metadata)
    return RewritePrediction(spec_id, order, True, predicted_state(metadata, replacements))


class Rewrite:
    """The rewrite of the data or of the delete manifests of one spec.

    Args:
        metadata: the recorded snapshot.
        spec: the spec.
        content: data or deletes.
        target: the size that new manifests aim at.
        sort_by: partition field names to cluster by; all in the order of their field ids, when empty.
    """

    def __init__(
        self, metadata: PlanningMetadata, spec: PartitionSpec, content: int, target: int, sort_by: tuple[str, ...]
    ) -> None:
        self.spec, self.target, self.sort_by = spec, target, sort_by
        manifests = metadata.manifests
        mine = pc.and_(pc.equal(manifests["content"], content), pc.equal(manifests["partition_spec_id"], spec.spec_id))
        self.old = OldManifests(metadata, spec, content, manifests.filter(mine))
        self.wanted = max(1, -(-self.old.total("length") // target))

    @property
    def is_run(self) -> bool:
        """Iceberg leaves a single manifest alone unless it is larger than the target."""
        count = len(self.old.manifests)
        return count > 0 and not (self.wanted == 1 and count == 1)

    def replacement(self) -> Replacement:
        """What the rewrite will write."""
        entries = self.old.live_entries()
        groups = [piece for group in self._dealt(entries) if len(group) for piece in self._rolled(group, len(entries))]
        return Replacement(self.old, entries, groups)

    def _dealt(self, entries: pa.Table) -> list[Rows]:
        keys = self._keys(entries) if len(entries) else None
        if keys is None:  # unpartitioned: dealt out evenly
            rows = np.arange(len(entries))
            return [rows[start :: self.wanted] for start in range(self.wanted)]
        order = np.argsort(keys, kind="stable")
        return _split(order, keys[order], self.wanted)

    def _keys(self, entries: pa.Table) -> npt.NDArray[np.int64] | None:
        """One number an entry that orders it as Spark orders its partition; ``None`` for an unpartitioned spec."""
        if not self.spec.fields:
            return None
        by_name = {field.name: position for position, field in enumerate(self.spec.fields)}
        by_id = sorted(range(len(self.spec.fields)), key=lambda position: self.spec.fields[position].field_id)
        positions = [by_name[name] for name in self.sort_by] or by_id
        types = self.old.metadata.info.partition_types(self.spec)
        keys: npt.NDArray[np.int64] = np.zeros(len(entries), dtype=np.int64)
        for position in positions:
            field_type = types[position]
            if field_type is None:
                continue
            values, known = decode_array(partition_values(entries, position), field_type)
            ranks = np.zeros(len(entries), dtype=np.int64)  # 0 is null, which Spark sorts first
            if known.any():
                ranks[known] = np.unique(values[known], return_inverse=True)[1].reshape(-1) + 1
            keys = keys * (ranks.max() + 1) + ranks
            keys = np.unique(keys, return_inverse=True)[1].reshape(-1).astype(np.int64)
        return keys

    def _rolled(self, group: Rows, entries: int) -> list[Rows]:
        """Splits a manifest where it would outgrow the target by a fifth; the writer looks every 250 rows."""
        bytes_per_entry = self.old.total("length") / entries
        rows = int(self.target * _ROLL_FACTOR / bytes_per_entry) + 1
        rows = -(-rows // _ROLL_CHECK_ROWS) * _ROLL_CHECK_ROWS
        return [group[start : start + rows] for start in range(0, len(group), rows)]


def _split(order: Rows, keys: npt.NDArray[np.int64], wanted: int) -> list[Rows]:
    """Spark's range partitioning: bounds where the running count passes equal steps, never within equal keys."""
    step = len(keys) / wanted
    goal, bounds = step, list[int]()
    for position, key in enumerate(keys.tolist(), start=1):
        if len(bounds) == wanted - 1:
            break
        if position >= goal and (not bounds or key > bounds[-1]):
            bounds.append(key)
            goal += step
    cuts = np.searchsorted(keys, np.array(bounds, dtype=np.int64), side="right")
    return np.split(order, cuts)
