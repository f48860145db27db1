"""Delete files that apply to nothing any more, and yet are read by each planning.

A delete file counts as dangling only where that is certain. The rules are those of delete matching in scan planning:
a position delete applies to live data of the same or an older sequence number, an equality delete to strictly older
data, both in the same partition of the same spec; an equality delete of an unpartitioned spec applies to the whole
table; a deletion vector, or a position delete whose file is known, applies to that file alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.transforms import VoidTransform

from planning_health.health.columns import Ints, Mask
from planning_health.health.partition_fields import fields_of, partition_groups, values_by_field
from planning_health.health.picture import Picture
from planning_health.metadata.model import DELETE_FILE_PATH_ID, EQUALITY_DELETES, POSITION_DELETES

_NEVER: Final = np.iinfo(np.int64).max


def dangling_deletes(picture: Picture) -> Mask:
    """Which entries of ``delete_files`` are live and certainly apply to no live data file."""
    deletes = picture.deletes
    equality = deletes.content == EQUALITY_DELETES
    in_reach = _oldest_data_of_partition(picture)
    unpartitioned = np.isin(deletes.spec_id, list(_unpartitioned_specs(picture)))
    everywhere = picture.data.sequence[picture.data.live].min(initial=_NEVER)
    in_reach = np.where(equality & unpartitioned, everywhere, in_reach)
    dangling = np.where(equality, deletes.sequence <= in_reach, deletes.sequence < in_reach)
    return (dangling | _referenced_file_gone(picture)) & deletes.live & (deletes.sequence >= 0)


def _oldest_data_of_partition(picture: Picture) -> Ints:
    """For each delete file the smallest sequence number of its partition's live data (an unknown one is -1)."""
    deletes, data = picture.deletes, picture.data
    oldest = np.full(len(deletes.sequence), _NEVER)
    for spec_id in np.unique(deletes.spec_id[deletes.live]).tolist():
        delete_rows = np.flatnonzero(deletes.spec_id == spec_id)
        data_rows = np.flatnonzero((data.spec_id == spec_id) & data.live)
        spec = picture.info.specs.get(spec_id)
        if spec is None:
            oldest[delete_rows] = -1  # unknown partitions: nothing is certain
            continue
        partitions = pa.concat_arrays(
            [
                picture.data_partitions.take(pa.array(data_rows)),
                picture.delete_partitions.take(pa.array(delete_rows)),
            ]
        )
        keys = fields_of(picture.info, spec)
        groups = partition_groups(values_by_field(keys, partitions) if keys else [], len(partitions))
        by_group = np.full(int(groups.max(initial=0)) + 1, _NEVER)
        np.minimum.at(by_group, groups[: len(data_rows)], data.sequence[data_rows])
        oldest[delete_rows] = by_group[groups[len(data_rows) :]]
    return oldest


def _unpartitioned_specs(picture: Picture) -> set[int]:
    return {
        spec.spec_id
        for spec in picture.info.specs.values()
        if all(isinstance(field.transform, VoidTransform) for field in spec.fields)
    }


def _referenced_file_gone(picture: Picture) -> Mask:
    """Position deletes and deletion vectors of one known file that is not live, or is newer than the delete."""
    table = picture.metadata.delete_files
    lower, upper = (table[f"{bound}_bound.{DELETE_FILE_PATH_ID}"] for bound in ("lower", "upper"))
    scoped = pc.if_else(pc.fill_null(pc.equal(lower, upper), False), lower, None).cast(pa.string(), safe=False)
    target = pc.coalesce(table["referenced_data_file"], scoped)
    live = np.flatnonzero(picture.data.live)
    paths = picture.metadata.data_files["file_path"].take(pa.array(live))
    found = pc.index_in(target, value_set=paths.combine_chunks()).to_numpy(zero_copy_only=False)
    known = np.asarray(target.is_valid().to_numpy(), dtype=np.bool_)
    position = picture.deletes.content == POSITION_DELETES
    gone = known & np.isnan(found.astype(np.float64))
    there = np.flatnonzero(known & ~gone)
    newer = np.zeros(len(known), dtype=np.bool_)
    data_sequence = picture.data.sequence[live][found[there].astype(np.int64)]
    newer[there] = data_sequence > picture.deletes.sequence[there]
    scoped_away: Mask = position & (gone | newer)
    return scoped_away
