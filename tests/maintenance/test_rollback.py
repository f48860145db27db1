"""A run that was killed is undone like one that ended: by its snapshots and the property values that it kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planning_health.identifiers import TableName
from planning_health.maintenance.action import Action
from planning_health.maintenance.properties import PROPERTY_CHANGES, PropertyPlan, recorded_changes
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
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
