"""Verification of real tables without Spark: what PyIceberg commits between two snapshots is told, and no fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from planning_health.errors import InputError, NotMeasurableError
from planning_health.identifiers import TableName
from planning_health.metadata import SnapshotChoice
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.verify import verify

NAME = TableName.parse("lake.sales.orders")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("sales")
    made = catalog.create_table("sales.orders", rows(0).schema)
    made.append(rows(0))
    made.append(rows(10))
    return made


def rows(first: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + 10), pa.int64()), "s": [f"row {n}" for n in range(10)]})


def current(table: Table) -> int:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def verified(home: Path, against: int | None, snapshot: int | None = None) -> dict[str, Any]:
    properties = {"type": "jdbc", "uri": f"jdbc:sqlite:{home}/catalog.db", "warehouse": f"{home}/warehouse"}
    document = {"home": str(home / "home"), "catalogs": {"lake": {"properties": properties}}}
    run = RunFolder(str(home / "home"), "cli", "r")
    envelope = verify(
        SettingsDocument.model_validate(document),
        run,
        NAME,
        SnapshotChoice(snapshot_id=against) if against is not None else None,
        snapshot=SnapshotChoice(snapshot_id=snapshot),
    )
    data = run.require_result("verification", NAME).data
    return {"status": envelope.status, "reason": envelope.reason, "against": data["against"]} | {
        check["name"]: check["observed"] for check in data["checks"]
    }


def test_each_commit_in_between_is_told_with_what_it_added_and_removed(table: Table, tmp_path: Path) -> None:
    before = current(table)
    table.append(rows(20))
    appended = current(table)
    table.delete("id < 10")
    deleted = current(table)
    table.delete("id = 15")  # one row of a file: what is left of it is written anew
    overwritten = current(table)
    found = verified(tmp_path, before)
    assert (found["status"], found["reason"]) == ("ok", None)
    told = {name: observed for name, observed in found.items() if name.startswith("data files of ")}
    assert told == {
        f"data files of append {appended}": "1 added (10 rows)",
        f"data files of delete {deleted}": "1 removed (10 rows)",
        f"data files of overwrite {overwritten}": "1 added (9 rows), 1 removed (10 rows)",
    }
    assert found["rows in data files"] == 19


def test_a_snapshot_holds_what_it_held(table: Table, tmp_path: Path) -> None:
    found = verified(tmp_path, current(table))
    assert found["status"] == "ok"
    assert not [name for name in found if name.startswith("data files of ")]


def test_without_a_common_history_each_difference_counts(table: Table, tmp_path: Path) -> None:
    earlier = current(table)
    table.append(rows(20))
    found = verified(tmp_path, current(table), snapshot=earlier)
    assert found["status"] == "failed"
    assert "no known ancestor" in found["history"]
    assert found["number of data files"] == 2


def test_a_manifest_that_is_gone_is_named(table: Table, tmp_path: Path) -> None:
    before = current(table)
    table.append(rows(20))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    Path(snapshot.manifests(table.io)[0].manifest_path.removeprefix("file://")).unlink()
    with pytest.raises(NotMeasurableError, match=r"-m0\.avro is missing"):
        verified(tmp_path, before)


def test_without_a_snapshot_the_parent_is_compared(table: Table, tmp_path: Path) -> None:
    parent = current(table)
    table.append(rows(20))
    assert verified(tmp_path, None) | {"against": parent} == verified(tmp_path, parent)


def test_an_unknown_snapshot_is_bad_input(table: Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="12345"):
        verified(tmp_path, 12345)
