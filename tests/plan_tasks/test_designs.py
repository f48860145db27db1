"""Four designs for one scan, side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planning_health.plan_tasks import PlanShape, compare_designs, plans_computed

SHAPE = PlanShape(
    table="db.tbl",
    snapshot_id=42,
    scan={"snapshot-id": 42},
    tasks=250,
    manifests=[f"s3://bucket/m{i}.avro" for i in range(4)],
    entries=[60, 60, 60, 70],
    bytes_per_task=1000,
)


def test_four_designs_of_a_copy_on_write_scan() -> None:
    inline, offset, cached, ranges = compare_designs(SHAPE, 100, 3)
    assert [design.requests for design in (inline, offset, cached, ranges)] == [1, 3, 3, 3]
    expected = plans_computed(3, 3).local_cache_expected
    assert [design.plans_computed for design in (inline, offset, cached, ranges)] == [1, 3, expected, 1]
    assert [design.manifests_opened for design in (inline, offset, ranges)] == [4, 12, 6]
    assert [design.entries_decoded for design in (inline, offset, ranges)] == [250, 750, 310]
    assert cached.manifests_opened == pytest.approx(4 * expected)
    assert inline.peak_response_bytes == 250_000
    assert all(100_000 < design.peak_response_bytes < 103_000 for design in (offset, cached, ranges))
    assert [design.server_bytes_held for design in (inline, offset, ranges)] == [0, 0, 0]
    assert cached.server_bytes_held == pytest.approx(250_000 * expected)
    assert "Avro cannot seek" in (ranges.note or "")


def test_delete_manifests_make_entry_ranges_fall_back_to_offsets() -> None:
    *_, cached, ranges = compare_designs(replace(SHAPE, delete_manifests=1, delete_entries=5), 100, 3)
    assert replace(ranges, design=cached.design, note=None) == cached
    assert cached.manifests_opened == pytest.approx(5 * cached.plans_computed)
    assert "fall back to offset tokens" in (ranges.note or "")


def test_a_plan_beyond_the_cache_limit_is_planned_for_every_request() -> None:
    cached = compare_designs(SHAPE, 100, 3, cache_bytes=249_999)[2]
    assert (cached.plans_computed, cached.server_bytes_held) == (3, 0)
    assert "exceeds the cache" in (cached.note or "")
    assert compare_designs(SHAPE, 100, 3, cache_bytes=250_000)[2].note is None


def test_an_empty_plan_costs_one_request_in_each_design() -> None:
    empty = replace(SHAPE, tasks=0, manifests=[], entries=[])
    for design in compare_designs(empty, 100, 3):
        assert (design.requests, design.manifests_opened, design.peak_response_bytes) == (1, 0, 0)


def test_a_plan_within_one_batch_needs_no_token_in_any_design() -> None:
    small = replace(SHAPE, tasks=50, manifests=SHAPE.manifests[:1], entries=[50])
    assert {design.peak_response_bytes for design in compare_designs(small, 100, 3)} == {50_000}
