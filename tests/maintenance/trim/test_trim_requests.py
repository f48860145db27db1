"""What a trim is asked by, when it is proposed, and what it refuses: without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.maintenance.pictures import picture

from planning_health.cli.maintain import _request
from planning_health.errors import InputError
from planning_health.maintenance.proposals import decide_specs, rewrite_proposal, trim_proposals
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata
from planning_health.reports.command_line import maintain_command
from planning_health.stages.forms import maintenance_request

NONE = {"write.metadata.metrics.default": "none"}
TRIM = MaintenanceRequest(actions=["trim_statistics"])
DAYS = [[[day] for day in range(6)] for _ in range(3)]


def command_line(**values: Any) -> MaintenanceRequest:
    fixed = {"rewrite": False, "trim": True, "target_manifest_bytes": None, "spec_id": None, "sort_by": []}
    return _request(values.pop("set_metrics", []), **(fixed | {"dry_run": True} | values))


def workload(metadata: PlanningMetadata) -> Workload:
    return Workload.of(metadata, [])


def test_the_command_line_and_the_form_ask_for_a_trim() -> None:
    assert command_line().actions == ["trim_statistics"]
    asked = command_line(set_metrics=["default=none", "column.id=full"], rewrite=True, spec_id=0)
    assert asked.actions == ["set_properties", "rewrite_manifests", "trim_statistics"]
    form = {"table": "lake.a.b", "actions": ["trim_statistics"], "spec_id": 1, "dry_run": False}
    assert maintenance_request(form)[1] == MaintenanceRequest(actions=["trim_statistics"], spec_id=1, dry_run=False)
    with pytest.raises(InputError, match="nothing was asked for"):
        command_line(trim=False)


def test_a_trim_is_proposed_with_its_effect_and_the_command_that_runs_it() -> None:
    metadata = picture(DAYS, properties=NONE)
    (decision,) = decide_specs(metadata, TRIM, workload(metadata))
    assert decision.trims
    assert decision.reason.startswith("100% of all statistics are more than the metrics properties say (spec 0: 3 → 1")
    proposal = rewrite_proposal(TRIM, decision, workload(metadata))
    assert (proposal["id"], proposal["action"]) == ("trim_statistics_spec_0", "trim_statistics")
    assert proposal["predicted"]["statistics_bytes_before"] == 180
    assert proposal["predicted"]["statistics_bytes_after"] == 0
    command = "planning-health maintain lake.sales.orders --trim --no-rewrite --spec-id 0 --apply"
    assert proposal["commands"] == [command]
    assert maintain_command("lake.sales.orders", proposal["params"]) == command
    assert "come back only by a rollback" in proposal["risk"]


def test_properties_that_are_asked_for_decide_what_is_trimmed() -> None:
    metadata = picture(DAYS)
    (kept,) = decide_specs(metadata, TRIM, workload(metadata))
    assert (kept.worthwhile, kept.reason) == (
        False,
        "spec 0: no entry carries more statistics than the metrics properties say",
    )
    asked = MaintenanceRequest(actions=["set_properties", "trim_statistics"], metrics_default="none")
    (decision,) = decide_specs(metadata, asked, workload(metadata))
    assert decision.trims
    properties_only = asked.model_copy(update={"actions": ["set_properties"]})
    (proposal,) = trim_proposals(metadata, properties_only, workload(metadata))
    assert proposal["params"]["actions"] == ["set_properties", "trim_statistics"]
    assert proposal["params"]["metrics_default"] == "none"


def test_where_nothing_is_to_trim_the_manifests_are_rewritten_if_that_is_asked_for_too() -> None:
    metadata = picture([[[day] for day in range(300)] for _ in range(4)])
    both = MaintenanceRequest(actions=["rewrite_manifests", "trim_statistics"])
    (decision,) = decide_specs(metadata, both, workload(metadata))
    assert decision.worthwhile
    assert not decision.trims
    assert decision.reason.startswith("spec 0: no entry carries more statistics")


def test_a_partition_value_that_cannot_be_read_is_refused() -> None:
    metadata = picture(DAYS, properties=NONE)
    files = metadata.data_files
    values = files["partition"].to_pylist()
    values[2] = [b"\x01"]
    column = files.schema.get_field_index("partition")
    damaged = files.set_column(column, files.schema.field(column), pa.array(values, files.schema.field(column).type))
    (decision,) = decide_specs(replace(metadata, data_files=damaged), TRIM, workload(metadata))
    assert decision.refused
    assert decision.reason == "cannot trim spec 0: a value of partition field 'd_day' cannot be read"
