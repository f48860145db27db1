"""Predicts what the next append does to a layout: Iceberg's merge-append joins small neighbours.

The rule is that of Iceberg's ``ManifestMergeManager``: manifests of one spec are packed in their order, from the end,
into bins of the target size, and each bin of two or more is merged. Only the bin that holds the commit's own manifest
waits until it has ``commit.manifest.min-count-to-merge`` members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from planning_health.health.data_files import positive_property
from planning_health.health.properties import MERGE_ENABLED
from planning_health.maintenance.predicted_state import OldManifests, Replacement, predicted_state
from planning_health.maintenance.prediction import target_size
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.model import DATA, DELETES

MIN_COUNT: Final = "commit.manifest.min-count-to-merge"
_DEFAULT_MIN_COUNT: Final = 100


def predict_next_append(metadata: PlanningMetadata, target: int | None = None) -> PlanningMetadata:
    """The layout after an append of the current spec, without the append's own small manifest.

    Args:
        metadata: the measured or predicted snapshot.
        target: the target size of manifests that will hold then; the table's own by default.
    """
    properties = metadata.info.properties
    if properties.get(MERGE_ENABLED, "true").lower() == "false":
        return metadata
    size = target or target_size(properties)
    least = positive_property(properties, MIN_COUNT, _DEFAULT_MIN_COUNT)
    replacements = [
        replacement
        for content, spec_id, group in merge_groups(metadata.manifests)
        if (replacement := _merge(metadata, content, spec_id, group, size, least)) is not None
    ]
    return predicted_state(metadata, replacements) if replacements else metadata


def merge_groups(manifests: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
    """Content, spec and rows of the manifests that may be merged with each other: those with live entries, in order."""
    live = manifests.filter(pc.greater(pc.add(manifests["entries_added"], manifests["entries_existing"]), 0))
    for content in (DATA, DELETES):
        for spec_id in sorted(set(live["partition_spec_id"].to_pylist()), reverse=True):
            mine = pc.and_(pc.equal(live["content"], content), pc.equal(live["partition_spec_id"], spec_id))
            group = live.filter(mine)
            if len(group):
                yield content, spec_id, group


def _merge(
    metadata: PlanningMetadata, content: int, spec_id: int, group: pa.Table, target: int, min_count: int
) -> Replacement | None:
    bins = [members for members in _merged_bins(metadata, content, spec_id, group, target, min_count) if members]
    if not bins:
        return None
    old = OldManifests(
        metadata, metadata.info.specs[spec_id], content, group.take(pa.array([row for rows in bins for row in rows]))
    )
    entries = old.live_entries()
    ordinals = group["ordinal"].to_numpy()
    manifest_of_entry = entries["manifest_ordinal"].to_numpy()
    return Replacement(old, entries, [np.flatnonzero(np.isin(manifest_of_entry, ordinals[rows])) for rows in bins])


def _merged_bins(
    metadata: PlanningMetadata, content: int, spec_id: int, group: pa.Table, target: int, min_count: int
) -> Iterator[list[int]]:
    """The rows of the group that are merged with each other.

    The commit's own manifest stands before those of the current spec, and is taken as small as the smallest of them.
    An append writes no delete manifest, so that the first one of the list takes its part.
    """
    lengths = group["length"].to_pylist()
    own = content == DATA and spec_id == metadata.info.default_spec_id
    if own:
        lengths = [min(lengths), *lengths]
    waits = own or (content == DELETES and group["ordinal"][0].as_py() == _first_delete_manifest(metadata))
    for members in _bins(lengths, target):
        if len(members) > 1 and not (waits and members[0] == 0 and len(members) < min_count):
            yield [row - own for row in members if row >= own]


def _first_delete_manifest(metadata: PlanningMetadata) -> int:
    deletes = metadata.manifests.filter(pc.equal(metadata.manifests["content"], DELETES))
    return int(deletes["ordinal"][0].as_py())


def _bins(lengths: list[int], target: int) -> Iterator[list[int]]:
    """Rows packed from the end: a bin takes its neighbour as long as the target is not passed."""
    members: list[int] = []
    size = 0
    for row in reversed(range(len(lengths))):
        if members and size + lengths[row] > target:
            yield members[::-1]
            members, size = [], 0
        members.append(row)
        size += lengths[row]
    if members:
        yield members[::-1]
