"""Maintenance on real tables: what is predicted happens, nothing else changes, and failures are told as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from planning_health.identifiers import TableName
from planning_health.maintenance import action as action_module
from planning_health.maintenance import rewrite as rewrite_module
from planning_health.maintenance.java_table import RUN_ID_PROPERTY
from planning_health.maintenance.lease import lease
from planning_health.maintenance.next_append import predict_next_append
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.maintenance.verification import Check
from planning_health.metadata import SnapshotChoice, load
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.stages.act import act
from planning_health.stages.measure import measure
from planning_health.stages.propose import propose
from planning_health.stages.rollback import rollback
from planning_health.stages.verify import verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

NAMESPACE = "test_maintenance"
UNMERGED = "'commit.manifest-merge.enabled'='false'"
SMALL = UNMERGED + ", 'commit.manifest.target-size-bytes'='16384'"
MERGE_ON_READ = ", 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='file'"
REWRITE = MaintenanceRequest(dry_run=False)


@pytest.fixture(scope="module", autouse=True)
def _namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")


class Table:
    """A table under test, with what the tests ask of it."""

    def __init__(self, spark: SparkSession, settings: SettingsDocument, name: str) -> None:
        self.spark, self.settings = spark, settings
        self.name = TableName("lake", (NAMESPACE,), name)

    def sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self.spark.sql(statement.format(t=self.name.sql)).collect()
        return rows

    def java(self) -> Any:
        return load_java_table(self.spark, self.name)

    def rows(self, columns: str = "*") -> list[Any]:
        return sorted(self.sql(f"SELECT {columns} FROM {{t}}"), key=str)

    def snapshots(self) -> int:
        return self.sql("SELECT count(*) FROM {t}.snapshots")[0][0]  # type: ignore[no-any-return]

    def entries(self) -> set[tuple[Any, ...]]:
        """Sequence numbers, snapshot ids and all of the file's fields of the live entries, as Spark SQL sees them."""
        rows = self.sql(
            "SELECT snapshot_id, sequence_number, file_sequence_number, to_json(struct(data_file.*)) AS f "
            "FROM {t}.entries WHERE status < 2"
        )
        return {tuple(row) for row in rows}

    def append(self, commits: int, days: int = 15, rows: int = 30) -> None:
        """Each commit writes to many days, so that the manifests overlap."""
        first = self.sql("SELECT count(*) FROM {t}")[0][0]
        names = [f"`{field.name()}`" for field in self.java().schema().columns()]
        values = (
            "id",
            f"date_add(DATE'2024-01-01', CAST(id % {days} AS INT))",
            "sha1(CAST(id AS STRING))",
        )
        for commit in range(commits):
            frame = self.spark.range(first + commit * rows, first + (commit + 1) * rows, 1, 1).selectExpr(
                *(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
            )
            writer = frame.writeTo(self.name.sql).option("distribution-mode", "none")
            writer.option("fanout-enabled", "true").append()

    def run(self, run_id: str | None = None) -> RunFolder:
        return RunFolder(self.settings.home, "table_maintenance", run_id or f"manual__{uuid4()}")

    def propose(self, request: MaintenanceRequest, run: RunFolder) -> dict[str, Any]:
        measure(self.settings, run, [self.name], spark=self.spark)
        envelope = propose(self.settings, run, self.name, request)
        assert envelope.status == "ok", envelope.reason
        data: dict[str, Any] = run.require_result("proposal", self.name).data
        return data

    def act(self, request: MaintenanceRequest = REWRITE, run: RunFolder | None = None) -> dict[str, Any]:
        run = run or self.run()
        envelope = act(self.settings, run, self.name, request, self.spark)
        data: dict[str, Any] = run.require_result("action", self.name).data
        assert (envelope.status == "ok") == (data["state"] in {"done", "planned", "no_op"}), data
        return data | {"reason": envelope.reason}


Make = Callable[..., Table]


@pytest.fixture
def make(spark: SparkSession, settings: SettingsDocument) -> Make:
    def create(
        name: str,
        partitioned_by: str = "days(d)",
        properties: str = SMALL,
        version: int = 2,
        columns: str = "id BIGINT, d DATE, s STRING",
    ) -> Table:
        table = Table(spark, settings, name)
        partitioning = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
        table.sql(
            f"CREATE TABLE {{t}} ({columns}) USING iceberg {partitioning} "
            f"TBLPROPERTIES ('format-version'='{version}', {properties})"
        )
        return table

    return create


def steps(result: dict[str, Any]) -> dict[str, str]:
    return {step["step"]: step["status"] for step in result["steps"]}


def test_wide_manifests_are_repaired_as_predicted_and_nothing_else_changes(make: Make) -> None:
    table = make("wide")
    table.append(8, days=30, rows=60)
    rows, entries = table.rows(), table.entries()
    run = table.run()
    proposal = table.propose(REWRITE, run)
    (proposed,) = proposal["proposals"]
    assert proposed["commands"] == [
        "CALL `lake`.system.rewrite_manifests(table => '`lake`.`test_maintenance`.`wide`', use_caching => false, "
        "spec_id => 0)"
    ]
    result = table.act(run=run)
    assert result["state"] == "done", result
    assert list(steps(result).items()) == [
        ("guard", "ok"),
        ("set_properties", "skipped"),
        ("rewrite_manifests", "ok"),
        ("verify", "ok"),
        ("measure_again", "ok"),
    ]
    assert result["verification"]["success"]
    predicted, actual = result["predicted"], result["actual"]
    assert predicted == proposed["predicted"]
    assert predicted["manifests_before"] == 8
    assert abs(predicted["manifests_after"] - actual["manifests_after"]) <= 1
    assert predicted["metadata_bytes_after"] == pytest.approx(actual["metadata_bytes_after"], rel=0.1)
    (overlap,), (expected,) = actual["overlap"], predicted["overlap"]
    assert overlap["mean_before"] == 8
    assert overlap["mean_after"] == pytest.approx(expected["mean_after"], rel=0.05)
    assert overlap["mean_after"] < 2
    assert actual["statistics_bytes_after"] == actual["statistics_bytes_before"] == predicted["statistics_bytes_after"]
    assert (table.rows(), table.entries()) == (rows, entries)
    summary = table.java().currentSnapshot().summary()
    assert summary.get(RUN_ID_PROPERTY) == run.run_id


def test_a_repeated_run_and_a_second_run_commit_nothing_more(make: Make) -> None:
    table = make("repeated")
    table.append(6)
    run = table.run("scheduled__2026-01-01T00:00:00+00:00")
    first = table.act(run=run)
    snapshots = table.snapshots()
    again = table.act(run=run)
    assert again["state"] == first["state"] == "done"
    assert again["snapshots"] == first["snapshots"]
    assert again["actual"] == first["actual"]
    assert again["verification"]["success"]
    other = table.act()
    assert (other["state"], table.snapshots()) == ("no_op", snapshots)
    assert "nothing would improve" in other["reason"]


def test_each_spec_is_rewritten_in_a_commit_of_its_own_and_one_rollback_undoes_both(make: Make) -> None:
    table = make("specs", "months(d)", UNMERGED)
    table.append(5)
    table.sql("ALTER TABLE {t} REPLACE PARTITION FIELD months(d) WITH days(d)")
    table.append(5)
    rows, entries, before = table.rows(), table.entries(), table.java().currentSnapshot().snapshotId()
    result = table.act()
    assert result["state"] == "done", result
    assert set(result["snapshots"]) == {"0", "1"}
    assert result["before"]["manifests_by_spec"] == {"0": 5, "1": 5}
    assert result["after"]["manifests_by_spec"] == {"0": 1, "1": 1}
    assert result["predicted"]["manifests_after"] == 2
    assert (table.rows(), table.entries()) == (rows, entries)
    assert result["rollback"] == (
        "CALL `lake`.system.rollback_to_snapshot(table => '`lake`.`test_maintenance`.`specs`', "
        f"snapshot_id => {before})"
    )
    table.sql(result["rollback"].replace("{", "{{"))
    assert table.java().currentSnapshot().snapshotId() == before
    assert table.entries() == entries


def test_sorting_by_a_later_partition_field_clusters_by_it(make: Make) -> None:
    table = make("sorted", "days(d), bucket(4, id)")
    table.append(6, days=8, rows=48)
    request = REWRITE.model_copy(update={"sort_by": ["id_bucket"]})
    result = table.act(request)
    assert result["state"] == "done", result
    means = {item["field"]: (item["mean_before"], item["mean_after"]) for item in result["actual"]["overlap"]}
    expected = {item["field"]: item["mean_after"] for item in result["predicted"]["overlap"]}
    assert means["id_bucket"][1] < means["id_bucket"][0] / 2
    assert {field: after for field, (_, after) in means.items()} == pytest.approx(expected, rel=0.05)


def test_what_the_next_append_merges_is_predicted(make: Make) -> None:
    table = make("merging", "months(d)", UNMERGED + ", 'commit.manifest.target-size-bytes'='17000'")
    table.append(6)
    table.sql("ALTER TABLE {t} REPLACE PARTITION FIELD months(d) WITH days(d)")
    table.append(6)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('commit.manifest-merge.enabled'='true')")
    run = table.run()
    measure(table.settings, run, [table.name], spark=table.spark)
    expected = predict_next_append(load(run.metadata_url(table.name)))
    table.append(1)
    appended = table.java().currentSnapshot().snapshotId()
    sizes = [
        row.existing_data_files_count
        for row in table.sql("SELECT * FROM {t}.manifests")
        if row.added_snapshot_id != appended or row.existing_data_files_count
    ]
    entries = expected.manifests
    predicted = [
        sum(counts)
        for counts in zip(entries["entries_existing"].to_pylist(), entries["entries_added"].to_pylist(), strict=True)
    ]
    assert sorted(count for count in predicted if count > 15) == sorted(count for count in sizes if count > 15)
    assert len(expected.manifests) + 1 == table.sql("SELECT count(*) FROM {t}.manifests")[0][0]


@pytest.mark.parametrize("version", [1, 3])
def test_other_format_versions_are_rewritten_with_row_ids_kept(make: Make, version: int) -> None:
    merge_on_read = MERGE_ON_READ if version == 3 else ""
    table = make(f"v{version}", properties=SMALL + merge_on_read, version=version)
    table.append(5)
    table.sql("DELETE FROM {t} WHERE id % 11 = 4")  # deletion vectors in v3
    columns = "*, _row_id, _last_updated_sequence_number" if version == 3 else "*"
    rows, entries = table.rows(columns), table.entries()
    result = table.act()
    assert result["state"] == "done", result
    assert table.rows(columns) == rows
    assert table.entries() == entries
    assert result["after"]["delete_manifests"] == (1 if version == 3 else 0)


def test_a_table_upgraded_to_v3_may_get_row_ids_by_the_rewrite(make: Make) -> None:
    table = make("upgraded")
    table.append(4)
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('format-version'='3')")
    rows = table.rows()
    result = table.act()
    assert result["state"] == "done", result
    assert table.rows() == rows
    assert None not in {row[0] for row in table.sql("SELECT _row_id FROM {t}")}


def test_merge_on_read_deletes_still_hide_their_rows(make: Make) -> None:
    table = make("deletes", properties=SMALL + MERGE_ON_READ)
    table.append(4)
    table.sql("DELETE FROM {t} WHERE id % 7 = 3")
    table.sql("DELETE FROM {t} WHERE id % 5 = 2")
    table.sql("DELETE FROM {t} WHERE d = DATE'2024-01-05'")  # whole files: DELETED entries
    rows, entries = table.rows(), table.entries()
    result = table.act()
    assert result["state"] == "done", result
    assert result["before"]["deleted_entries"] > 0
    assert result["after"]["deleted_entries"] == 0
    assert (table.rows(), table.entries()) == (rows, entries)


def commit_meanwhile(monkeypatch: pytest.MonkeyPatch, times: int, commit: Callable[[], None]) -> None:
    """Commits after the rewrite has loaded the table and before it commits, the first ``times`` times."""
    left = [times]
    original = rewrite_module.load_java_table

    def load_then_lose(spark: Any, name: TableName) -> Any:
        java_table = original(spark, name)
        if left[0]:
            left[0] -= 1
            commit()
        return java_table

    monkeypatch.setattr(rewrite_module, "load_java_table", load_then_lose)
    monkeypatch.setattr(rewrite_module, "FIRST_WAIT_SECONDS", 0.01)


def test_a_concurrent_append_is_kept_and_does_not_fail_the_rewrite(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("append")
    table.append(5)
    run = table.run()
    table.propose(REWRITE, run)
    commit_meanwhile(monkeypatch, 1, lambda: table.append(1))
    result = table.act(run=run)
    assert (result["state"], result["attempts"]) == ("done", {"0": 1})
    assert table.sql("SELECT count(*), count(DISTINCT id) FROM {t}")[0] == (180, 180)
    assert result["before"]["manifests"] == 6
    assert result["verification"]["success"]


def test_a_lost_race_is_measured_again_and_retried(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("conflict", properties="'commit.manifest.min-count-to-merge'='2'")
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({UNMERGED})")
    table.append(5)

    def merging_append() -> None:
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('commit.manifest-merge.enabled'='true')")
        table.append(1)
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({UNMERGED})")
        table.append(2)

    commit_meanwhile(monkeypatch, 1, merging_append)
    result = table.act()
    assert (result["state"], result["attempts"]) == ("done", {"0": 2})
    assert table.sql("SELECT count(*), count(DISTINCT id) FROM {t}")[0] == (240, 240)
    assert result["verification"]["success"]


def test_a_writer_that_always_wins_ends_the_run_as_a_conflict(
    make: Make, settings: SettingsDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make("always", properties="'commit.manifest.min-count-to-merge'='2'")
    table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({UNMERGED})")
    table.append(3)
    few = settings.model_copy(update={"maintenance": settings.maintenance.model_copy(update={"max_attempts": 2})})
    table.settings = few

    def merging_append() -> None:
        table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('commit.manifest-merge.enabled'='true')")
        table.append(1)
        table.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({UNMERGED})")
        table.append(2)

    commit_meanwhile(monkeypatch, 9, merging_append)
    result = table.act()
    assert result["state"] == "conflict"
    assert "could not be found in the latest snapshot" in result["reason"]
    assert result["rollback"] is None
    files = table.spark.sparkContext._jvm.java.io.File(table.java().location().removeprefix("file:") + "/metadata")
    assert not [name for name in files.list() if name.startswith("optimized-")]


def test_a_lost_answer_of_the_catalog_is_never_retried_blindly(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("answer")
    table.append(4)
    unknown = table.spark._jvm.org.apache.iceberg.exceptions.CommitStateUnknownException
    original = rewrite_module._action

    class LostAnswerError(Exception):
        java_exception = unknown(table.spark._jvm.java.lang.RuntimeException("connection reset"))

    class Committing:
        def __init__(self, action: Any, commits: bool) -> None:
            self.action, self.commits = action, commits

        def execute(self) -> None:
            if self.commits:
                self.action.execute()
            raise LostAnswerError

    monkeypatch.setattr(rewrite_module, "_action", lambda *given: Committing(original(*given), False))
    snapshots = table.snapshots()
    lost = table.act()
    assert (lost["state"], table.snapshots()) == ("failed", snapshots)
    assert "do not remove orphan files" in lost["reason"]
    monkeypatch.setattr(rewrite_module, "_action", lambda *given: Committing(original(*given), True))
    landed = table.act()
    assert (landed["state"], table.snapshots()) == ("done", snapshots + 1)
    assert landed["verification"]["success"]


def test_a_commit_that_landed_while_its_client_removed_the_manifests_is_found_out(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apache/iceberg#12792: the catalog's answer was an error, so that the client cleaned up what the table needs."""
    table = make("cleaned")
    table.append(4)
    before, rows = table.java().currentSnapshot().snapshotId(), table.rows()
    original = rewrite_module._action

    class Cleaning:
        def __init__(self, action: Any) -> None:
            self.action = action

        def execute(self) -> None:
            for manifest in list(self.action.execute().addedManifests())[:1]:
                table.java().io().deleteFile(manifest.path())
            raise RuntimeError("RESTException: unable to process")

    monkeypatch.setattr(rewrite_module, "_action", lambda *given: Cleaning(original(*given)))
    result = table.act()
    assert result["state"] == "verification_failed"
    assert "is missing; roll back, and do not remove orphan files before" in result["reason"]
    table.spark.sql(result["rollback"]).collect()
    assert table.java().currentSnapshot().snapshotId() == before
    assert table.rows() == rows


def test_a_run_is_undone_with_its_properties_and_only_while_nobody_has_come_after(make: Make) -> None:
    table = make("undone")
    table.append(4)
    before, properties = table.java().currentSnapshot().snapshotId(), dict(table.java().properties())
    request = MaintenanceRequest(
        actions=["set_properties", "rewrite_manifests"], metrics_default="counts", dry_run=False
    )
    run = table.run()
    ours = int(next(iter(table.act(request, run)["snapshots"].values())))
    for snapshot in (SnapshotChoice(snapshot_id=before), SnapshotChoice(snapshot_id=ours)):
        assert verify(table.settings, run, table.name, snapshot, spark=table.spark).status == "ok"
    assert rollback(table.settings, run, table.name, table.spark).status == "ok"
    assert table.java().currentSnapshot().snapshotId() == before
    assert dict(table.java().properties()) == properties
    again = rollback(table.settings, run, table.name, table.spark)
    assert (again.status, again.reason) == ("skipped", "the run left nothing to undo")
    second = table.run()
    table.act(request, second)
    table.append(1)
    refused = rollback(table.settings, second, table.name, table.spark)
    assert refused.status == "failed"
    assert "was committed after the run's; going back would lose it" in str(refused.reason)
    later = verify(table.settings, second, table.name, SnapshotChoice(snapshot_id=before))
    assert later.status == "ok", later.reason
    checks = second.require_result("verification", table.name).data["checks"]
    told = {check["name"]: check["observed"] for check in checks}
    assert told[f"data files of append {table.java().currentSnapshot().snapshotId()}"].endswith(" added (30 rows)")


def test_a_failed_verification_tells_the_state_and_the_rollback(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("doubtful")
    table.append(4)
    before = table.java().currentSnapshot().snapshotId()
    monkeypatch.setattr(
        action_module, "_operation_check", lambda *_: Check(name="told", success=False, observed="a", expected="b")
    )
    result = table.act()
    assert result["state"] == "verification_failed"
    assert result["reason"] == "told: a, expected b"
    assert result["rollback"].endswith(f"snapshot_id => {before})")


def test_a_failure_after_a_later_commit_offers_no_rollback(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("later")
    table.append(4)

    def append_and_fail(*_: Any) -> Check:
        table.append(1)
        return Check(name="told", success=False)

    monkeypatch.setattr(action_module, "_operation_check", append_and_fail)
    result = table.act()
    assert (result["state"], result["rollback"]) == ("verification_failed", None)


def test_a_dry_run_changes_nothing_and_shows_the_commands(make: Make) -> None:
    table = make("dry")
    table.append(4)
    location = table.java().operations().current().metadataFileLocation()
    request = MaintenanceRequest(
        actions=["set_properties", "rewrite_manifests"], metrics_default="counts", metrics_columns={"ID": "full"}
    )
    run = table.run()
    table.propose(request, run)
    result = table.act(request, run)
    assert (result["state"], result["dry_run"]) == ("planned", True)
    assert [command.split()[0] for command in result["commands"]] == ["ALTER", "CALL"]
    assert result["predicted"]["manifests_after"] < 4
    assert table.java().operations().current().metadataFileLocation() == location


def test_properties_are_set_in_one_commit_and_undone_by_the_shown_command(make: Make) -> None:
    table = make("properties", properties=SMALL + ", 'write.metadata.metrics.column.s'='full'")
    table.append(2)
    before = dict(table.java().properties())
    request = MaintenanceRequest(
        actions=["set_properties"],
        metrics_default="none",
        metrics_columns={"ID": "Truncate(4)", "s": ""},
        target_manifest_bytes=32768,
        dry_run=False,
    )
    run = table.run()
    versions = len(table.java().operations().current().previousFiles())
    result = table.act(request, run)
    assert result["state"] == "done", result
    assert len(table.java().operations().current().previousFiles()) == versions + 1
    after = dict(table.java().properties())
    assert after["write.metadata.metrics.default"] == "none"
    assert after["write.metadata.metrics.column.id"] == "truncate(4)"
    assert after["commit.manifest.target-size-bytes"] == "32768"
    assert "write.metadata.metrics.column.s" not in after
    again = table.act(request, run)
    assert (again["state"], again["undo"]) == ("done", result["undo"])
    for command in result["undo"]:
        table.sql(command.replace("{", "{{"))
    assert dict(table.java().properties()) == before


def test_a_wrong_property_sets_none_and_rewrites_nothing(make: Make) -> None:
    table = make("wrong")
    table.append(4)
    location = table.java().operations().current().metadataFileLocation()
    request = MaintenanceRequest(
        actions=["set_properties", "rewrite_manifests"],
        metrics_default="none",
        metrics_columns={"nope": "full"},
        dry_run=False,
    )
    result = table.act(request)
    assert result["state"] == "refused"
    assert "column 'nope' does not exist. Known: d, id, s" in result["reason"]
    assert table.java().operations().current().metadataFileLocation() == location


def test_changed_metrics_leave_the_statistics_of_existing_entries_as_they_are(make: Make) -> None:
    """The lesson's "set properties, then rewrite manifests" does not shrink anything (apache/iceberg#17257)."""
    table = make("lesson")
    table.append(5)
    request = MaintenanceRequest(actions=["set_properties", "rewrite_manifests"], metrics_default="none", dry_run=False)
    result = table.act(request)
    assert result["state"] == "done", result
    assert result["actual"]["statistics_bytes_after"] == result["actual"]["statistics_bytes_before"] > 0


AWKWARD = ["Upper-Case v1.5", 'it\'s `quoted` "twice"', "back\\slash; DROP TABLE x --"]


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_break_no_command(make: Make, name: str) -> None:
    table = (
        make(name, "days(`the day`), truncate(2, `s.x'`)", columns="`I d` BIGINT, `the day` DATE, `s.x'` STRING")
        if name != AWKWARD[2]
        else make(name)
    )
    table.append(4)
    rows = table.rows()
    first = table.java().currentSnapshot().snapshotId()
    column = table.java().schema().columns()[0].name()
    request = MaintenanceRequest(
        actions=["set_properties", "rewrite_manifests"], metrics_columns={column: "counts"}, dry_run=False
    )
    run = table.run()
    proposal = table.propose(request, run)
    result = table.act(request, run)
    assert result["state"] == "done", result
    for command in [*result["undo"], result["rollback"], *proposal["proposals"][1]["commands"]]:
        table.spark.sql(command).collect()
    assert table.rows() == rows
    assert table.java().snapshot(first) is not None


def test_a_table_in_the_hands_of_another_run_is_refused(make: Make, settings: SettingsDocument) -> None:
    table = make("leased")
    table.append(3)
    with lease(settings.home, table.name, "another run"):
        result = table.act()
    assert result["state"] == "refused"
    assert "is being maintained by run 'another run'" in result["reason"]
    assert table.act()["state"] == "done"


def test_guards_refuse_before_anything_is_done(make: Make) -> None:
    table = make("guarded", properties=SMALL + ", 'planning-health.managed-by'='someone else'")
    table.append(3)
    table.spark.conf.set("spark.wap.branch", "audit")
    try:
        result = table.act()
    finally:
        table.spark.conf.unset("spark.wap.branch")
    assert (result["state"], steps(result)) == ("refused", {"guard": "failed"})
    assert "maintained by 'someone else'" in result["reason"]
    assert "spark.wap.branch is 'audit'" in result["reason"]


def test_a_spec_whose_source_column_was_dropped_is_left_alone_with_the_reason(make: Make) -> None:
    table = make("dropped")
    table.append(3)
    table.sql("ALTER TABLE {t} DROP PARTITION FIELD days(d)")
    table.sql("ALTER TABLE {t} DROP COLUMN d")
    result = table.act()
    assert result["state"] == "no_op"
    assert "cannot rewrite this spec: the source column of partition field 'd_day' was dropped" in result["reason"]


def test_an_unpartitioned_and_an_empty_table_are_handled(make: Make) -> None:
    table = make("plain", "")
    assert table.act()["state"] == "no_op"
    table.append(5)
    entries = table.entries()
    result = table.act()
    assert (result["state"], result["actual"]["manifests_after"]) == ("done", result["predicted"]["manifests_after"])
    assert table.entries() == entries
