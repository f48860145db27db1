"""Layout advice: the manifest size and order whose predicted planning is the quickest for the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.maintenance.pictures import DAYS, DAYS_AND_SITE, SCHEMA, File, picture

from planning_health.advice.layout import LayoutAdvice, PlanningPrice, advise_layout
from planning_health.advice.observed import Observation, ObservedFilter, observe
from planning_health.maintenance.prediction import DEFAULT_TARGET_SIZE, predict_rewrite_manifests
from planning_health.metadata import PlanningMetadata
from planning_health.planning.predicates import parse_where
from planning_health.planning.scan import ScanPlanner

KB = 1024
PRICE = PlanningPrice(open_ms=0.5, decode_ms_per_mb=50.0, list_ms=0.01, threads=1)
SITES = [f"site-{number:02d}" for number in range(20)]


def scattered(properties: Mapping[str, str] | None = None) -> PlanningMetadata:
    """8,000 files of 100 days in 20 manifests, each of which has files of every day; 820 KB."""
    manifests: list[list[File]] = [[(19_000 + (n * 7 + m) % 100,) for n in range(400)] for m in range(20)]
    return picture(manifests, spec=DAYS, properties=properties)


def by_day_and_site() -> PlanningMetadata:
    manifests = [[(19_000 + (n + 3 * m) % 50, SITES[(n * 7 + m) % 20]) for n in range(400)] for m in range(10)]
    return picture(manifests, spec=DAYS_AND_SITE)


def filters(metadata: PlanningMetadata, wheres: Mapping[str, float]) -> Sequence[ObservedFilter]:
    name = metadata.info.name
    observed = [
        Observation("test", name.dotted, weight, filter=parse_where(where, SCHEMA).expression)
        for where, weight in wheres.items()
    ]
    return observe(name, SCHEMA, observed).filters


def advice(metadata: PlanningMetadata, wheres: Mapping[str, float], price: PlanningPrice = PRICE) -> LayoutAdvice:
    found = advise_layout(metadata, filters(metadata, wheres), price=price)
    assert found is not None
    return found


ONE_DAY = "d = DATE'2022-02-10'"
EVERYTHING = "id > 5"


def test_selective_queries_get_small_aligned_manifests() -> None:
    found = advice(scattered(), {ONE_DAY: 1.0})
    assert found.advised is not None
    assert found.advised.target_bytes == 64 * KB
    assert found.advised.opened < found.now.opened == 20
    assert found.advised.planning_ms < found.now.planning_ms
    assert found.properties == {"commit.manifest.target-size-bytes": "65536"}
    assert "opens 1.0 of them instead of 20.0" in found.why


def test_queries_that_read_everything_get_large_manifests() -> None:
    metadata = scattered({"commit.manifest.target-size-bytes": str(64 * KB)})
    found = advice(metadata, {EVERYTHING: 1.0}, replace(PRICE, open_ms=5.0))
    assert found.advised is not None
    assert found.advised.manifests == 1
    assert found.advised.target_bytes == DEFAULT_TARGET_SIZE
    assert found.properties == {"commit.manifest.target-size-bytes": str(DEFAULT_TARGET_SIZE)}


def test_weights_decide_between_the_two() -> None:
    price = replace(PRICE, open_ms=5.0)
    mostly_days, mostly_all = (
        advice(scattered(), {ONE_DAY: weight, EVERYTHING: 1.0}, price).candidates[0].manifests for weight in (50, 0.05)
    )
    assert mostly_days > mostly_all == 1


def test_expensive_opening_speaks_against_small_manifests() -> None:
    month = {"d >= DATE'2022-02-01' AND d < DATE'2022-03-01'": 1.0}
    cheap, dear = (
        advice(scattered(), month, replace(PRICE, open_ms=open_ms)).candidates[0].manifests for open_ms in (0.0, 30.0)
    )
    assert cheap > dear


def test_the_order_follows_the_field_that_queries_select_by() -> None:
    by_site = advice(by_day_and_site(), {"site = 'site-07'": 1.0})
    by_day = advice(by_day_and_site(), {"d = DATE'2022-01-20'": 1.0})
    assert by_site.advised is not None
    assert by_day.advised is not None
    assert by_site.advised.sort_by == ("Site", "d_day")
    assert by_day.advised.sort_by == ()
    assert any("sort_by => array('Site', 'd_day')" in line for line in by_site.commands(by_day_and_site()))


def test_a_good_layout_is_left_alone() -> None:
    metadata = predict_rewrite_manifests(scattered(), 0, 64 * KB).metadata
    found = advice(metadata, {ONE_DAY: 1.0})
    assert found.advised is None
    assert found.commands(metadata) == []
    assert "an observed scan plans in 3.5 ms with today's 15 manifests, and no layout is quicker" in found.why


CHEAP = replace(PRICE, open_ms=0.1, decode_ms_per_mb=7.7)


def test_the_default_is_good_enough_where_another_layout_saves_a_few_milliseconds() -> None:
    """Iceberg merges small manifests on each append: to stop that for a gain that nobody notices makes things worse."""
    found = advice(scattered(), {ONE_DAY: 1.0}, CHEAP)
    quickest = found.candidates[0]
    assert quickest.planning_ms < found.now.planning_ms / 5
    assert found.now.planning_ms == pytest.approx(8.36)
    assert quickest.target_bytes == 64 * KB
    assert (found.advised, found.properties) == (None, {})
    assert found.why == (
        "Iceberg's default manifest size is good enough: an observed scan plans in 8.4 ms with today's 20 manifests, "
        f"and the quickest layout would save {found.now.planning_ms - quickest.planning_ms:.1f} ms (15 manifests of up "
        "to 65,536 bytes); another size or order is advised from 10 ms and 5% of a scan on (whether a rewrite in this "
        "one pays: planning-health maintain)"
    )


def test_a_rewrite_that_pays_needs_no_property_where_the_default_is_nearly_as_quick() -> None:
    found = advice(scattered(), {ONE_DAY: 1.0}, replace(CHEAP, open_ms=3.0))
    assert found.advised is not None
    assert (found.advised.target_bytes, found.properties) == (DEFAULT_TARGET_SIZE, {})
    assert found.candidates[0].target_bytes < DEFAULT_TARGET_SIZE
    saved = found.advised.planning_ms - found.candidates[0].planning_ms
    assert 0 < saved < 10
    assert (
        f"that is good enough: the quickest layout (15 manifests of up to 65,536 bytes) would save only {saved:.1f}"
        in (found.why)
    )


@pytest.mark.parametrize(("decode_ms_per_mb", "merging_off"), [(1000.0, False), (15_000.0, True)])
def test_merging_is_switched_off_only_where_it_would_cost_notable_time(
    decode_ms_per_mb: float, merging_off: bool
) -> None:
    """The next append merges the four manifests of the rewrite into two, whatever that costs."""
    small = {"commit.manifest.target-size-bytes": "26000"}
    metadata = picture([[(19_000 + day,) for day in range(5)] for _ in range(12)], spec=DAYS, properties=small)
    price = replace(PRICE, open_ms=2.0, decode_ms_per_mb=decode_ms_per_mb)
    found = advise_layout(metadata, filters(metadata, {"d = DATE'2022-01-08'": 1.0}), price=price, targets=[26_000])
    assert found is not None
    assert found.advised is not None
    assert found.advised.next_append_ms > found.advised.planning_ms * 1.05
    assert found.advised.keeps != merging_off
    assert found.properties == ({"commit.manifest-merge.enabled": "false"} if merging_off else {})
    assert ("manifests are no longer merged by them" in found.why) == merging_off


def test_the_default_is_always_a_candidate_so_the_advice_is_never_slower() -> None:
    for wheres in ({ONE_DAY: 1.0}, {EVERYTHING: 1.0}, {ONE_DAY: 3.0, EVERYTHING: 1.0}):
        found = advice(scattered(), wheres)
        default = next(item for item in found.candidates if item.target_bytes == DEFAULT_TARGET_SIZE)
        best = found.advised or found.now
        assert best.planning_ms <= max(default.planning_ms * 1.05, default.planning_ms + 10)


def test_a_layout_that_appends_would_undo_comes_with_what_keeps_it() -> None:
    metadata = scattered({"commit.manifest.target-size-bytes": str(256 * KB)})
    found = advise_layout(metadata, filters(metadata, {ONE_DAY: 1.0}), price=PRICE, targets=[90 * KB])
    assert found is not None
    assert found.advised is not None
    kept = found.advised.next_append_ms - found.advised.planning_ms < 10
    assert found.advised.keeps == kept
    assert ("commit.manifest-merge.enabled" in found.properties) == (not kept)


def test_what_is_opened_is_priced_with_as_many_threads_as_read() -> None:
    metadata = scattered()
    opened = np.arange(20)
    alone = PRICE.planning_ms(metadata, opened)
    assert alone == pytest.approx(20 * 0.01 + 20 * (0.5 + 50 * 0.04))
    assert replace(PRICE, threads=4).planning_ms(metadata, opened) == pytest.approx(20 * 0.01 + 5 * (0.5 + 50 * 0.04))
    assert replace(PRICE, threads=64).planning_ms(metadata, opened) == pytest.approx(20 * 0.01 + 0.5 + 50 * 0.04)
    assert PRICE.planning_ms(metadata, opened[:0]) == pytest.approx(20 * 0.01)


def test_every_candidate_is_the_planned_prediction() -> None:
    metadata, wheres = scattered(), {ONE_DAY: 2.0, EVERYTHING: 1.0}
    for layout in advice(metadata, wheres).candidates[:3]:
        state = predict_rewrite_manifests(metadata, 0, layout.target_bytes).metadata
        planner = ScanPlanner(state)
        opened = [
            (w, len(planner.plan(f.expression).scanned_manifests))
            for f in filters(metadata, wheres)
            for w in [f.weight]
        ]
        assert layout.opened == pytest.approx(sum(w * n for w, n in opened) / 3)
        assert layout.manifests == len(state.manifests)


def test_without_filters_or_manifests_there_is_no_advice() -> None:
    assert advise_layout(scattered(), []) is None
    empty = picture([])
    assert advise_layout(empty, filters(empty, {ONE_DAY: 1.0})) is None
