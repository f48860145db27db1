"""Nothing that we start tells anybody about it: no dependency looks up or opens an address of its own accord."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planning_health.demo.airflow_home import airflow_environment
from planning_health.settings import SettingsDocument

REPOSITORY = Path(__file__).parents[1]

GUARD = """
import json, sys
asked = []
def hook(event, arguments):
    if event in ("socket.connect", "socket.sendto") and not isinstance(arguments[1], str):  # a str is a local socket
        asked.append(f"{event} {arguments[1]}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        asked.append(f"{event} {arguments[0]}")
sys.addaudithook(hook)
"""

LIBRARY = """
import pathlib, runpy
import pyarrow as pa
from pyiceberg.catalog import load_catalog
home = pathlib.Path(sys.argv[1])
catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}/warehouse")
catalog.create_namespace("sales")
rows = pa.table({"id": pa.array([1, 2, 3])})
catalog.create_table("sales.orders", rows.schema).append(rows)
from planning_health.cli import main
status = {}
for command in ("measure", "diagnose", "plan", "report"):
    sys.argv = ["planning-health", command, "lake.sales.orders"]
    try:
        main()
    except SystemExit as ended:
        status[command] = ended.code
import planning_health.plan_tasks.service.app, planning_health.pages.app
from planning_health.health.expectations import Validator
from planning_health.health.thresholds import resolve_thresholds
from planning_health.identifiers import TableName
from planning_health.metadata import record_with_pyiceberg
measured = record_with_pyiceberg(catalog, TableName.parse("lake.sales.orders"))
assert not Validator().validate(measured, resolve_thresholds(None), []).blocking
print("\\n" + json.dumps({"asked": asked, "modules": sorted(sys.modules), "status": status}))
"""

AIRFLOW = """
import importlib, pathlib
repository = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(repository / "dags"), str(repository / "plugins")]
import airflow.models, airflow.plugins_manager, airflow.sdk
for folder in ("plugins", "dags"):
    for file in sorted((repository / folder).glob("*.py")):
        importlib.import_module(file.stem)
print("\\n" + json.dumps({"asked": asked, "modules": sorted(sys.modules), "status": {}}))
"""

SETTINGS = {
    "catalogs": {
        "lake": {"properties": {"type": "jdbc", "uri": "jdbc:sqlite:${home}/catalog.db", "warehouse": "${home}/w"}}
    }
}


def watched(script: str, argument: Path, environment: dict[str, str]) -> dict[str, Any]:
    """What the script asked the network for, in a process of its own."""
    command = [sys.executable, "-c", GUARD + script, str(argument)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_measuring_validating_and_reporting_ask_nobody(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(json.dumps({"version": 1, "home": str(tmp_path), **SETTINGS}))
    found = watched(LIBRARY, tmp_path, {"PLANNING_HEALTH_SETTINGS": str(tmp_path / "settings.yaml")})
    assert found["status"] == dict.fromkeys(("measure", "diagnose", "plan", "report"), 0)
    assert {"great_expectations", "pyiceberg.catalog.sql", "prometheus_client"} <= set(found["modules"])
    assert found["asked"] == []


def test_dags_and_plugins_in_airflow_ask_nobody(tmp_path: Path) -> None:
    settings = SettingsDocument.model_validate({"home": str(tmp_path), **SETTINGS})
    environment = airflow_environment(settings, tmp_path / "airflow", "local[1]")
    assert environment["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] == "False"
    assert environment["GX_ANALYTICS_ENABLED"] == "false"
    found = watched(AIRFLOW, REPOSITORY, environment)
    assert found["asked"] == []


@pytest.mark.parametrize(
    "code", ["socket.create_connection(('192.0.2.1', 9), timeout=0.01)", "socket.getaddrinfo('a.invalid', 9)"]
)
def test_the_watch_sees_what_is_asked(tmp_path: Path, code: str) -> None:
    script = f"import contextlib, socket\nwith contextlib.suppress(OSError):\n    {code}\n"
    assert watched(f"{script}print(json.dumps({{'asked': asked}}))", tmp_path, {})["asked"]
