"""The lesson's cost formulas, recomputed from its code."""

from __future__ import annotations

import pytest
from tests.planning.pictures import Manifest, picture
from tests.planning.test_scan import DAYS, SCHEMA, days

from planning_health.planning.cost_model import LESSON, CostModel, cost_document, cost_sentence, measured_costs


@pytest.mark.parametrize(
    ("files", "listing", "iceberg", "ratio"),
    [(1_000, 0.1, 0.242, 0.4), (100_000, 10.0, 0.4, 25.0), (10_000_000, 1000.0, 16.24, 61.6)],
)
def test_the_lessons_table(files: int, listing: float, iceberg: float, ratio: float) -> None:
    assert LESSON.listing_seconds(files) == pytest.approx(listing)
    assert LESSON.iceberg_seconds(files) == pytest.approx(iceberg, rel=0.01)
    assert LESSON.ratio(files) == pytest.approx(ratio, abs=0.05)


def test_the_ratio_is_bounded_and_breaks_even_near_2439_files() -> None:
    assert LESSON.ratio(10**12) == pytest.approx(62.5, rel=1e-3)
    assert LESSON.break_even_files() == pytest.approx(2439, abs=1)
    assert CostModel(files_per_partition=500).break_even_files() is None


def test_measured_constants_stand_beside_the_lessons() -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2)), Manifest(days(1))])
    costs = measured_costs(metadata)
    assert costs is not None
    assert (costs.read_ms, costs.decode_ms, costs.entries_per_manifest) == (2.0, 1.0, 1.5)
    assert costs.files_per_partition == 1.5
    assert costs.planning_seconds(2) == pytest.approx(0.006)
    document = cost_document(metadata, 0.5)
    assert document["lesson"]["latency_ms"] == 80
    assert document["measured"]["latency_ms"] == 3
    assert "3.0 ms" in cost_sentence(document)


def test_a_table_without_manifests_has_no_measured_constants() -> None:
    assert "measured" not in cost_document(picture(SCHEMA, [DAYS], []), None)
