"""The pipeline on PostgreSQL, an object store, a Spark cluster of two workers and Airflow with its LocalExecutor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from tests.stack.airflow_client import Airflow, running_airflow
from tests.stack.services import Stack, running_stack

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.settings import load_settings

pytestmark = pytest.mark.timeout(3600)

ORDERS, WIDE = "lake.sales.orders", "lake.ops.sensor_readings"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack")


@pytest.fixture(scope="module")
def stack(folder: Path) -> Iterator[Stack]:
    with running_stack(folder) as services:
        yield services


@pytest.fixture(scope="module")
def home(folder: Path) -> Path:
    path = folder / "home"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def settings_file(stack: Stack, home: Path) -> Path:
    return stack.settings(home)


@pytest.fixture(scope="module")
def airflow(stack: Stack, home: Path, settings_file: Path) -> Iterator[Airflow]:
    with running_airflow(stack.environment(settings_file, home), home) as server:
        yield server


@pytest.fixture
def catalog(stack: Stack, settings_file: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """The same catalog through PyIceberg: the witness that shares no code with the pipeline."""
    monkeypatch.setenv("LAKE_PASSWORD", stack.password)
    monkeypatch.setenv("LAKE_S3_SECRET", stack.store_secret)
    return load_pyiceberg_catalog(load_settings(settings_file), "lake")


def test_the_weekly_report_covers_every_table(airflow: Airflow, home: Path, folder: Path) -> None:
    run = airflow.run("planning_health_weekly", {})
    assert run["state"] == "success", airflow.task_states(run)
    report = json.loads((home / "reports" / "latest" / "report.json").read_text())
    measured = {table["table"] for table in report["tables"]}
    assert {ORDERS, WIDE} <= measured
    assert len(measured) >= 12
    master = (folder / "spark" / "spark-master.log").read_text()
    assert master.count("Registered app") >= 2, "the lake and the measurement were made on the cluster"


def test_maintenance_through_the_object_store_changes_manifests_and_nothing_else(
    airflow: Airflow, catalog: Catalog
) -> None:
    before = _contents(catalog, ORDERS)
    run = airflow.run("table_maintenance", _form(ORDERS, "rewrite_manifests"))
    assert run["state"] == "success", airflow.task_states(run)
    acted = airflow.xcom(run, "act")
    assert acted["status"] == "ok"
    assert acted["headline"]["manifests_after"] < acted["headline"]["manifests_before"]
    after = _contents(catalog, ORDERS)
    assert len(after.manifests) == acted["headline"]["manifests_after"]
    assert after.files == before.files


def test_trim_through_the_object_store_leaves_files_and_no_litter(
    airflow: Airflow, catalog: Catalog, stack: Stack
) -> None:
    before = _contents(catalog, WIDE)
    form = _form(WIDE, "set_properties", "trim_statistics", metrics_default="counts")
    run = airflow.run("table_maintenance", form)
    assert run["state"] == "success", airflow.task_states(run)
    acted = airflow.xcom(run, "act")
    assert acted["headline"]["metadata_bytes_after"] < acted["headline"]["metadata_bytes_before"] / 2
    after = _contents(catalog, WIDE)
    assert after.files == before.files
    table = catalog.load_table(WIDE.removeprefix("lake."))
    known = {m.manifest_path for snapshot in table.snapshots() for m in snapshot.manifests(table.io)}
    known |= {snapshot.manifest_list for snapshot in table.snapshots()}
    metadata = f"{table.location()}/metadata".removeprefix("s3://")
    stored = {f"s3://{path}" for path in stack.files().find(metadata) if path.endswith(".avro")}
    assert stored == known


def test_no_secret_is_in_any_file_that_the_pipeline_wrote(
    airflow: Airflow, stack: Stack, home: Path, folder: Path
) -> None:
    secrets = [stack.password.encode(), stack.store_secret.encode()]
    assert airflow.log.exists()
    files = [path for root in (home, folder / "spark") for path in root.rglob("*") if path.is_file()]
    assert len(files) > 100
    leaking = [str(path) for path in files if any(secret in path.read_bytes() for secret in secrets)]
    assert leaking == []


class _Contents:
    """What a table's current snapshot holds, as PyIceberg reads it."""

    def __init__(self, catalog: Catalog, name: str) -> None:
        table = catalog.load_table(name.removeprefix("lake."))
        snapshot = table.current_snapshot()
        assert snapshot is not None
        self.manifests = snapshot.manifests(table.io)
        entries = [entry for manifest in self.manifests for entry in manifest.fetch_manifest_entry(table.io)]
        self.files = sorted(
            (entry.data_file.file_path, entry.sequence_number, entry.snapshot_id, entry.data_file.record_count)
            for entry in entries
        )


def _contents(catalog: Catalog, name: str) -> _Contents:
    return _Contents(catalog, name)


def _form(table: str, *actions: str, **fields: Any) -> Mapping[str, Any]:
    return {"table": table, "actions": list(actions), "dry_run": False, "approval": False, **fields}
