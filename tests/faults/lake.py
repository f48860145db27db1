"""Tables for fault tests, and the witness that says afterwards what became of one.

Tables are made and read through PyIceberg, which shares no code with what is under test; Spark reads them once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlparse
from uuid import uuid4

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.identifiers import TableName
from planning_health.maintenance.java_table import RUN_ID_PROPERTY
from planning_health.maintenance.request import MaintenanceRequest
from planning_health.metadata.record_spark import load_java_table
from planning_health.run_folder import RunFolder
from planning_health.stages.act import act
from planning_health.stages.run_record import start_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

NAMESPACE: Final = "faults"
METRICS: Final = "write.metadata.metrics.default"
PROPERTIES: Final = {
    "format-version": "2",
    "commit.manifest-merge.enabled": "false",
    "commit.manifest.target-size-bytes": "16384",
    "commit.retry.min-wait-ms": "10",
    "write.delete.mode": "merge-on-read",
}
SCHEMA: Final = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "d", DateType()), NestedField(3, "s", StringType())
)
SPEC: Final = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "d"))
COMMITS, DAYS, ROWS = 3, 3, 9

ACTIONS: Final = {
    "set_properties": MaintenanceRequest(actions=["set_properties"], metrics_default="counts", dry_run=False),
    "rewrite_manifests": MaintenanceRequest(dry_run=False),
    "trim_statistics": MaintenanceRequest(actions=["trim_statistics"], dry_run=False),
    "all": MaintenanceRequest(
        actions=["set_properties", "rewrite_manifests", "trim_statistics"], metrics_default="none", dry_run=False
    ),
}

LEFTOVERS: Final = {
    r"\d{5}-.*\.metadata\.json": "table metadata",
    r"snap-.*\.avro": "manifest list",
    r"optimized-m-.*\.avro": "manifests",
    r"trim-.*\.avro": "our manifests",
    r".*-m\d+\.avro": "manifests",
}
"""What a file that nothing refers to is, by its name."""

Row = tuple[int, date, str]


def rows_from(first: int, count: int = ROWS) -> list[Row]:
    return [
        (i, date(2024, 1, 1) + timedelta(days=i % DAYS), f"value {i:06} of many") for i in range(first, first + count)
    ]


@dataclass
class Table:
    """A table under test."""

    spark: SparkSession
    settings: SettingsDocument
    action: str
    name: TableName
    run: RunFolder
    expected: list[Row] = field(default_factory=list)

    @classmethod
    def create(cls, spark: SparkSession, settings: SettingsDocument, action: str) -> Table:
        """Makes a table that gains by the action: overlapping manifests, statistics beyond its metrics properties."""
        run = RunFolder(settings.home, "table_maintenance", f"manual__{uuid4()}")
        start_run(settings, run)
        table = cls(spark, settings, action, TableName("lake", (NAMESPACE,), f"t{uuid4().hex[:12]}"), run)
        table.catalog().create_table(table.name.identifier, SCHEMA, partition_spec=SPEC, properties=PROPERTIES)
        for commit in range(COMMITS):
            table.append(commit * ROWS)
        if action == "trim_statistics":
            table.set_properties({METRICS: "none"})
        return table

    def set_properties(self, properties: dict[str, str]) -> None:
        with self.iceberg().transaction() as transaction:
            transaction.set_properties(properties)

    @property
    def request(self) -> MaintenanceRequest:
        return ACTIONS[self.action]

    def catalog(self) -> Catalog:
        return load_pyiceberg_catalog(self.settings, "lake")

    def iceberg(self) -> IcebergTable:
        return self.catalog().load_table(self.name.identifier)

    def java(self) -> Any:
        return load_java_table(self.spark, self.name)

    def sql(self, statement: str) -> list[Any]:
        rows: list[Any] = self.spark.sql(statement.format(t=self.name.sql)).collect()
        return rows

    def append(self, first: int) -> None:
        rows = rows_from(first)
        self.iceberg().append(pa.Table.from_pylist([dict(zip(("id", "d", "s"), row, strict=True)) for row in rows]))
        self.expected += rows

    def act(self, run: RunFolder | None = None) -> dict[str, Any]:
        """Runs the action in this process; ``says`` is the state of its result file."""
        run = run or self.run
        envelope = act(self.settings, run, self.name, self.request, self.spark)
        result = run.require_result("action", self.name)
        data: dict[str, Any] = result.data
        assert (envelope.status == "ok") == (data["state"] in {"done", "no_op"})
        assert envelope.status == "ok" or envelope.reason
        assert result.run_id == run.run_id
        return data | {"reason": envelope.reason}

    # The witness.

    def own_snapshots(self, table: IcebergTable, run: RunFolder | None = None) -> set[int]:
        """The snapshots of a run among the current one's ancestors."""
        found, snapshot = set(), table.current_snapshot()
        while snapshot is not None:
            if (
                snapshot.summary
                and snapshot.summary.additional_properties.get(RUN_ID_PROPERTY) == (run or self.run).run_id
            ):
                found.add(snapshot.snapshot_id)
            parent = snapshot.parent_snapshot_id
            snapshot = table.snapshot_by_id(parent) if parent is not None else None
        return found

    def check_rows(self, *, with_spark: bool = False) -> None:
        """The table reads the rows that it should."""
        found = self.iceberg().scan().to_arrow().select(["id", "d", "s"]).to_pylist()
        assert sorted(tuple(row.values()) for row in found) == sorted(self.expected)
        if with_spark:
            assert sorted(tuple(row) for row in self.sql("SELECT id, d, s FROM {t}")) == sorted(self.expected)

    def check_files(self) -> set[str]:
        """No file that any snapshot refers to is gone; returns what nothing refers to."""
        assert not self.lost_files()
        table = self.iceberg()
        referenced = reachable(table)
        root = local(table.location())
        stored = {path for path in root.rglob("*") if path.is_file() and path.suffix != ".crc"}
        return {path.name for path in stored - referenced}

    def lost_files(self) -> set[Path]:
        """Files that a snapshot refers to and that are gone."""
        return {path for path in reachable(self.iceberg()) if not path.exists()}

    def forget_snapshots(self) -> None:
        """Expires all snapshots that are not ancestors of the current one, as an owner does after a rollback."""
        table = self.iceberg()
        kept, snapshot = set(), table.current_snapshot()
        while snapshot is not None:
            kept.add(snapshot.snapshot_id)
            parent = snapshot.parent_snapshot_id
            snapshot = table.snapshot_by_id(parent) if parent is not None else None
        table.maintenance.expire_snapshots().by_ids(
            [item.snapshot_id for item in table.snapshots() if item.snapshot_id not in kept]
        ).commit()

    def check_truth(self, says: dict[str, Any], before: dict[str, str]) -> None:
        """What the result file says is so; ``before`` are the table's properties before the run."""
        table = self.iceberg()
        ours = self.own_snapshots(table)
        assert set(says["snapshots"].values()) == ours
        current = table.current_snapshot()
        undoable = current is not None and current.snapshot_id in ours
        assert (says["rollback"] is not None) == undoable
        if says["state"] == "done":
            assert ours or says["properties"]
            assert {item["key"]: item["after"] for item in says["properties"]}.items() <= table.properties.items()
            assert says["verification"]["success"] in ((True,) if ours else (None,))
        if says["state"] in {"refused", "no_op"}:
            assert not ours
            assert table.properties == before

    def ends_well(self) -> str:
        """The run is started again, as Airflow does; returns what it says."""
        second = self.act()
        assert second["state"] in {"done", "no_op"}, second["reason"]
        self.check_truth(second, {})
        self.check_rows(with_spark=True)
        state: str = second["state"]
        return state


def local(location: str) -> Path:
    return Path(unquote(urlparse(location).path))


def reachable(table: IcebergTable) -> set[Path]:
    """Every file that the table metadata or one of its snapshots refers to."""
    paths = [table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)]
    for snapshot in table.snapshots():
        paths.append(snapshot.manifest_list)
        if not local(snapshot.manifest_list).exists():
            continue
        for manifest in snapshot.manifests(table.io):
            paths.append(manifest.manifest_path)
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            paths += [entry.data_file.file_path for entry in entries]
    return {local(path) for path in paths}


def kinds(names: Iterable[str]) -> str:
    """What files are, by their names: ``nothing`` when there are none."""
    found = {next(kind for pattern, kind in LEFTOVERS.items() if re.fullmatch(pattern, name)) for name in names}
    return ", ".join(sorted(found)) or "nothing"
