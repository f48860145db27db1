"""The prediction follows Iceberg's rule: how many manifests, where they are cut, what they hold."""

from __future__ import annotations

import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.maintenance.pictures import DAYS_AND_SITE, ENTRY_BYTES, HEADER_BYTES, UNPARTITIONED, picture, raw

from planning_health.maintenance.layout import layout_of
from planning_health.maintenance.next_append import predict_next_append
from planning_health.maintenance.prediction import predict_rewrite_manifests, target_size


def wide(manifests: int, days: int = 20) -> list[list[list[int]]]:
    return [[[day] for day in range(days)] for _ in range(manifests)]


def days_of(metadata, ordinal: int) -> list[bytes | None]:  # type: ignore[no-untyped-def]
    files = metadata.data_files
    return [row[0] for row in files.filter(pc.equal(files["manifest_ordinal"], ordinal))["partition"].to_pylist()]


def test_as_many_manifests_as_the_old_size_over_the_target_rounded_up() -> None:
    metadata = picture(wide(4))
    total = 4 * (HEADER_BYTES + 20 * ENTRY_BYTES)
    for wanted in (1, 2, 3, 5):
        prediction = predict_rewrite_manifests(metadata, 0, -(-total // wanted))
        assert len(prediction.metadata.manifests) == wanted
        assert prediction.rewrites


def test_equal_partitions_never_part_and_the_overlap_falls_to_one() -> None:
    predicted = predict_rewrite_manifests(picture(wide(4)), 0, 10_000).metadata
    (overlap,) = layout_of(predicted).overlap
    assert (overlap.mean, overlap.worst) == (1.0, 1)
    first = [days_of(predicted, ordinal)[0] for ordinal in range(4)]
    assert first == [raw(0), raw(5), raw(10), raw(15)]


def test_fewer_values_than_manifests_wanted_give_one_manifest_a_value() -> None:
    predicted = predict_rewrite_manifests(picture([[[1], [2]]] * 6), 0, 4_000).metadata
    assert [set(days_of(predicted, ordinal)) for ordinal in range(2)] == [{raw(1)}, {raw(2)}]
    assert len(predicted.manifests) == 2


def test_nulls_come_first_and_are_in_the_summary() -> None:
    predicted = predict_rewrite_manifests(picture([[[None], [3]], [[1], [2]]]), 0, 8_300).metadata
    null_and_one, two_and_three = (row["partitions"][0] for row in predicted.manifests.to_pylist())
    assert (null_and_one["contains_null"], two_and_three["contains_null"]) == (True, False)
    assert (null_and_one["lower_bound"], null_and_one["upper_bound"]) == (raw(1), raw(1))
    assert (two_and_three["lower_bound"], two_and_three["upper_bound"]) == (raw(2), raw(3))


def test_deleted_entries_are_dropped_with_their_bytes() -> None:
    metadata = picture(wide(3), deleted=5)
    predicted = predict_rewrite_manifests(metadata, 0, 8 * 1024 * 1024).metadata
    assert len(predicted.data_files) == 45
    assert layout_of(predicted).deleted_entries == 0
    assert layout_of(predicted).statistics_bytes == 450
    assert layout_of(predicted).metadata_bytes < layout_of(metadata).metadata_bytes


def test_one_manifest_of_the_target_size_is_left_alone_by_iceberg() -> None:
    metadata = picture(wide(1))
    prediction = predict_rewrite_manifests(metadata, 0, 8 * 1024 * 1024)
    assert not prediction.rewrites
    assert prediction.metadata is metadata


def test_one_large_manifest_is_split() -> None:
    assert len(predict_rewrite_manifests(picture(wide(1)), 0, 2_600).metadata.manifests) == 4


def test_the_sort_order_decides_which_field_is_clustered() -> None:
    files = [[[day, site] for day in range(4) for site in "abcd"] for _ in range(4)]
    metadata = picture(files, spec=DAYS_AND_SITE)
    for sort_by, clustered, scattered in ((["Site"], "Site", "d_day"), (None, "d_day", "Site")):
        overlap = {
            item.field: item.mean
            for item in layout_of(predict_rewrite_manifests(metadata, 0, 10_000, sort_by).metadata).overlap
        }
        assert (overlap[clustered], overlap[scattered]) == (1.0, 4.0)


def test_unpartitioned_entries_are_dealt_out_evenly() -> None:
    predicted = predict_rewrite_manifests(picture([[[]] * 10] * 4, spec=UNPARTITIONED), 0, 12_000).metadata
    assert predicted.manifests["entries_existing"].to_pylist() == [14, 13, 13]


def test_a_manifest_that_outgrows_the_target_is_rolled_every_250_rows() -> None:
    predicted = predict_rewrite_manifests(picture([[[1]] * 400, [[1]] * 400]), 0, 30_000).metadata
    assert predicted.manifests["entries_existing"].to_pylist() == [500, 300]


def test_the_target_is_the_tables_own_or_icebergs_default() -> None:
    assert target_size({}) == 8 * 1024 * 1024
    assert target_size({"commit.manifest.target-size-bytes": "65536"}) == 65536


def test_the_next_append_merges_neighbours_that_fit_together_save_the_first_bin() -> None:
    """12 aligned manifests become 6 (measured on Iceberg 1.12); the bin of the append's own manifest waits."""
    metadata = picture([[[day]] for day in range(12)])
    length = HEADER_BYTES + ENTRY_BYTES
    assert len(predict_next_append(metadata, 2 * length).manifests) == 6
    assert len(predict_next_append(metadata, 13 * length).manifests) == 12
    assert len(predict_next_append(metadata, 12 * length).manifests) == 1
    assert predict_next_append(metadata, length) is metadata
    merged = predict_next_append(metadata, 4 * length)
    assert merged.manifests["entries_existing"].to_pylist()[:2] == [4, 4]
    assert sorted(merged.data_files["file_path"].to_pylist()) == sorted(metadata.data_files["file_path"].to_pylist())


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(-50, 50)), min_size=1, max_size=12), min_size=1, max_size=8),
    st.integers(2_000, 80_000),
)
def test_a_prediction_keeps_every_live_file_once_within_its_summary(days: list[list[int | None]], target: int) -> None:
    metadata = picture([[[day] for day in manifest] for manifest in days])
    predicted = predict_rewrite_manifests(metadata, 0, target).metadata
    assert sorted(predicted.data_files["file_path"].to_pylist()) == sorted(metadata.data_files["file_path"].to_pylist())
    assert predicted.manifests["ordinal"].to_pylist() == list(range(len(predicted.manifests)))
    (overlap,) = layout_of(predicted).overlap
    known = {day for manifest in days for day in manifest if day is not None}
    assert overlap.values == len(known)
    assert overlap.mean is None or overlap.mean >= 1
