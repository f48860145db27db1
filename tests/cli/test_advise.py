"""`advise-metrics` and `advise-layout` as scripts see them: on a real table, with a real event log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.advice.event_logs import event_log
from tests.cli.test_cli import Cli

from planning_health.identifiers import TableName
from planning_health.maintenance.request import MaintenanceRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

NAME = TableName("lake", ("test_cli_advise",), "visits")
TABLE = str(NAME)
QUERIES = (
    "SELECT count(note) FROM {table} WHERE agent LIKE 'agent-3%'",
    "SELECT count(note) FROM {table} WHERE agent = 'agent-5-Firefox on a very long platform name'",
    "SELECT * FROM {table} WHERE day = DATE'2026-01-04'",
)


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes the table and runs the queries; the folder of their event log."""
    folder = tmp_path_factory.mktemp("advise")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.test_cli_advise")
    spark.sql(
        f"CREATE TABLE {NAME.sql} (day DATE, agent STRING, note STRING, visitor BIGINT) USING iceberg "
        "PARTITIONED BY (days(day)) TBLPROPERTIES ('commit.manifest-merge.enabled' = 'false')"
    )
    for number in range(8):
        spark.sql(
            f"INSERT INTO {NAME.sql} SELECT DATE'2026-01-01' + INTERVAL {number} DAY, "
            f"concat('agent-{number}-', IF(id % 2 = 0, 'Chrome', 'Firefox'), ' on a very long platform name'), "
            "sha2(CAST(id AS STRING), 256), id FROM range(20)"
        )
    with event_log(spark, folder):
        for query in QUERIES:
            spark.sql(query.format(table=NAME.sql)).collect()
    return folder


@pytest.fixture(scope="module")
def cli(log: Path, settings: SettingsDocument, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    document = settings.model_dump(mode="json") | {"history": None}
    file = tmp_path_factory.mktemp("advise-settings") / "settings.yaml"
    file.write_text(yaml.safe_dump(document))
    return Cli(file)


@pytest.mark.spark
def test_metrics_advice_names_mode_cost_and_gain_of_each_column(cli: Cli, log: Path) -> None:
    found = cli("advise-metrics", TABLE, "--event-log", str(log), "--json").json
    columns = {column["column"]: column for column in found["columns"]}
    assert {name: column["mode"] for name, column in columns.items()} == {
        "day": "full",
        "agent": "truncate(8)",
        "note": "none",
        "visitor": "none",
    }
    assert columns["agent"]["pruning"] == {"files": 2.0, "files_without": 16.0, "filters": 2}
    assert columns["note"]["statistics_bytes"] > columns["visitor"]["statistics_bytes"] > 0
    assert all(query["files_after"] == query["files_before"] == 1 for query in found["queries"])
    assert MaintenanceRequest.model_validate(found["params"]).metrics_columns == {"agent": "truncate(8)", "day": "full"}


@pytest.mark.spark
def test_metrics_advice_is_readable_and_says_how_to_set_and_undo_it(cli: Cli, log: Path) -> None:
    shown = cli("advise-metrics", TABLE, "--event-log", str(log)).out
    assert "3 observed scans with 3 distinct filters" in shown
    assert "agent: the shortest bounds with which 2 observed filter(s) prune as now" in shown
    assert "none for the other 2 columns, whose statistics take" in shown
    assert "set it with: ALTER TABLE `lake`.`test_cli_advise`.`visits` SET TBLPROPERTIES" in shown
    assert "undo it with: ALTER TABLE `lake`.`test_cli_advise`.`visits` UNSET TBLPROPERTIES IF EXISTS" in shown
    command = shown.splitlines()[-1]
    assert command.startswith("planning-health maintain lake.test_cli_advise.visits --set-metrics default=none ")
    assert " --set-metrics 'column.agent=truncate(8)' " in command
    assert command.endswith(f" --trim --no-rewrite --settings {cli.settings_file} --apply")


@pytest.mark.spark
def test_a_budget_allows_shorter_bounds_and_says_what_they_cost(cli: Cli, log: Path) -> None:
    shown = cli("advise-metrics", TABLE, "--event-log", str(log), "--budget", "7").out
    assert "Queries that would read more files" in shown
    found = cli("advise-metrics", TABLE, "--event-log", str(log), "--budget", "7", "--json").json
    assert found["budget"] == 7
    assert max(query["files_after"] - query["files_before"] for query in found["queries"]) == 7


@pytest.mark.spark
def test_scan_reports_are_a_source_too(cli: Cli, tmp_path: Path) -> None:
    report = {"table-name": NAME.dotted, "filter": {"type": "eq", "term": "agent", "value": "(hash-12345678)"}}
    (tmp_path / "reports.jsonl").write_text(json.dumps(report | {"metrics": {}}))
    found = cli("advise-metrics", TABLE, "--scan-reports", str(tmp_path / "reports.jsonl"), "--json").json
    modes = {column["column"]: column["mode"] for column in found["columns"]}
    assert modes == {"day": "full", "agent": "truncate(16)", "note": "none", "visitor": "none"}


@pytest.mark.spark
def test_layout_advice_compares_candidates(cli: Cli, log: Path) -> None:
    arguments = ["advise-layout", TABLE, "--event-log", str(log), "--threads", "1"]
    found = cli(*arguments, "--json").json
    assert {item["target_bytes"] for item in found["candidates"]} == {65_536, 8_388_608}
    assert found["now"]["manifests"] == 8
    shown = cli(*arguments).out
    assert "Layouts" in shown
    assert "Iceberg's default manifest size is good enough" in " ".join(shown.split())
    assert (found["advised"], found["properties"], found["commands"]) == (None, {}, [])


@pytest.mark.spark
def test_without_a_workload_and_with_wrong_sources_the_line_says_what_is_missing(cli: Cli, tmp_path: Path) -> None:
    assert "no query of the table is known" in " ".join(cli("advise-metrics", TABLE).out.split())
    assert "no query of the table is known" in " ".join(cli("advise-layout", TABLE).out.split())
    missing = cli("advise-metrics", TABLE, "--event-log", str(tmp_path / "nowhere"))
    assert (missing.status, missing.out) == (2, "")
    assert "does not exist: expected a file or a folder" in missing.err
    assert cli("advise-metrics", TABLE, "--budget", "-1").status == 2
