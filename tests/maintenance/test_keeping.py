"""What the next append makes of a layout, and the size with which it leaves the layout alone."""

from __future__ import annotations

from planning_health.maintenance.keeping import what_keeps
from planning_health.maintenance.next_append import predict_next_append
from planning_health.maintenance.prediction import TARGET_SIZE_PROPERTY
from planning_health.settings import Query

from .pictures import ENTRY_BYTES, HEADER_BYTES, picture

LENGTH = HEADER_BYTES + ENTRY_BYTES
CLUSTERED = [[[day]] for day in range(12)]
ONE_DAY = [Query(name="one_day", where="d = DATE'1970-01-04'")]


def test_a_layout_that_the_next_append_undoes_is_kept_by_a_size_that_joins_no_neighbours() -> None:
    metadata = picture(CLUSTERED, properties={TARGET_SIZE_PROPERTY: str(12 * LENGTH)})
    found = what_keeps(metadata, ONE_DAY)
    assert found.manifests == (12, 1)
    assert found.read_bytes[0] == LENGTH
    assert found.is_dearer
    assert found.keeping_bytes is not None
    assert LENGTH <= found.keeping_bytes < 2 * LENGTH
    assert predict_next_append(metadata, found.keeping_bytes) is metadata


def test_a_layout_that_the_next_append_leaves_alone_needs_no_other_size() -> None:
    found = what_keeps(picture(CLUSTERED, properties={"commit.manifest-merge.enabled": "false"}), ONE_DAY)
    assert (found.merges, found.is_dearer, found.keeping_bytes) == (False, False, found.target_bytes)


def test_no_size_keeps_manifests_of_which_one_is_larger_than_two_others_together() -> None:
    manifests = [[[1]], [[2]], [[3]], [[4]], [[day] for day in range(200)]]
    found = what_keeps(picture(manifests, properties={TARGET_SIZE_PROPERTY: str(2 * LENGTH)}), ONE_DAY)
    assert found.merges
    assert found.keeping_bytes is None


def test_an_empty_table_has_nothing_to_keep() -> None:
    assert not what_keeps(picture([]), []).merges
