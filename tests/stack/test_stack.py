"""The pipeline on PostgreSQL, an object store, a Spark cluster of two workers and Airflow with its LocalExecutor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from tests.stack.airflow_client import Airflow, running_airflow
from tests.stack.services import Stack, running_stack

from planning_health.catalogs import load_pyiceberg_catalog
from planning_health.demo.lake import demo_table_names
from planning_health.settings import load_settings

pytestmark = pytest.mark.timeout(3600)

ORDERS, WIDE = "lake.sales.orders", "lake.ops.sensor_readings"
_SMOKE_SECONDS = 1200


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("stack")) as services:
        yield services


@pytest.fixture(scope="module")
def smoke(stack: Stack) -> str:
    """What the smoke service said. It measures and reports; what it would repair is left to the tests' own runs."""
    (stack.home / "demo-repaired").touch()
    return stack.run("smoke", _SMOKE_SECONDS)


@pytest.fixture(scope="module")
def airflow(stack: Stack, smoke: str) -> Iterator[Airflow]:
    assert smoke
    with running_airflow(stack) as server:
        yield server


@pytest.fixture
def catalog(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """The same catalog through PyIceberg: the witness that shares no code with the pipeline."""
    monkeypatch.setenv("LAKE_PASSWORD", stack.compose.secrets["POSTGRES_PASSWORD"])
    monkeypatch.setenv("LAKE_S3_SECRET", stack.compose.secrets["S3_SECRET_KEY"])
    return load_pyiceberg_catalog(load_settings(stack.compose.settings_file), "lake")


def test_the_smoke_service_builds_the_lake_and_reports_every_table(stack: Stack, smoke: str) -> None:
    assert "Report:" in smoke
    assert _reported(stack) >= {str(name) for name in demo_table_names()}
    assert _applications(stack) >= 1


def test_maintenance_through_the_object_store_changes_manifests_and_nothing_else(
    airflow: Airflow, catalog: Catalog
) -> None:
    before = _Contents(catalog, ORDERS)
    run = airflow.run("table_maintenance", _form(ORDERS, "rewrite_manifests"))
    assert run["state"] == "success", airflow.task_states(run)
    acted = airflow.xcom(run, "act")
    assert acted["status"] == "ok"
    assert acted["headline"]["manifests_after"] < acted["headline"]["manifests_before"]
    after = _Contents(catalog, ORDERS)
    assert len(after.manifests) == acted["headline"]["manifests_after"]
    assert after.files == before.files


def test_trim_through_the_object_store_leaves_files_and_no_litter(
    airflow: Airflow, catalog: Catalog, stack: Stack
) -> None:
    before = _Contents(catalog, WIDE)
    form = _form(WIDE, "set_properties", "trim_statistics", metrics_default="counts")
    run = airflow.run("table_maintenance", form)
    assert run["state"] == "success", airflow.task_states(run)
    acted = airflow.xcom(run, "act")
    assert acted["headline"]["metadata_bytes_after"] < acted["headline"]["metadata_bytes_before"] / 2
    after = _Contents(catalog, WIDE)
    assert after.files == before.files
    table = catalog.load_table(WIDE.removeprefix("lake."))
    known = {m.manifest_path for snapshot in table.snapshots() for m in snapshot.manifests(table.io)}
    known |= {snapshot.manifest_list for snapshot in table.snapshots()}
    metadata = f"{table.location()}/metadata".removeprefix("s3://")
    stored = {f"s3://{path}" for path in stack.files().find(metadata) if path.endswith(".avro")}
    assert stored == known


def test_the_scheduler_measures_the_tables_of_an_event_and_reports_every_table(airflow: Airflow, stack: Stack) -> None:
    """The weekly Dag by the scheduler, for two tables: the smoke service's run was for all."""
    earlier = _applications(stack)
    run = airflow.run_by_event("planning_health_weekly", "planning_health_request", {"tables": [ORDERS, WIDE]})
    assert run["state"] == "success", airflow.task_states(run)
    assert airflow.xcom(run, "measure")["headline"]["tables"] == 2
    assert _reported(stack) >= {str(name) for name in demo_table_names()}
    assert _applications(stack) > earlier


def test_airflow_and_the_catalog_have_databases_of_their_own(airflow: Airflow, stack: Stack) -> None:
    assert airflow.client.get("/dags").json()["total_entries"] >= 3
    airflows, catalogs = stack.dump("airflow"), stack.dump("iceberg")
    assert "CREATE TABLE public.dag_run " in airflows
    assert "iceberg_tables" not in airflows
    assert "CREATE TABLE public.iceberg_tables " in catalogs
    assert "dag_run" not in catalogs


def test_no_secret_is_in_anything_that_the_pipeline_wrote(airflow: Airflow, stack: Stack) -> None:
    """Logs, reports, results, Spark's configuration, XComs and what else Airflow stores, and the tables themselves."""
    secrets = {name: secret.encode() for name, secret in stack.compose.secrets.items()}
    folder = stack.compose.folder
    files = [path for path in folder.rglob("*") if path.is_file() and path != folder / "s3.json"]
    events = [path for path in files if b"SparkListenerEnvironmentUpdate" in path.read_bytes()]
    assert len(events) >= 3
    assert all(b"jdbc.password" in path.read_bytes() for path in events)
    assert len(files) > 100
    leaks = {(name, str(path)) for path in files for name, secret in secrets.items() if secret in path.read_bytes()}
    for database in ("airflow", "iceberg"):
        dump = stack.dump(database).encode()
        assert len(dump) > 1000
        leaks |= {(name, database) for name, secret in secrets.items() if secret in dump}
    assert leaks == set()


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


def _reported(stack: Stack) -> set[str]:
    """The tables in the newest report."""
    report = json.loads((stack.home / "reports" / "latest" / "report.json").read_text())
    return {table["table"] for table in report["tables"]}


def _applications(stack: Stack) -> int:
    """How many applications have run on the cluster."""
    return (stack.compose.folder / "spark-master.log").read_text().count("Registered app")


def _form(table: str, *actions: str, **fields: Any) -> Mapping[str, Any]:
    return {"table": table, "actions": list(actions), "dry_run": False, "approval": False, **fields}
