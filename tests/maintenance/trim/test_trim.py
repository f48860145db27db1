"""Trim of tables with real rows: statistics go, nothing else changes, and whatever is done afterwards works."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.maintenance.trim.tables import NAMESPACE, PREDICATES, Table
from tests.planning.java_tables import JavaTable

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata import SnapshotChoice
from planning_health.stages.rollback import rollback
from planning_health.stages.verify import verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

MODES = {"id": "full", "s": "truncate(3)", "x": "counts", "b": "truncate(1)", "place.lat": "full"}
WHOLE = {"id", "d", "place.lat"}
"""Columns whose statistics stay as they are."""


def trim(**changes: Any) -> MaintenanceRequest:
    values = {"metrics_default": "none", "metrics_columns": MODES | {"d": "full"}, **changes}
    return MaintenanceRequest(actions=["set_properties", "trim_statistics"], dry_run=False, **values)


@pytest.fixture(scope="module", autouse=True)
def _namespace(spark: SparkSession) -> None:
    spark.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")


def fill(table: Table, tmp_path: Path, *, equality_deletes: bool, merge_on_read: bool) -> None:
    """Two specs, files of several commits, and deletes between them."""
    for first in (0, 60):
        table.append(first)
    table.sql("ALTER TABLE {t} REPLACE PARTITION FIELD days(d) WITH bucket(4, s)")
    for first in (120, 180):
        table.append(first)
    if merge_on_read:
        table.sql("DELETE FROM {t} WHERE id % 13 = 4")
    if equality_deletes:
        delete_by_id(table, tmp_path, [5, 77, 130])
    table.append(240)


def delete_by_id(table: Table, tmp_path: Path, ids: list[int]) -> None:
    """Equality deletes, which apply to all partitions: only an unpartitioned spec's do."""
    java = JavaTable.load(table.spark, str(table.name))
    specs = java.specs
    table.sql("ALTER TABLE {t} DROP PARTITION FIELD s_bucket_4")
    java.refresh()
    (spec_id,) = java.specs.keys() - specs.keys()
    path = tmp_path / f"{uuid4()}.parquet"
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table({"id": ids}, schema=pa.schema([field])), path)
    delete = {
        "spec-id": spec_id,
        "content": "equality-deletes",
        "equality-ids": [1],
        "file-path": str(path),
        "file-format": "parquet",
        "partition": [],
        "record-count": len(ids),
        "file-size-in-bytes": path.stat().st_size,
    }
    java.row_delta([delete])


KINDS = {
    "v1": {"version": 1, "equality_deletes": False, "merge_on_read": False},
    "v2": {"version": 2, "equality_deletes": False, "merge_on_read": True},
    "v2_equality": {"version": 2, "equality_deletes": True, "merge_on_read": True},
    "v3": {"version": 3, "equality_deletes": False, "merge_on_read": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_done_after_a_trim_gives_the_same_rows(
    spark: SparkSession, settings: SettingsDocument, tmp_path: Path, kind: str
) -> None:
    version, *_ = KINDS[kind].values()
    mode = "merge-on-read" if KINDS[kind]["merge_on_read"] else "copy-on-write"
    table = Table.create(spark, settings, f"all_{kind}", version, f", 'write.delete.mode'='{mode}'")
    fill(table, tmp_path, **{key: value for key, value in KINDS[kind].items() if key != "version"})
    row_ids = ", _row_id" if version == 3 else ""
    rows, matching, planned = table.rows(columns=f"*{row_ids}"), table.matching_files(), table.planned_files()
    first, before = table.sql("SELECT snapshot_id FROM {t}.snapshots ORDER BY committed_at")[0][0], table.snapshot_id()

    result = table.act(trim())
    assert result["state"] == "done"
    assert result["verification"]["success"]
    predicted, actual = result["predicted"], result["actual"]
    for name in ("metadata_bytes_after", "statistics_bytes_after"):
        assert predicted[name] == pytest.approx(actual[name], rel=0.05)
    assert predicted["queries"] == actual["queries"] or version == 1
    assert actual["statistics_bytes_after"] < actual["statistics_bytes_before"] * 0.65

    assert table.rows(columns=f"*{row_ids}") == rows
    again = table.planned_files()
    for column, texts in PREDICATES.items():
        for text in texts:
            assert matching[text] <= again[text], text
            if column in WHOLE:
                assert again[text] <= planned[text], text
    read = table.spark.read.format("iceberg").option("start-snapshot-id", first)
    assert (
        read.option("end-snapshot-id", before).load(table.name.sql).count()
        == read.option("end-snapshot-id", table.snapshot_id()).load(table.name.sql).count()
    )
    if not KINDS[kind]["merge_on_read"]:
        assert changes(table, first, before) == changes(table, first, table.snapshot_id())
    if kind != "v2_equality":
        assert load_pyiceberg_catalog(settings, "lake").load_table(table.name.identifier).scan().count() == len(rows)
    if version == 1:  # Iceberg copied what we staged
        assert not list(Path(metadata_folder(table)).glob("trim-*.avro"))
    everything_else_works(table)


def changes(table: Table, start: int, end: int) -> list[str]:
    reader = table.spark.read.format("iceberg").option("start-snapshot-id", start).option("end-snapshot-id", end)
    columns = ["id", "s", "_change_type", "_change_ordinal"]
    return sorted(map(str, reader.load(f"{table.name.sql}.changes").select(columns).collect()))


def everything_else_works(table: Table) -> None:
    """Deletes of whole files and of rows, compaction, a further append and expiry, each with the right rows."""
    for where in ("d = DATE'2024-01-04'", "id < 60 AND s <> 'abcd'", "x > 20 AND x < 25", "s IS NULL"):
        expected = table.rows(f"NOT coalesce({where}, false)")
        table.sql(f"DELETE FROM {{t}} WHERE {where}")
        assert table.rows() == expected, where
    rows = table.rows()
    table.sql(f"CALL lake.system.rewrite_data_files(table => '{table.name.sql}', options => map('rewrite-all','true'))")
    assert table.rows() == rows
    table.append(400, 20)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    arguments = f"table => '{table.name.sql}', older_than => TIMESTAMP '{now}', retain_last => 1"
    table.sql(f"CALL lake.system.expire_snapshots({arguments})")
    assert len(table.rows()) == len(rows) + 20


def test_a_trim_is_undone_done_again_and_then_has_nothing_to_do(
    spark: SparkSession, settings: SettingsDocument, tmp_path: Path
) -> None:
    table = Table.create(spark, settings, "undone", 2, ", 'write.delete.mode'='merge-on-read'")
    fill(table, tmp_path, equality_deletes=False, merge_on_read=True)
    before, properties = table.snapshot_id(), dict(table.java().properties())
    entries = table.rows(columns="*")
    result = table.act(trim())
    assert set(result["snapshots"]) == {"0", "1"}
    undone = rollback(settings, result["run"], table.name, spark)
    assert undone.status == "ok", undone.reason
    assert table.snapshot_id() == before
    assert dict(table.java().properties()) == properties
    again = table.act(trim())
    assert again["state"] == "done"
    snapshot = table.snapshot_id()
    parent = SnapshotChoice(snapshot_id=int(table.java().currentSnapshot().parentId()))
    compared = verify(settings, table.run(), table.name, parent, spark=spark)
    assert compared.status == "ok", compared.reason
    idle = table.act(MaintenanceRequest(actions=["trim_statistics"], dry_run=False))
    assert (idle["state"], table.snapshot_id()) == ("no_op", snapshot)
    assert "no entry carries more statistics" in idle["reason"]
    assert table.rows() == entries
    staged = {path.name for path in Path(metadata_folder(table)).glob("trim-*.avro")}
    listed = {Path(row[0]).name for row in table.sql("SELECT DISTINCT path FROM {t}.all_manifests")}
    assert staged <= listed | {Path(path).name for path in manifests_of_undone(table, result)}


def metadata_folder(table: Table) -> str:
    return str(table.java().location()).removeprefix("file:") + "/metadata"


def manifests_of_undone(table: Table, result: dict[str, Any]) -> list[str]:
    ours = [int(snapshot) for snapshot in result["snapshots"].values()]
    java = table.java()
    return [m.path() for snapshot in ours for m in java.snapshot(snapshot).allManifests(java.io())]


def test_verify_holds_over_trims_and_whatever_else_was_committed_between(
    spark: SparkSession, settings: SettingsDocument, tmp_path: Path
) -> None:
    """Two trims, the second one narrower, among appends, deletes, a compaction and a rewrite by Iceberg itself."""
    table = Table.create(spark, settings, "history", 2, ", 'write.delete.mode'='merge-on-read'")
    fill(table, tmp_path, equality_deletes=True, merge_on_read=True)
    first = table.snapshot_id()
    table.act(trim(metrics_columns=dict.fromkeys(("id", "d", "s"), "full")))
    assert compared(table, first)["status"] == "ok"
    table.append(300)
    narrow = trim(metrics_columns={"id": "counts", "s": "truncate(2)"})
    second = table.snapshot_id()
    table.act(narrow)
    found = compared(table, first)
    assert found["status"] == "ok", found["reason"]
    assert [name for name in found["told"] if name.startswith("data files of")] == [f"data files of append {second}"]
    assert found["told"][f"data files of append {second}"].endswith(" added (60 rows)")

    table.sql("DELETE FROM {t} WHERE id % 13 = 5")
    table.sql("DELETE FROM {t} WHERE d = DATE'2024-01-03' OR d IS NULL")
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.update.mode'='copy-on-write')")
    table.sql("UPDATE {t} SET x = 0 WHERE id = 1")
    found = compared(table, first)
    assert found["status"] == "ok", found["reason"]
    assert operations(found) == {"append", "delete", "overwrite"}
    table.sql(f"CALL lake.system.rewrite_data_files(table => '{table.name.sql}', options => map('rewrite-all','true'))")
    table.sql(f"CALL lake.system.rewrite_manifests(table => '{table.name.sql}', use_caching => false)")
    table.act(narrow)
    for session in (spark, None):
        found = compared(table, first, session)
        assert found["status"] == "ok", found["reason"]
        assert "replace" in operations(found)  # what was appended since is in neither snapshot
    assert found["told"]["data files lost without a commit that removed them"] == 0

    java, current = table.java(), table.snapshot_id()
    java.manageSnapshots().rollbackTo(first).commit()
    stale = compared(table, current)
    assert "no known ancestor" in stale["told"]["history"]
    assert stale["status"] == "failed"


def operations(found: dict[str, Any]) -> set[str]:
    """The kinds of commits that are told to have added or removed files."""
    return {name.split(" files of ")[1].split()[0] for name in found["told"] if " files of " in name}


def compared(table: Table, against: int, session: SparkSession | None = None) -> dict[str, Any]:
    run = table.run()
    envelope = verify(table.settings, run, table.name, SnapshotChoice(snapshot_id=against), spark=session)
    checks = run.require_result("verification", table.name).data["checks"]
    told = {check["name"]: check["observed"] for check in checks}
    return {"status": envelope.status, "reason": envelope.reason, "told": told}
