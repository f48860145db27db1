"""The command line as scripts see it: documents on standard output, one line for each error, exact exit statuses."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import yaml
from pyiceberg.types import DateType
from rich.console import Console
from tests.health.builder import TableBuilder
from tests.planning.pictures import Manifest, picture
from tests.planning.test_scan import DAYS, SCHEMA, days
from tests.reports.sample_run import action

from planning_health.cli import main, maintain, output, plan, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

TABLE = "lake.test_cli.`Late Orders`"
BROKEN = "lake.test_cli.broken"


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """Runs `planning-health` with a settings file: in this process, or as a process of its own."""

    def __init__(self, settings_file: Path | None = None) -> None:
        self.settings_file = settings_file
        self.environment = {"COLUMNS": "200", "NO_COLOR": "1"}
        if settings_file:
            self.environment["PLANNING_HEALTH_SETTINGS"] = str(settings_file)

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment),
            mock.patch.object(sys, "argv", ["planning-health", *arguments]),
            mock.patch.object(sys, "stdin", io.StringIO(stdin)),
            redirect_stdout(out),
            redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        return Result(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    def process(self, *arguments: str) -> Result:
        command = [sys.executable, "-c", "from planning_health.cli import main; main()", *arguments]
        environment = {**os.environ, **self.environment}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def calculator() -> Cli:
    return Cli()


@pytest.fixture(scope="module")
def lake(spark: SparkSession, settings: SettingsDocument, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    spark.sql("CREATE NAMESPACE lake.test_cli")
    spark.sql(
        "CREATE TABLE lake.test_cli.`Late Orders` (`order id` BIGINT, ordered_on DATE) USING iceberg "
        "PARTITIONED BY (days(ordered_on)) TBLPROPERTIES ('commit.manifest-merge.enabled'='false')"
    )
    for shift in range(6):
        spark.sql(
            "INSERT INTO lake.test_cli.`Late Orders` SELECT id, "
            f"date_add(DATE'2026-01-01', CAST(id * 20 + {shift} AS INT)) FROM range(5)"
        )
    spark.sql("CREATE TABLE lake.test_cli.broken (id BIGINT) USING iceberg")
    spark.sql("INSERT INTO lake.test_cli.broken VALUES (1)")
    for manifest in Path(settings.home, "warehouse/test_cli/broken/metadata").glob("*-m0.avro"):
        manifest.unlink()
    folder = tmp_path_factory.mktemp("cli")
    document = settings.model_dump(mode="json") | {"home": str(folder / "home"), "history": None}
    catalog = document["catalogs"]["lake"]["properties"]
    document["catalogs"]["lake"]["properties"] = {
        key: value.replace("${home}", settings.home) for key, value in catalog.items()
    }
    document["tables"] = [{"match": "lake.test_cli.*"}]
    file = folder / "settings.yaml"
    file.write_text(yaml.safe_dump(document))
    return Cli(file)


def test_an_empty_table_is_diagnosed_in_two_lines(calculator: Cli) -> None:
    empty = TableBuilder({"d": DateType()}, [[("d", "day")]]).build()
    with mock.patch.object(tables, "read_table", return_value=empty):
        result = calculator("diagnose", "lake.test.t")
    assert result.out.splitlines()[1:] == ["The table is empty: there is nothing to plan."]
    assert result.out.startswith("lake.test.t: ok, ")


def test_files_of_skipped_manifests_are_told_from_skipped_files(calculator: Cli) -> None:
    metadata = picture(SCHEMA, [DAYS], [Manifest(days(1, 2)), Manifest(days(9, 10, 11))])
    with mock.patch.object(plan, "read_table", return_value=metadata):
        pruned = calculator("plan", "lake.db.t", "--where", "d = DATE '1970-01-02'")
        full = calculator("plan", "lake.db.t")
    assert "3 data files in skipped manifests: Iceberg counts only files of opened manifests\n" in pruned.out
    assert "in skipped manifests" not in full.out


def test_without_a_settings_file_it_is_said_that_the_demonstration_s_is_used(calculator: Cli) -> None:
    with mock.patch.dict(os.environ):
        os.environ.pop("PLANNING_HEALTH_SETTINGS", None)
        result = calculator.process("diagnose", "nowhere.sales.orders")
    assert "no settings file is given (--settings, PLANNING_HEALTH_SETTINGS)" in " ".join(result.err.split())
    assert result.out == ""


def test_markdown_is_rendered_on_a_terminal_and_left_as_it_is_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal, expected in ((True, "Table orders"), (False, "**Table** orders")):
        monkeypatch.setattr(output, "console", Console(force_terminal=terminal, no_color=True, width=80))
        with output.console.capture() as captured:
            output.print_markdown("**Table** orders")
        assert expected in re.sub(r"\x1b\[[\d;]*m", "", captured.get())


def test_greedy_assignment_of_costs(calculator: Cli) -> None:
    document = calculator("assign", "--costs", "100,1,2,3", "--tasks", "2", "--strategy", "greedy", "--json").json
    assert document["assignment"] == [[0], [3, 2, 1]]
    assert (document["loads"], document["makespan"], document["lower_bound"]) == ([100, 6], 100, 100)
    assert document["memory"] == {"retained_bytes": 160, "scratch_bytes": 192}


def test_default_assignment_lists_one_list_a_feed(calculator: Cli) -> None:
    document = calculator("assign", "--costs", "1,1,1,1,1,1,1", "--tasks", "3", "--partitions", "2", "--json").json
    assert document["assignment"] == [[0, 6], [3], [1], [4], [2], [5]]


def test_skew_of_nothing_is_null(calculator: Cli) -> None:
    document = calculator("assign", "--costs", "0,0", "--tasks", "2", "--json").json
    assert document["skew"] is None


def test_affinity_from_a_hints_file(calculator: Cli, tmp_path: Path) -> None:
    hints = tmp_path / "hints.json"
    keys = [("a", 100), ("a", 20), ("b", 50), ("b", 50), ("zero", 0)]
    hints.write_text(json.dumps([{"task": 7, "hints": [list(key) for key in keys]}]))
    workers = ",".join(f"http://worker-{number}" for number in range(3))
    result = calculator("assign", "--hints", str(hints), "--workers", workers, "--strategy", "affinity", "--json")
    (task,) = result.json["tasks"]
    assert (task["task"], task["hinted_objects"], task["hinted_bytes"]) == (7, 2, 150)
    assert [(entry["worker"], entry["score"]) for entry in task["ranking"]][:2] == [
        ("http://worker-0/", 100),
        ("http://worker-1/", 50),
    ]


def test_estimated_task_count(calculator: Cli) -> None:
    numbers = {"bytes": 4480382, "bytes-per-partition": 1000000, "partitions": 2, "files": 7, "max-tasks": 4}
    arguments = [text for name, value in numbers.items() for text in (f"--{name}", str(value))]
    assert calculator("assign", "--estimate", *arguments, "--json").json == {"tasks": 3}


def test_help_of_plan_tasks_names_the_table_and_its_command(calculator: Cli) -> None:
    shown = calculator("plan-tasks", "--help").out
    assert "[TABLE | COMMAND]" in shown
    assert "TABLE (catalog.namespace.table)" in " ".join(shown.split())
    assert "--where" in calculator("plan-tasks", "table", "--help").out


def test_help_of_assign_names_the_defaults_of_a_table(calculator: Cli) -> None:
    shown = " ".join(calculator("assign", "--help").out.replace("│", " ").split())
    for key in ("assignment.tasks", "assignment.strategy", "assignment.workers", "assignment.partitions"):
        assert key in shown
    assert '[{"task": id, "hints": [[key, weight], …]}, …]' in shown


def test_plan_tasks_batches(calculator: Cli) -> None:
    document = calculator("plan-tasks", "--tasks", "1050", "--batch-size", "100", "--replicas", "3", "--json").json
    assert (document["inline"], document["tokens"], document["requests"], document["last_batch"]) == (100, 10, 11, 50)
    assert document["plans_computed"].keys() == {"no_cache", "affinity_cache", "local_cache_expected", "bound"}


def test_a_token_goes_round(calculator: Cli) -> None:
    scan = {"snapshot-id": 42, "case-sensitive": True, "use-snapshot-schema": False}
    payload = {"table": "db.tbl", "offset": 100, "limit": 100, "scan": scan}
    encoded = calculator("plan-tasks", "encode", stdin=json.dumps(payload)).out.strip()
    assert encoded == (
        "eyJ0YWJsZSI6ImRiLnRibCIsIm9mZnNldCI6MTAwLCJsaW1pdCI6MTAwLCJzY2FuIjp7InNuYXBzaG90LWlkIjo0MiwiY2FzZS1zZW5zaXRp"
        "dmUiOnRydWUsInVzZS1zbmFwc2hvdC1zY2hlbWEiOmZhbHNlfX0"
    )
    assert calculator("plan-tasks", "decode", encoded, "--json").json == payload


def test_entry_ranges(calculator: Cli) -> None:
    document = calculator("plan-tasks", "ranges", "--entries", "60,60,60,70", "--batch-size", "100", "--json").json
    assert document == {
        "batches": [[[0, 0, 60], [1, 0, 40]], [[1, 40, 60], [2, 0, 60], [3, 0, 20]], [[3, 20, 70]]],
        "opens": 6,
        "entries_decoded_range_stop": 310,
        "entries_decoded_whole": 380,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["diagnose", "orders"], "'orders'"),
        (["diagnose", "nope.a.b"], "catalog 'nope' is not defined"),
        (["diagnose", "lake.a.b", "--fail-on", "bad"], "--fail-on 'bad'"),
        (["diagnose", "lake.a.b", "--settings", "/nope.yaml"], "/nope.yaml"),
        (["assign", "--costs", "1,x", "--tasks", "2"], "'x'"),
        (["assign", "--costs", "1", "--tasks", "0"], "0"),
        (["assign", "--costs", "1", "--tasks", "1000000000000"], "1000000000000"),
        (["assign", "--costs", "1", "--tasks", "1", "--partitions", "1000000000000"], "1000000000000"),
        (["assign", "lake.a.b", "--strategy", "affinity", "--workers", "http://a", "--tasks", "0"], "tasks 0"),
        (["assign", "lake.a.b", "--strategy", "affinity", "--workers", ",,"], "--workers is missing"),
        (["assign", "--costs", "１,٢", "--tasks", "2"], "１"),
        (["assign", "--costs", "1_000", "--tasks", "2"], "1_000"),
        (["plan-tasks", "ranges", "--entries", "1000000000000", "--batch-size", "1000000"], "batch_size 1000000"),
        (["serve", "--cache-minutes", "inf"], "--cache-minutes inf"),
        (["serve", "--cache-minutes", "nan"], "--cache-minutes nan"),
        (["assign"], "TABLE, --costs, --hints or --estimate is missing"),
        (["assign", "--costs", "1"], "--tasks is missing"),
        (["assign", "--costs", "1", "--tasks", "1", "--list-files"], "TABLE, whose files --list-files lists"),
        (["assign", "--hints", "/nope.json", "--workers", "http://a"], "/nope.json"),
        (["assign", "--estimate", "--bytes", "1", "--files", "1"], "--max-tasks is missing"),
        (["plan-tasks", "--tasks", "1", "--batch-size", "-1"], "-1"),
        (["plan-tasks", "decode", "not a token"], "plan task"),
        (["plan-tasks", "ranges", "--entries", "1,b"], "'b'"),
        (["maintain", "lake.a.b", "--set-metrics", "x"], "--set-metrics 'x'"),
        (["no-such-command"], "no-such-command"),
    ],
)
def test_bad_input_is_status_2_and_one_line_that_names_it(calculator: Cli, arguments: list[str], message: str) -> None:
    result = calculator(*arguments)
    assert result.status == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


def test_the_installed_command_ends_with_the_same_statuses(calculator: Cli) -> None:
    assert calculator.process("assign", "--estimate", "--bytes", "x").status == 2
    result = calculator.process("diagnose", "orders")
    assert (result.status, result.out) == (2, "")
    assert "no settings file is given" in result.err
    assert result.err.splitlines()[-1].startswith("error: table name 'orders'")


@pytest.mark.spark
def test_plan_prints_the_documented_shape(lake: Cli) -> None:
    where = "ordered_on = DATE'2026-01-01' AND length(CAST(ordered_on AS STRING)) > 3"
    document = lake("plan", TABLE, "--where", where, "--where", "true", "--files", "--json").json
    assert document["table"] == TABLE
    first, everything = document["predicates"]
    assert first["where"] == where
    assert len(first["not_pushed_down"]) == 1
    assert first["data_manifests"] == {"total": 6, "scanned": 1, "skipped": 5}
    assert first["data_files"] == {"total": 30, "result": 1, "skipped": 4}
    assert set(first["delete_files"]) >= {"attached", "indexed_position", "indexed_equality", "indexed_dv"}
    assert not any(first["delete_files"].values())
    assert len(first["files"]) == 1
    assert (everything["data_files"]["result"], everything["tasks"]) == (30, 1)


@pytest.mark.spark
def test_what_if_predicts_other_layouts_for_each_predicate(lake: Cli) -> None:
    where, spec = "`order id` = 3", "bucket(4, `order id`)"
    what_if = ["what-if", TABLE, "--where", where, "--spec", spec, "--metrics", "column.order id=none"]
    found = lake(*what_if, "--json").json
    assert [item["id"] for item in found["alternatives"]] == ["rewrite_manifests", "metrics", "partition_spec"]
    for item in found["alternatives"]:
        (predicate,) = item["predicates"]
        assert predicate["where"] == where
        assert predicate["before"]["metadata_bytes"] > 0
    shown = lake(*what_if)
    assert (shown.status, f"Partitioned by {spec}" in shown.out) == (0, True)
    for wrong in (
        ["--spec", "zorder(id)"],
        ["--metrics", "id=none"],
        ["--sort-by", "nope"],
        ["--metrics", "default=x"],
    ):
        assert lake("what-if", TABLE, *wrong).status == 2


@pytest.mark.spark
def test_diagnose_reports_findings_and_fails_on_their_level(lake: Cli) -> None:
    result = lake("diagnose", TABLE, "--json", "--fail-on", "warning")
    assert result.status == 3
    assert {finding["signal"] for finding in result.json["findings"]} >= {"partition_range_days"}
    assert lake("diagnose", TABLE).status == 0


@pytest.mark.spark
def test_assignment_of_a_table_takes_its_numbers_from_the_settings(lake: Cli) -> None:
    document = lake("assign", TABLE, "--json").json
    assert (len(document["assignment"]), len(document["loads"])) == (8, 4)  # 4 workers, 2 partitions a task
    assert sorted(unit for feed in document["assignment"] for unit in feed) == list(range(len(document["files"])))
    greedy = lake("assign", TABLE, "--strategy", "greedy", "--tasks", "3", "--json").json
    assert len(greedy["assignment"]) == len(greedy["loads"]) == 3
    assert greedy["files"] == sorted(document["files"])
    routed = lake("assign", TABLE, "--strategy", "affinity", "--json").json
    assert list(routed["preferred"]) == [f"http://worker-{number}/" for number in range(4)]
    assert any("best effort" in limit for limit in routed["limits"])


@pytest.mark.parametrize("strategy", ["default", "greedy", "affinity"])
def test_the_files_of_each_task_are_a_table(lake: Cli, strategy: str) -> None:
    where = ["--where", "ordered_on < DATE'2026-01-10'"]
    files = lake("assign", TABLE, *where, "--strategy", strategy, "--json").json["files"]
    shown = "".join(lake("assign", TABLE, *where, "--strategy", strategy, "--list-files").out.split())
    assert files
    assert all(file.rpartition("/")[2][:30] in shown.replace("│", "") for file in files)
    assert "{'" not in shown


def test_the_files_of_a_plan_are_a_table(lake: Cli) -> None:
    shown = lake("plan", TABLE, "--where", "`order id` = 3", "--files").out
    assert "residual filter" in shown
    assert "{'" not in shown


def test_plan_tasks_of_a_table_take_options_on_either_side(lake: Cli) -> None:
    files = len(lake("assign", TABLE, "--json").json["files"])
    for arguments in (
        ("--batch-size", "4", TABLE),
        (TABLE, "--batch-size", "4"),
        ("table", TABLE, "--batch-size", "4"),
    ):
        document = lake("plan-tasks", *arguments, "--json").json
        assert (document["inline"], document["requests"]) == (4, -(-files // 4))
    assert lake("plan-tasks", "--json", TABLE).json["inline"] == files  # the settings' batches of 100


def test_a_table_that_cannot_be_measured_is_status_1(lake: Cli) -> None:
    for command in ("diagnose", "plan", "measure"):
        result = lake(command, BROKEN)
        assert result.status == 1
        assert "-m0.avro is missing" in result.err
        assert "Traceback" not in result.err


@pytest.mark.spark
def test_an_unknown_table_or_column_is_status_2(lake: Cli) -> None:
    for command in ("plan", "diagnose", "measure", "maintain"):
        missing = lake(command, "lake.test_cli.nope")
        assert (missing.status, "does not exist" in missing.err) == (2, True)
    result = lake("plan", TABLE, "--where", "nope = 1")
    assert (result.status, "'nope'" in result.err) == (2, True)
    assert lake("plan", TABLE, "--where", "ordered_on = (").status == 2


@pytest.mark.spark
def test_maintain_is_a_dry_run_unless_told_otherwise(lake: Cli) -> None:
    proposal = lake("maintain", TABLE, "--json").json
    (rewrite,) = [item for item in proposal["data"]["proposals"] if item["action"] == "rewrite_manifests"]
    assert rewrite["predicted"]["manifests_after"] < 6
    assert lake("plan", TABLE, "--json").json["predicates"][0]["data_manifests"]["total"] == 6


@pytest.mark.spark
def test_report_without_airflow_is_written_and_names_the_failed_table(lake: Cli) -> None:
    result = lake("report", "--json")
    assert result.status == 1, "one of the tables cannot be measured"
    assert "broken" in result.err
    assert result.json["headline"]["failed"] == 1
    assert lake.settings_file
    home = lake.settings_file.parent / "home"
    written = {path.name for path in (home / "reports" / "latest").iterdir()}
    assert written == {"index.html", "mail.html", "report.md", "report.json"}


@pytest.mark.spark
def test_a_report_of_chosen_tables_replaces_no_other_and_an_unknown_table_changes_nothing(lake: Cli) -> None:
    assert lake.settings_file
    home = lake.settings_file.parent / "home"
    latest = home / "reports" / "latest" / "report.json"
    before = latest.read_text() if latest.exists() else None
    result = lake("report", TABLE)
    assert result.status == 0, result.err
    shown = re.search(r"report: (\S+/runs/cli/\S+/report/index\.html)$", result.out.strip())
    assert shown
    assert Path(shown[1]).exists()
    command = f"planning-health maintain '{TABLE}' --spec-id 0 --settings {lake.settings_file}"
    assert command in result.out.splitlines()
    runs = sorted(path.name for path in (home / "runs" / "cli").iterdir())
    for command in ("report", "measure"):
        unknown = lake(command, TABLE, "lake.test_cli.nope")
        assert (unknown.status, unknown.err.count("\n"), unknown.out) == (2, 1, "")
        assert "table 'lake.test_cli.nope' does not exist" in unknown.err
    assert sorted(path.name for path in (home / "runs" / "cli").iterdir()) == runs
    assert (latest.read_text() if latest.exists() else None) == before


@pytest.mark.spark
def test_maintain_apply_repairs_and_rollback_undoes_it(lake: Cli) -> None:
    before = lake("plan", TABLE, "--json").json
    result = lake.process("maintain", TABLE, "--apply", "--json")
    assert (result.status, result.err) == (0, ""), "Java's own words are not shown"
    assert result.json["data"]["state"] == "done"
    assert lake("plan", TABLE, "--json").json["predicates"][0]["data_manifests"]["total"] == 1
    assert lake("verify", TABLE, "--against", str(before["snapshot_id"])).status == 0
    undone = lake.process("rollback", result.json["run_id"], "--json")
    assert undone.status == 0, undone.err
    after = lake("plan", TABLE, "--json").json
    assert after["snapshot_id"] == before["snapshot_id"]
    assert after["predicates"][0]["data_manifests"]["total"] == 6


@pytest.mark.spark
def test_verify_tells_what_was_committed_and_fails_where_nothing_explains_a_difference(
    lake: Cli, spark: SparkSession
) -> None:
    old = lake("plan", TABLE, "--json").json["snapshot_id"]
    spark.sql("INSERT INTO lake.test_cli.`Late Orders` VALUES (99, DATE'2026-01-01')")
    told = lake("verify", TABLE, "--against", str(old), "--json")
    assert told.status == 0, told.err
    new = told.json["snapshot_id"]
    observed = {check["name"]: check["observed"] for check in told.json["data"]["checks"]}
    assert observed[f"data files of append {new}"] == "1 added (1 row)"
    spark.sql(f"CALL lake.system.rollback_to_snapshot('test_cli.`Late Orders`', {old})")
    result = lake("verify", TABLE, "--against", str(new))
    assert result.status == 1
    assert re.search(r"does not hold what snapshot \d+ held: \d of \d+ checks failed$", result.err.strip())
    assert lake("verify", TABLE, "--against", "17").status == 2
    unknown = lake("rollback", "no-such-run")
    assert (unknown.status, "'no-such-run'" in unknown.err) == (2, True)


def test_an_action_ends_with_its_numbers_before_as_predicted_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    maintain.show_action(action())
    shown = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert ["state:", "done"] in shown
    assert ["Manifests", "42", "6", "6"] in shown
    assert ["Metadata", "size", "395", "KB", "352", "KB", "366", "KB"] in shown


@pytest.mark.spark
def test_a_dry_run_ends_with_the_command_that_carries_it_out(lake: Cli) -> None:
    shown = lake("maintain", TABLE, "--sort-by", "ordered_on_day").out.splitlines()
    assert shown[-1] == (
        f"planning-health maintain '{TABLE}' --sort-by ordered_on_day --settings {lake.settings_file} --apply"
    )


def test_what_comes_from_outside_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(["[/]"], [["[/b]"], ["[red]x"]], title="\n'[/]'")
    output.say("file:///[/]/home[bold]\x1b[31m\udcff")
    with output.errors.status(f"maintaining {output.plain('lake.x.`[/]`')}"):
        pass
    printed = capsys.readouterr().out
    for text in ("'[/]'", "[/b]", "[red]x", "file:///[/]/home[bold]\\u001b[31m\\udcff"):
        assert text in printed


def test_half_a_surrogate_pair_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"table": "\udcff"})
    printed = capsys.readouterr().out
    assert printed.isascii()
    assert json.loads(printed) == {"table": "\udcff"}


@pytest.mark.parametrize("argument", ["lake.[/].\udcff`", "[/]", "\udcff"])
def test_an_error_repeats_markup_and_what_is_not_unicode(calculator: Cli, argument: str) -> None:
    result = calculator("diagnose", argument)
    assert (result.status, result.err.startswith("error: table name")) == (2, True)
    result.err.encode()


def test_an_error_repeats_no_long_input(calculator: Cli) -> None:
    result = calculator("diagnose", "x" * 5000)
    assert result.status == 2
    assert "is not of the form catalog.namespace.table" in result.err
    assert len(result.err) < 600


def test_a_long_table_for_people_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch.object(output, "MOST_ROWS", 2):
        output.print_table(["n"], [[number] for number in range(7)])
    assert "5 rows more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("document", "message"),
    [("[" * 100_000, "nested too deeply"), ('[{"task": NaN, "hints": []}]', "NaN"), ('[{"task": 1e999}]', "1e999")],
)
def test_json_that_is_none_is_status_2(calculator: Cli, tmp_path: Path, document: str, message: str) -> None:
    hints = tmp_path / "hints.json"
    hints.write_text(document)
    for result in (
        calculator("assign", "--hints", str(hints), "--workers", "http://a", "--json"),
        calculator("plan-tasks", "encode", stdin=document),
    ):
        assert (result.status, message in result.err) == (2, True), result.err
