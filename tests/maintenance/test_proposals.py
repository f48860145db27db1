"""What is proposed, what is left alone and why; commands are exact and quoted."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import parse_transform
from tests.maintenance.pictures import DAYS_AND_SITE, picture

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.maintenance import commands
from planning_health.maintenance.proposals import SpecDecision, decide_specs, rewrite_proposal
from planning_health.maintenance.recommendations import recommendations
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata
from planning_health.settings import Query

WIDE = [[[day] for day in range(20)] for _ in range(6)]
CLUSTERED = [[[day] for day in range(start, start + 5)] for start in range(0, 20, 5)]
REQUEST = MaintenanceRequest()
JANUARY_2 = Query(name="one day", where="d = DATE'1970-01-03'")


def decide(metadata: PlanningMetadata, request: MaintenanceRequest = REQUEST, *queries: Query) -> list[SpecDecision]:
    return decide_specs(metadata, request, Workload.of(metadata, queries))


def test_a_wide_table_is_to_be_rewritten() -> None:
    (decision,) = decide(picture(WIDE))
    assert decision.worthwhile
    proposal = rewrite_proposal(REQUEST, decision, Workload.of(decision.base, [JANUARY_2]))
    assert proposal["commands"] == [
        "CALL `lake`.system.rewrite_manifests(table => '`lake`.`sales`.`orders`', use_caching => false, spec_id => 0)"
    ]
    assert proposal["undo"] == [
        "CALL `lake`.system.rollback_to_snapshot(table => '`lake`.`sales`.`orders`', snapshot_id => 11)"
    ]
    assert proposal["predicted"]["overlap"] == [{"spec_id": 0, "field": "d_day", "mean_before": 6.0, "mean_after": 1.0}]
    (query,) = proposal["predicted"]["queries"]
    assert (query["name"], query["where"]) == ("one day", JANUARY_2.where)
    assert (query["manifests_before"], query["manifests_after"]) == (6, 1)
    assert query["metadata_bytes_before"] == 60_000
    assert 10_000 < query["metadata_bytes_after"] < 30_000
    assert "The next append" not in proposal["risk"]


def test_the_proposal_says_when_the_next_append_will_not_leave_the_layout() -> None:
    """Rewriting halves the headers, so that neighbours fit into the target together."""
    small = {"commit.manifest.target-size-bytes": "26000"}
    overlapping = [[[day] for day in range(5)] for _ in range(12)]
    metadata = picture(overlapping, properties=small)
    (decision,) = decide(metadata)
    proposal = rewrite_proposal(REQUEST, decision, Workload.of(metadata, []))
    assert proposal["predicted"]["manifests_after"] == 4
    assert proposal["after_next_append"]["manifests"] == 2
    assert "The next append will merge these 4 manifests into 2" in proposal["risk"]
    quiet = picture(overlapping, properties=small | {"commit.manifest-merge.enabled": "false"})
    proposal = rewrite_proposal(REQUEST, decide(quiet)[0], Workload.of(quiet, []))
    assert proposal["after_next_append"]["manifests"] == 4
    assert "next append" not in proposal["risk"]


@pytest.mark.parametrize("target", [320_000, 8 * 1024 * 1024])
def test_a_clustered_table_is_left_alone(target: int) -> None:
    """At the default target one manifest would take the place of four aligned ones: each lookup would read it all."""
    metadata = picture([[day for day in manifest for _ in range(600)] for manifest in CLUSTERED])
    request = MaintenanceRequest(actions=["set_properties", "rewrite_manifests"], target_manifest_bytes=target)
    (decision,) = decide(metadata, request)
    assert not decision.worthwhile
    assert "nothing would improve" in decision.reason


def test_a_single_manifest_and_an_empty_table_have_nothing_to_rewrite() -> None:
    (decision,) = decide(picture(WIDE[:1]))
    assert (decision.worthwhile, decision.reason) == (False, "spec 0 has 1 manifest(s): nothing to merge or split")
    assert decide(picture([])) == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"spec_id": 7}, "spec 7 does not exist; expected one of 0"),
        ({"sort_by": ["d"]}, r"sort field\(s\) 'd' are not partition fields of spec 0; it has 'd_day'"),
        ({"sort_by": ["d_day", "d_day"]}, "name a field twice"),
    ],
)
def test_a_request_that_does_not_fit_the_table_is_bad_input(wanted: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        decide(picture(WIDE), MaintenanceRequest.model_validate(wanted))


def test_a_partition_field_with_a_dot_cannot_be_sorted_by() -> None:
    spec = PartitionSpec(PartitionField(2, 1000, parse_transform("day"), "a.b"), spec_id=0)
    with pytest.raises(InputError, match="cannot sort by a partition field with a dot"):
        decide(picture(WIDE, spec=spec), MaintenanceRequest(sort_by=["a.b"]))
    assert decide(picture(WIDE, spec=spec))[0].worthwhile


@pytest.mark.parametrize(
    "fields",
    [
        {"actions": []},
        {"actions": ["drop_table"]},
        {"metrics_default": "none"},
        {"actions": ["set_properties"]},
        {"actions": ["set_properties"], "metrics_default": "none", "spec_id": 0},
        {"target_manifest_bytes": 5, "actions": ["set_properties"]},
        {"target_manifest_bytes": 2**31, "actions": ["set_properties"]},
        {"target_manifest_bytes": 10**30, "actions": ["set_properties"]},
        {"unknown": 1},
    ],
)
def test_contradicting_requests_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MaintenanceRequest.model_validate(fields)


def test_commands_quote_whatever_a_name_holds() -> None:
    table = TableName("lake", ("a b",), "it's `x`.y\\")
    assert commands.rewrite_manifests(table, 3, ["o'clock"]) == (
        "CALL `lake`.system.rewrite_manifests(table => '`lake`.`a b`.`it\\'s ``x``.y\\\\`', use_caching => false, "
        "spec_id => 3, sort_by => array('o\\'clock'))"
    )
    assert commands.property_changes(table, {"k'": "v'", "gone": None}) == [
        "ALTER TABLE `lake`.`a b`.`it's ``x``.y\\` SET TBLPROPERTIES ('k\\'' = 'v\\'')",
        "ALTER TABLE `lake`.`a b`.`it's ``x``.y\\` UNSET TBLPROPERTIES IF EXISTS ('gone')",
    ]


def test_each_cause_is_answered_by_its_own_procedure() -> None:
    findings = [
        {"id": name, "title": name}
        for name in ("small_files", "many_delete_files", "dangling_deletes", "many_snapshots", "wide_manifests:0.d_day")
    ]
    found = {item["action"]: item["commands"][0] for item in recommendations(picture(WIDE), findings)}
    table = "'`lake`.`sales`.`orders`'"
    assert found == {
        "recommend_rewrite_data_files": f"CALL `lake`.system.rewrite_data_files(table => {table})",
        "recommend_compact_deletes": f"CALL `lake`.system.rewrite_data_files(table => {table}, "
        "options => map('delete-file-threshold', '1'))",
        "recommend_remove_dangling_deletes": f"CALL `lake`.system.rewrite_position_delete_files(table => {table}, "
        "options => map('rewrite-all', 'true'))",
        "recommend_expire_snapshots": f"CALL `lake`.system.expire_snapshots(table => {table}, "
        "older_than => TIMESTAMP '2026-01-26 12:00:00Z', retain_last => 10)",
    }


def test_two_fields_weigh_the_same_in_the_decision() -> None:
    files = [[[day, site] for day in range(5) for site in "ab"] for _ in range(4)]
    (decision,) = decide(picture(files, spec=DAYS_AND_SITE))
    assert decision.worthwhile


def test_configured_queries_decide_by_what_they_open() -> None:
    """Aligned manifests: a lookup gains nothing by merging them, queries that read everything do."""
    metadata = picture([[[day]] * 3 for day in range(40)])
    everything = Query(name="all", where="id > 5")
    assert not decide(metadata, REQUEST)[0].worthwhile
    (decision,) = decide(metadata, REQUEST, everything)
    assert decision.worthwhile
    assert "planning cost of the queries" in decision.reason
    unreadable = Query(name="odd", where="no_such_column = 1")
    assert decide(metadata, REQUEST, unreadable)[0].reason == decide(metadata, REQUEST)[0].reason
