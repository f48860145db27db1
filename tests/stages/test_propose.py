"""What nobody asked for is proposed only where a finding asks for it; the first proposal answers the worst finding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import parse_transform
from tests.maintenance.pictures import picture

from planning_health.health.analysis import analyse
from planning_health.health.thresholds import resolve_thresholds
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import PlanningMetadata
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages import table_stage
from planning_health.stages.propose import propose

WIDE = [[[day * 5] for day in range(20)] for _ in range(6)]
"""Six manifests, of which each covers all the days."""

HALVES = [[[day] for day in range(start, start + 10)] for start in (0, 4)]
"""Two manifests that overlap: one would be cheaper, and nobody would notice."""


def proposed(
    home: Path,
    metadata: PlanningMetadata,
    request: MaintenanceRequest | None = None,
    *,
    diagnosed: bool = True,
    queries: Sequence[str] = (),
    **health: Any,
) -> dict[str, Any]:
    """The proposal's data for a table that was measured and diagnosed."""
    settings = SettingsDocument.model_validate(
        {
            "home": str(home),
            "catalogs": {"lake": {"properties": {"type": "rest"}}},
            "tables": [{"match": "*", "queries": [{"name": where, "where": where} for where in queries]}],
        }
    )
    folder, table = RunFolder(settings.home, "cli", "r"), metadata.info.name
    folder.write_result("measurement", table=table, snapshot_id=metadata.info.snapshot_id)
    if diagnosed:
        folder.write_result("health", table=table, data=analyse(metadata, resolve_thresholds(None)) | health)
    with mock.patch.object(table_stage, "load", return_value=metadata):
        assert propose(settings, folder, table, request).status == "ok"
    data: dict[str, Any] = folder.require_result("proposal", table).data
    return data


def test_a_rewrite_that_answers_a_finding_is_proposed_unasked(tmp_path: Path) -> None:
    data = proposed(tmp_path, picture(WIDE))
    assert data["proposals"][0]["action"] == "rewrite_manifests"
    assert "wide_manifests:0.d_day" in data["proposals"][0]["answers"]


SITE_AND_DAYS = PartitionSpec(
    PartitionField(3, 1000, parse_transform("identity"), "Site"),
    PartitionField(2, 1001, parse_transform("day"), "d_day"),
    spec_id=0,
)


@pytest.mark.parametrize(
    ("query", "sort_by"), [("d = DATE'2022-01-20'", ["d_day", "Site"]), ("Site = 'site 3'", []), ("", [])]
)
def test_an_unasked_rewrite_is_sorted_as_its_finding_says_only_where_the_queries_gain(
    tmp_path: Path, query: str, sort_by: list[str]
) -> None:
    """A finding on the second field says "sorted by it if queries filter by it more": the prediction decides that."""
    manifests = [[(f"site {n % 30}", 19_000 + (n * 7 + m) % 90) for n in range(60)] for m in range(12)]
    metadata = picture(manifests, spec=SITE_AND_DAYS, properties={"commit.manifest.target-size-bytes": "16000"})
    data = proposed(tmp_path, metadata, queries=[query] if query else [])
    (rewrite,) = [item for item in data["proposals"] if item["id"] == "rewrite_manifests_spec_0"]
    assert "wide_manifests:0.d_day" in rewrite["answers"]
    assert rewrite["sort_by"] == rewrite["params"]["sort_by"] == sort_by
    assert ("sort_by => array('d_day', 'Site')" in rewrite["commands"][0]) == bool(sort_by)
    assert ("in the spec's own order, sorted by d_day, Site" in rewrite["why"]) == bool(sort_by)


def test_a_request_without_an_order_is_proposed_in_the_specs_own(tmp_path: Path) -> None:
    manifests = [[(f"site {n % 30}", 19_000 + (n * 7 + m) % 90) for n in range(60)] for m in range(12)]
    metadata = picture(manifests, spec=SITE_AND_DAYS, properties={"commit.manifest.target-size-bytes": "16000"})
    data = proposed(tmp_path, metadata, MaintenanceRequest(), queries=["d = DATE'2022-01-20'"])
    assert data["proposals"][0]["sort_by"] == []


def test_a_table_without_a_finding_is_left_alone_unless_somebody_asks(tmp_path: Path) -> None:
    metadata = picture(HALVES)
    unasked = proposed(tmp_path, metadata)
    assert [item["action"] for item in unasked["proposals"]] == []
    assert unasked["no_op_reason"].startswith("no finding asks for it (spec 0: ")
    assert unasked["predicted"]["manifests_after"] == 2
    asked = proposed(tmp_path, metadata, MaintenanceRequest())
    assert [item["action"] for item in asked["proposals"]] == ["rewrite_manifests"]


def test_without_a_diagnosis_a_rewrite_that_pays_is_proposed(tmp_path: Path) -> None:
    assert [item["action"] for item in proposed(tmp_path, picture(HALVES), diagnosed=False)["proposals"]] == [
        "rewrite_manifests"
    ]


@pytest.mark.parametrize("rule", ["many_snapshots", "dangling_deletes"])
def test_the_answer_to_the_worst_finding_comes_first(tmp_path: Path, rule: str) -> None:
    metadata = picture(WIDE)
    findings = analyse(metadata, resolve_thresholds(None))["findings"]
    worst = {**findings[0], "id": rule, "title": rule, "level": "critical", "scope_key": ""}
    data = proposed(tmp_path, metadata, findings=[worst, *findings])
    assert data["proposals"][0]["answers"] == [rule]
    assert data["proposals"][1]["action"] == "rewrite_manifests"


@pytest.mark.parametrize(
    ("share", "queries", "told"),
    [(0.9, ["d = DATE'2022-01-20'"], True), (0.9, [], False), (0.2, ["d > DATE'2022-01-20'"], False)],
)
def test_statistics_below_the_finding_say_why_no_metrics_advice_is_proposed(
    tmp_path: Path, share: float, queries: list[str], told: bool
) -> None:
    values = {"statistics_bytes_per_file": 1564.0, "statistics_share": share}
    signals = [{"scope": "table", "scope_key": "", "signal": name, "value": value} for name, value in values.items()]
    text = proposed(tmp_path, picture(WIDE), queries=queries, signals=signals)["statistics_told"]
    assert (text is not None) == told
    assert text is None or (
        text.startswith(
            "Metrics advice is not proposed: statistics are 90% of the uncompressed metadata, but with 1,564 "
        )
        and "by default from 2,048" in text
    )
