"""A newcomer's first commands, on a SQLite catalog of their own: what there is, and one clear line for each mistake."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField
from tests.cli.test_cli import Cli, Result

TABLES = [
    {"match": "lake.ops.*", "tolerate_failure": True},
    {"match": "lake.sales.returns", "exclude": True},
    {"match": "lake.sales.*"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog with three tables; a manifest of ``ops.broken`` is missing."""
    folder = tmp_path_factory.mktemp("first_use")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "ordered_on", DateType()))
    for identifier in ("sales.orders", "sales.returns", "ops.broken", "notes.n"):
        catalog.create_namespace_if_not_exists(identifier.partition(".")[0])
        table = catalog.create_table(identifier, schema)
        rows = {"id": pa.array([1, 2], pa.int64()), "ordered_on": pa.array([date(2026, 1, 1)] * 2)}
        table.append(pa.table(rows))
    for manifest in folder.glob("warehouse/ops/broken/metadata/*-m0.avro"):
        manifest.unlink()
    return folder


class FirstUse:
    """Runs commands with settings of one's own, written beside the catalog."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, properties: dict[str, Any] | None = None, **settings: Any) -> Result:
        own = {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db"}
        secrets = settings.pop("secrets", {})
        document = {"catalogs": {"lake": {"properties": properties or own, "secrets": secrets}}, "tables": TABLES}
        file = self.folder / "settings.yaml"
        file.write_text(yaml.safe_dump(document | settings))
        return Cli(file)(*arguments)


@pytest.fixture(scope="module")
def first_use(folder: Path) -> FirstUse:
    return FirstUse(folder)


def test_tables_lists_what_there_is_with_the_rule_that_matches(first_use: FirstUse) -> None:
    found = first_use("tables", "--json").json["tables"]
    assert [list(table.values()) for table in found] == [
        ["lake.notes.n", None, None, "no rule matches"],
        ["lake.ops.broken", 1, "lake.ops.*", None],
        ["lake.sales.orders", 3, "lake.sales.*", None],
        ["lake.sales.returns", 2, "lake.sales.returns", "excluded"],
    ]
    shown = first_use("tables")
    assert (shown.status, shown.out.splitlines()[-1]) == (0, "4 tables, 2 measured")
    history = {"catalog": "lake", "table": "notes.n"}
    assert first_use("tables", "--json", history=history).json["tables"][0]["left_out"] == "the history"


def test_a_tolerated_failure_is_shown_and_fails_neither_measure_nor_report(first_use: FirstUse) -> None:
    for arguments in (["measure"], ["measure", "lake.ops.broken"], ["report", "lake.ops.broken"]):
        result = first_use(*arguments)
        assert result.status == 0, result.err
        assert "is missing" in " ".join((result.err + result.out).split())
    strict = first_use("measure", tables=[{"match": "lake.*"}])
    assert strict.status == 1
    assert strict.err.splitlines()[-1] == "error: 1 of 4 tables could not be measured: lake.ops.broken"


def test_an_unknown_table_is_answered_with_the_closest_and_a_wrong_catalog_name_with_the_database_s(
    first_use: FirstUse, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for command in ("diagnose", "plan", "measure", "report", "maintain"):
        result = first_use(command, "lake.sales.ordres")
        assert (result.status, result.out) == (2, "")
        assert result.err.endswith("does not exist in catalog 'lake', did you mean 'lake.sales.orders'?\n")
    own = {"properties": {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/catalog.db"}}
    result = first_use("diagnose", "mine.sales.orders", catalogs={"mine": own})
    assert result.err.endswith(
        "its database holds tables of catalog 'lake' only: expected one of these names in the settings\n"
    )
    nothing = first_use("measure", catalogs={"mine": own})
    assert nothing.status == 2
    assert "catalog 'mine' holds no tables: its database holds tables of catalog 'lake' only" in caplog.text
    assert nothing.err.splitlines()[-1].endswith("`planning-health tables` lists them all")


def test_a_table_s_name_without_its_catalog_is_answered_with_the_only_catalog_s(first_use: FirstUse) -> None:
    for arguments in (["diagnose"], ["plan"], ["measure"], ["maintain"], ["verify", "--against", "1"]):
        result = first_use(*arguments, "sales.orders")
        assert result.status == 2
        assert result.err.startswith("error: table name 'sales.orders' is not of the form catalog.namespace.table")
        assert result.err.endswith(", did you mean 'lake.sales.orders'?\n")
    for unlikely in ("orders", "lake.orders"):
        assert "did you mean" not in first_use("diagnose", unlikely).err
    two = {name: {"properties": {"type": "rest", "uri": "http://127.0.0.1:9"}} for name in ("a", "b")}
    assert "did you mean" not in first_use("diagnose", "sales.orders", catalogs=two).err


def test_an_unknown_column_and_statistics_of_one_are_answered_with_the_closest(first_use: FirstUse) -> None:
    result = first_use("plan", "lake.sales.orders", "--where", "orderd_on = DATE'2026-01-01'")
    assert (result.status, result.out) == (2, "")
    assert result.err == "error: unknown column 'orderd_on', did you mean 'ordered_on'? The table has id, ordered_on\n"
    result = first_use("maintain", "lake.sales.orders", "--set-metrics", "column.orderd_on=full")
    assert "column 'orderd_on' does not exist, did you mean 'ordered_on'? Known: id, ordered_on" in result.err


def test_without_settings_and_without_the_demonstration_lake_it_is_said_how_to_begin(tmp_path: Path) -> None:
    newcomer = Cli()
    newcomer.environment["PLANNING_HEALTH_SETTINGS"] = ""
    newcomer.environment["PLANNING_HEALTH_HOME"] = str(tmp_path)
    result = newcomer("tables")
    assert (result.status, result.out) == (2, "")
    assert "`make demo` builds that; for tables of your own write a settings file: README.md" in result.err
    assert "## First use on your own catalog\n" in (Path(__file__).parents[2] / "README.md").read_text()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"type": "rest", "uri": "http://127.0.0.1:9/"}, "cannot be opened at http://127.0.0.1:9/: Connection refused"),
        ({"type": "rest"}, "type 'rest' needs a uri: expected http://host or https://host"),
        ({"type": "sql", "uri": "catalog.db"}, "uri 'catalog.db' is none of type 'sql': expected sqlite:////path"),
        ({"type": "jdbc", "uri": "/data/c.db"}, "uri '/data/c.db' is none of type 'jdbc': expected jdbc:sqlite:/path"),
        ({"type": "jdbc", "uri": "sqlite:////c.db"}, "is none of type 'jdbc': expected jdbc:sqlite:/path"),
        ({"type": "sql", "uri": "sqlite:////nowhere/c.db"}, "cannot be opened: /nowhere/c.db does not exist"),
        (
            {"type": "sql", "uri": "sqlite:///tmp/x/cat.db"},
            "tmp/x/cat.db does not exist in the working folder; an absolute path needs four slashes: "
            "sqlite:////tmp/x/cat.db",
        ),
        ({"type": "jdbc", "uri": "jdbc:mysql://h/d"}, "'jdbc:mysql://h/d' is not supported without Spark"),
        ({"type": "jdbc", "uri": "jdbc:postgresql://127.0.0.1:9/d"}, "port 9 failed: Connection refused"),
        (
            {"type": "hadoop", "warehouse": "/w"},
            "type 'hadoop' needs Spark: name tables, and measure them with --spark",
        ),
        ({"catalog-impl": "org.x.Y"}, "catalog-impl 'org.x.Y' needs Spark"),
        ({"type": "jdcb", "uri": "x"}, "properties.type 'jdcb' is unknown, did you mean 'jdbc'? Known types: jdbc,"),
    ],
)
def test_a_catalog_that_cannot_be_opened_is_one_line_with_the_value_and_what_was_expected(
    first_use: FirstUse, properties: dict[str, Any], message: str
) -> None:
    for command in (["tables"], ["diagnose", "lake.sales.orders"]):
        result = first_use(*command, properties=properties)
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1), result.err
        assert message in result.err


class _Refusing(BaseHTTPRequestHandler):
    """A REST catalog that knows nobody; below ``/page`` it is none at all."""

    def log_message(self, *_: object) -> None:
        """Keeps the requests out of the tests' output."""

    def do_GET(self) -> None:
        if self.path.startswith("/page"):
            self._answer(200, "<html>Welcome</html>")
        else:
            error = {"message": "who are you?", "type": "NotAuthorizedException", "code": 401}
            self._answer(401, json.dumps({"error": error}))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(401, json.dumps({"error": "invalid_client", "error_description": "wrong secret"}))

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def refusing() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_wrong_credentials_are_one_line_without_them(
    first_use: FirstUse, refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for properties, secrets, message in (
        ({"uri": refusing}, {}, f"at {refusing}: UnauthorizedError: NotAuthorizedException: who are you?"),
        ({"uri": refusing}, {"credential": {"env": "FIRST_USE"}}, "OAuthError: invalid_client: wrong secret"),
        ({"uri": f"{refusing}/page"}, {}, f"at {refusing}/page: unexpected answer: Invalid JSON"),
    ):
        monkeypatch.setenv("FIRST_USE", "me:hunter2hunter2")
        result = first_use("diagnose", "lake.sales.orders", properties={"type": "rest", **properties}, secrets=secrets)
        assert (result.status, result.out, result.err.count("\n")) == (2, "", 1), result.err
        assert message in result.err
        assert "hunter2" not in result.err
    monkeypatch.delenv("FIRST_USE")
    unset = first_use("tables", secrets={"credential": {"env": "FIRST_USE"}})
    assert "needs credential: environment variable FIRST_USE is not set" in unset.err


def test_a_warehouse_that_cannot_be_read_names_the_file(first_use: FirstUse, folder: Path) -> None:
    moved = folder / "elsewhere"
    (folder / "warehouse").rename(moved)
    try:
        result = first_use("diagnose", "lake.sales.orders")
    finally:
        moved.rename(folder / "warehouse")
    assert (result.status, result.err.count("\n")) == (1, 1)
    assert "/warehouse/sales/orders/metadata/" in result.err


def test_spark_without_java_says_what_to_install(first_use: FirstUse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    result = first_use("measure", "lake.sales.orders", "--spark")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "Java was not found (JAVA_HOME is '/nowhere', which has no bin/java): install Java 17 or 21" in result.err
