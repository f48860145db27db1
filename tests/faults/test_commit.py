"""The commit's answer: refused, lost, wrong. Each fault strikes Iceberg's own commit of each action."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from tests.faults.conftest import Conclude, Make
from tests.faults.lake import METRICS, kinds
from tests.faults.operations import Commit, Seam, java_error

from planning_health.stages.rollback import rollback

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EACH = pytest.mark.parametrize("action", ["set_properties", "rewrite_manifests", "trim_statistics"])
REWRITING = pytest.mark.parametrize("action", ["rewrite_manifests", "trim_statistics"])


@EACH
def test_the_catalog_refuses_the_commit(
    action: str, spark: SparkSession, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)
    properties = dict(table.iceberg().properties)

    def refuse(_: Commit) -> None:
        raise java_error(spark, "ForbiddenException", "not allowed to commit")

    seam.at(refuse)
    says = table.act()
    seam.heal()
    assert says["state"] == "failed"
    assert "not allowed to commit" in says["reason"]
    table.check_rows()
    table.check_truth(says, properties)
    assert dict(table.iceberg().properties) == properties
    conclude(table, says["state"])


@EACH
def test_the_answer_is_lost_and_the_commit_has_not_landed(
    action: str, spark: SparkSession, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)
    properties = dict(table.iceberg().properties)

    def lose(_: Commit) -> None:
        raise java_error(spark, "CommitStateUnknownException", "connection reset")

    seam.at(lose)
    says = table.act()
    seam.heal()
    assert says["state"] == "failed"
    table.check_rows()
    table.check_truth(says, properties)
    conclude(table, says["state"])


@EACH
@pytest.mark.parametrize("error", ["CommitStateUnknownException", "RuntimeException"])
def test_the_answer_is_lost_and_the_commit_has_landed(
    action: str, error: str, spark: SparkSession, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)

    def land_and_lose(commit: Commit) -> None:
        commit()
        raise java_error(spark, error, "connection reset")

    seam.at(land_and_lose)
    says = table.act()
    seam.heal()
    assert says["state"] == "done", says["reason"]
    table.check_rows()
    table.check_truth(says, {})
    conclude(table, says["state"])


def test_properties_that_were_set_are_answered_with_a_conflict(
    spark: SparkSession, make: Make, seam: Seam, conclude: Conclude
) -> None:
    """Iceberg's client sets them again by itself."""
    table = make("set_properties")

    def land_and_deny(commit: Commit) -> None:
        commit()
        raise java_error(spark, "CommitFailedException", "somebody else was first")

    seam.at(land_and_deny)
    says = table.act()
    seam.heal()
    assert says["state"] == "done", says["reason"]
    table.check_rows()
    table.check_truth(says, {})
    conclude(table, says["state"])


@REWRITING
@pytest.mark.parametrize("error", ["ServiceUnavailableException", "CommitFailedException"])
def test_a_commit_that_landed_is_answered_as_if_it_had_not(
    action: str, error: str, spark: SparkSession, make: Make, seam: Seam, conclude: Conclude
) -> None:
    """apache/iceberg#12792: Iceberg's client believes the answer and removes the manifest list that it committed."""
    table = make(action)
    before = table.iceberg().current_snapshot()
    assert before is not None

    def land_and_deny(commit: Commit) -> None:
        commit()
        raise java_error(spark, error, "try again later")

    seam.at(land_and_deny)
    says = table.act()
    seam.heal()
    assert says["state"] in {"verification_failed", "failed"}
    assert re.search(r"snap-.*\.avro cannot be read", says["reason"])
    again = table.act()
    assert (again["state"], again["rollback"]) == ("failed", says["rollback"])
    assert table.iceberg().current_snapshot() != before
    assert says["rollback"].endswith(f"snapshot_id => {before.snapshot_id})")
    assert rollback(table.settings, table.run, table.name, spark).status == "ok"
    table.check_rows(with_spark=True)
    lost = table.lost_files()
    assert kinds(path.name for path in lost) == "manifest list"
    table.forget_snapshots()
    conclude(table, says["state"])


@pytest.mark.parametrize("action", ["all"])
def test_the_second_of_two_commits_is_refused(
    action: str, spark: SparkSession, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)
    commits: list[int] = []

    def refuse_the_second(commit: Commit) -> None:
        commits.append(1)
        if len(commits) == 2:
            raise java_error(spark, "ForbiddenException", "not allowed to commit")
        commit()

    seam.at(refuse_the_second, times=9)
    says = table.act()
    seam.heal()
    assert says["state"] == "failed"
    assert table.iceberg().properties[METRICS] == "none"
    assert says["undo"]
    table.check_rows()
    table.check_truth(says, {})
    conclude(table, says["state"])


@pytest.mark.parametrize("action", ["all"])
def test_a_run_of_which_one_commit_landed_is_undone(
    action: str, spark: SparkSession, make: Make, seam: Seam, conclude: Conclude
) -> None:
    table = make(action)
    properties = dict(table.iceberg().properties)

    def refuse(_: Commit) -> None:
        raise java_error(spark, "ForbiddenException", "not allowed to commit")

    seam.after(lambda: seam.at(refuse))
    says = table.act()
    seam.heal()
    assert says["state"] == "failed"
    undone = rollback(table.settings, table.run, table.name, spark)
    assert undone.status == "ok", undone.reason
    assert dict(table.iceberg().properties) == properties
    table.check_rows()
    conclude(table, says["state"])
