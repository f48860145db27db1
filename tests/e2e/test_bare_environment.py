"""`pip install .` alone gives a first look at a lake: no Spark, no Airflow, no write access."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import venv
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), str(ROOT)], check=True, timeout=500)
    return python


@pytest.mark.spark
def test_diagnose_and_plan_run_on_a_read_only_lake(
    spark: SparkSession, settings: SettingsDocument, bare_python: Path, tmp_path: Path
) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.bare")
    spark.sql("CREATE TABLE lake.bare.t (id BIGINT, d DATE) USING iceberg PARTITIONED BY (days(d))")
    spark.sql("INSERT INTO lake.bare.t SELECT id, date_add(DATE'2026-01-01', CAST(id AS INT)) FROM range(4)")
    document = settings.model_dump(mode="json")
    properties = document["catalogs"]["lake"]["properties"]
    document["catalogs"]["lake"]["properties"] = {
        key: value.replace("${home}", settings.home) for key, value in properties.items()
    }
    work = tmp_path / "work"
    work.mkdir()
    file = work / "settings.yaml"
    file.write_text(yaml.safe_dump({**document, "home": str(work / "home")}))
    work.chmod(stat.S_IRUSR | stat.S_IXUSR)
    environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "PYTHONPATH")}
    environment |= {"PATH": "/nonexistent", "PLANNING_HEALTH_SETTINGS": str(file)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(bare_python.with_name("planning-health")), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=work, check=False)

    modules = (
        "import importlib.util as u; print([m for m in ('pyspark', 'airflow', 'great_expectations') if u.find_spec(m)])"
    )
    found = subprocess.run([str(bare_python), "-c", modules], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    diagnosed = run("diagnose", "lake.bare.t", "--json")
    assert diagnosed.returncode == 0, diagnosed.stderr
    assert json.loads(diagnosed.stdout)["state"] in {"ok", "warning", "critical"}
    planned = run("plan", "lake.bare.t", "--where", "d = DATE'2026-01-02'", "--json")
    assert json.loads(planned.stdout)["predicates"][0]["data_files"]["result"] == 1
    assert [path.name for path in work.iterdir()] == ["settings.yaml"], "nothing is written beside the settings"
    refused = run("maintain", "lake.bare.t", "--apply")
    assert refused.returncode == 2
    assert "Java was not found" in refused.stderr
    assert sys.version_info >= (3, 11)


def test_the_first_lines_of_the_readme_run_as_they_stand_on_another_catalog(bare_python: Path, tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("sales")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "ordered_on", DateType()))
    rows = {"id": pa.array([1], pa.int64()), "ordered_on": pa.array([date(2026, 1, 1)])}
    catalog.create_table("sales.orders", schema).append(pa.table(rows))
    readme = (ROOT / "README.md").read_text()
    section = readme[readme.index("## First use on your own catalog") :]
    lines = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert lines
    install, *rest = lines[1].splitlines()
    assert install.startswith("pip install -c constraints.txt ."), "which is what `bare_python` is made by"
    own = f'    properties: {{type: jdbc, uri: "jdbc:sqlite:{tmp_path}/catalog.db"}}'
    script = re.sub(r"(?m)^    secrets: .*\n", "", re.sub(r"(?m)^    properties: .*$", own, "\n".join(rest)))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "cat").symlink_to(str(shutil.which("cat")))
    environment = {"PATH": f"{bare_python.parent}:{tools}", "COLUMNS": "200", "HOME": str(tmp_path)}
    done = subprocess.run(
        [str(shutil.which("bash")), "-ec", script], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for shown in ("1 table, 1 measured", "lake.sales.orders: ok, snapshot", "reports/latest/index.html"):
        assert shown in done.stdout
    assert (tmp_path / ".planning-health" / "reports" / "latest" / "index.html").stat().st_size > 10_000
