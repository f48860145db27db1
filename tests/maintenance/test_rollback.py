"""A run that was killed is undone like one that ended: by its snapshots and the property values that it kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planning_health.identifiers import TableName
from planning_health.maintenance.action import Action
from planning_health.maintenance.properties import PROPERTY_CHANGES, PropertyChange, PropertyPlan, recorded_changes
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.rollback import CannotRollBackError, RollbackPlan, plan_rollback
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.stages import rollback as rollback_stage
from planning_health.stages.act import act
from planning_health.stages.rollback import rollback, tables_to_undo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

TABLE = TableName("lake", ("test_rollback",), "killed")


@pytest.mark.parametrize(
    ("kind", "data", "acted"),
    [
        ("measurement", {}, False),
        ("proposal", {"request": {"dry_run": True}}, False),
        ("proposal", {"request": {"dry_run": False}}, True),
        (PROPERTY_CHANGES, [], True),
        ("action", {}, True),
    ],
)
def test_a_run_may_have_acted_when_it_was_more_than_a_dry_run(
    tmp_path: Path, kind: str, data: Any, acted: bool
) -> None:
    run = RunFolder(str(tmp_path), "cli", "killed")
    run.write_result(kind, table=TABLE, data=data)
    assert tables_to_undo(run) == ([TABLE] if acted else [])


def test_a_failed_proposal_has_changed_nothing(tmp_path: Path) -> None:
    run = RunFolder(str(tmp_path), "cli", "failed")
    run.write_result("proposal", table=TABLE, status="failed", reason="no such column")
    assert tables_to_undo(run) == []


class FakeSnapshot:
    """A snapshot of a linear history 1, 2, 3, …, as Iceberg's Java API shows it."""

    def __init__(self, number: int, ours: bool) -> None:
        self._number, self._ours = number, ours

    def snapshotId(self) -> int:  # noqa: N802
        return self._number

    def parentId(self) -> int | None:  # noqa: N802
        return self._number - 1 or None

    def summary(self) -> dict[str, str]:
        return {"planning-health.run-id": "run", "planning-health.spec-id": str(self._number)} if self._ours else {}


class FakeTable:
    """A table of ``count`` snapshots, of which some are the run's."""

    def __init__(self, count: int, ours: set[int], properties: dict[str, str], first: int = 1) -> None:
        self._snapshots = {number: FakeSnapshot(number, number in ours) for number in range(first, count + 1)}
        self._properties = properties

    def properties(self) -> dict[str, str]:
        return self._properties

    def snapshot(self, number: int) -> FakeSnapshot | None:
        return self._snapshots.get(number)

    def currentSnapshot(self) -> FakeSnapshot:  # noqa: N802
        return self._snapshots[max(self._snapshots)]


CHANGE = PropertyChange("k", "old", "new")


def test_a_run_whose_snapshots_are_the_newest_goes_back_before_all_of_them_and_undoes_its_properties() -> None:
    plan = plan_rollback(FakeTable(4, {3, 4}, {"k": "new"}), "run", [CHANGE])
    assert (plan.snapshot_id, plan.properties) == (2, (PropertyChange("k", "new", "old"),))
    assert plan_rollback(FakeTable(4, {3, 4}, {"k": "old"}), "run", [CHANGE]).properties == ()
    assert plan_rollback(FakeTable(4, set(), {}), "run", []).snapshot_id is None


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (FakeTable(4, {3}, {"k": "new"}), "snapshot 4 was committed after the run's; going back would lose it"),
        (FakeTable(4, {2, 4}, {"k": "new"}), "others have committed between the run's own snapshots"),
        (FakeTable(4, {3, 4}, {"k": "new"}, first=3), "the snapshot before the run's has been expired"),
        (FakeTable(4, {3, 4}, {"k": "theirs"}), "property k is 'theirs'; the run had set 'new'"),
        (FakeTable(4, {3, 4}, {}), "property k is None; the run had set 'new'"),
    ],
)
def test_a_run_that_others_have_built_upon_is_not_undone_and_the_reason_is_told(table: FakeTable, reason: str) -> None:
    with pytest.raises(CannotRollBackError, match=reason):
        plan_rollback(table, "run", [CHANGE])


@pytest.mark.spark
def test_what_others_commit_while_a_run_is_undone_is_never_lost(
    spark: SparkSession, settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iceberg's own rollback would try again on top of the other commit, and lose it."""
    table = TableName("lake", ("test_rollback",), "meanwhile")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.test_rollback")
    spark.sql(
        f"CREATE TABLE {table.sql} (id BIGINT) USING iceberg TBLPROPERTIES ('commit.manifest-merge.enabled'='false')"
    )
    for number in range(4):
        spark.sql(f"INSERT INTO {table.sql} VALUES ({number})")
    run = RunFolder(settings.home, "cli", "meanwhile")
    actions = ["set_properties", "rewrite_manifests"]
    request = MaintenanceRequest(actions=actions, metrics_default="counts", dry_run=False)
    assert act(settings, run, table, request, spark).status == "ok"
    after = load_java_table(spark, table)
    ours, properties = after.currentSnapshot().snapshotId(), dict(after.properties())

    def plan_while_somebody_appends(java_table: Any, *arguments: Any) -> RollbackPlan:
        plan = plan_rollback(java_table, *arguments)
        spark.sql(f"INSERT INTO {table.sql} VALUES (4)")
        return plan

    with monkeypatch.context() as patch:
        patch.setattr(rollback_stage, "plan_rollback", plan_while_somebody_appends)
        refused = rollback(settings, run, table, spark)
    assert refused.status == "failed"
    assert "somebody has changed lake.test_rollback.meanwhile at this moment" in str(refused.reason)
    now = load_java_table(spark, table)
    assert now.currentSnapshot().parentId() == ours
    assert dict(now.properties()) == properties
    assert spark.table(table.sql).count() == 5
    again = rollback(settings, run, table, spark)
    assert "was committed after the run's; going back would lose it" in str(again.reason)


@pytest.mark.spark
def test_the_properties_of_a_run_that_was_killed_after_their_commit_are_set_back(
    spark: SparkSession, settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.test_rollback")
    spark.sql(f"CREATE TABLE {TABLE.sql} (id BIGINT) USING iceberg")
    before = dict(load_java_table(spark, TABLE).properties())
    request = MaintenanceRequest(actions=["set_properties"], metrics_default="counts", dry_run=False)
    commit = Action._commit_properties

    def commit_and_die(action: Action, plan: PropertyPlan) -> None:
        commit(action, plan)
        raise SystemExit

    run = RunFolder(settings.home, "cli", "killed")
    with monkeypatch.context() as patch:
        patch.setattr(Action, "_commit_properties", commit_and_die)
        with pytest.raises(SystemExit):
            act(settings, run, TABLE, request, spark)
    assert run.read_result("action", TABLE) is None
    assert load_java_table(spark, TABLE).properties()["write.metadata.metrics.default"] == "counts"
    assert tables_to_undo(run) == [TABLE]
    assert len(recorded_changes(run, TABLE)) == 1
    undone = rollback(settings, run, TABLE, spark)
    assert (undone.status, undone.headline) == ("ok", {"properties_set_back": 1})
    assert dict(load_java_table(spark, TABLE).properties()) == before
    assert act(settings, run, TABLE, request, spark).headline["properties_changed"] == 1
    assert rollback(settings, run, TABLE, spark).status == "ok"
    assert dict(load_java_table(spark, TABLE).properties()) == before
