"""One definition configures both engines, and secrets are in neither's configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from planning_health.catalog_contents import no_such_table
from planning_health.catalogs import TableName, discover_tables, load_pyiceberg_catalog, spark_conf
from planning_health.catalogs.definition import secrets
from planning_health.catalogs.existence import check_existence
from planning_health.catalogs.java import require_java
from planning_health.catalogs.pyiceberg_catalog import pyiceberg_properties
from planning_health.errors import InputError
from planning_health.metadata import record_with_pyiceberg
from planning_health.redaction import first_line
from planning_health.settings import SettingsDocument


def settings_with(properties: dict[str, str], secret: dict[str, Any] | None = None) -> SettingsDocument:
    catalog = {"properties": properties, "secrets": secret or {}}
    return SettingsDocument.model_validate({"home": "/home/x", "catalogs": {"lake": catalog}})


@pytest.mark.parametrize(
    ("iceberg", "uri"),
    [
        ({"uri": "jdbc:sqlite:/data/c.db"}, "sqlite:////data/c.db"),
        ({"uri": "jdbc:postgresql://db:5432/ice"}, "postgresql+psycopg2://db:5432/ice"),
        (
            {"uri": "jdbc:postgresql://db/ice", "jdbc.user": "me", "jdbc.password": "p@ss/1"},
            "postgresql+psycopg2://me:p%40ss%2F1@db/ice",
        ),
    ],
)
def test_a_jdbc_catalog_is_pyicebergs_sql_catalog(iceberg: dict[str, str], uri: str) -> None:
    translated = pyiceberg_properties({"type": "jdbc", "warehouse": "/w", **iceberg})
    assert translated["type"] == "sql"
    assert translated["uri"] == uri
    assert translated["warehouse"] == "/w"
    assert not any(key.startswith("jdbc.") for key in translated)


def test_a_database_that_pyiceberg_describes_itself_is_not_made_ready_for_a_catalog(tmp_path: Path) -> None:
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": "/w"}
    assert pyiceberg_properties(given) == {**given, "init_catalog_tables": "false"}
    with pytest.raises(InputError, match=r"/catalog\.db does not exist"):
        load_pyiceberg_catalog(settings_with(given), "lake")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["rest", "glue", "hive"])
def test_other_catalogs_keep_icebergs_keys(kind: str) -> None:
    given = {"type": kind, "uri": "http://c", "warehouse": "w"}
    assert pyiceberg_properties(given) == given


def test_an_unsupported_catalog_says_what_was_expected() -> None:
    with pytest.raises(InputError, match=r"jdbc:mysql.*expected jdbc:sqlite"):
        pyiceberg_properties({"type": "jdbc", "uri": "jdbc:mysql://x"})
    with pytest.raises(InputError, match="type 'hadoop' needs Spark: name tables, and measure them with --spark"):
        pyiceberg_properties({"type": "hadoop"})


def test_secrets_reach_the_catalog_and_no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_with(
        {"type": "jdbc", "uri": "jdbc:postgresql://db/ice", "warehouse": "${home}/w"},
        {"jdbc.password": {"env": "PH_TEST_PASSWORD"}, "token": {"airflow_connection": "my-conn"}},
    )
    with pytest.raises(InputError, match="PH_TEST_PASSWORD is not set"):
        secrets(settings, "lake")
    monkeypatch.setenv("PH_TEST_PASSWORD", "hunter2")
    monkeypatch.setenv("PLANNING_HEALTH_SECRET_MY_CONN_PASSWORD", "hunter3")
    assert secrets(settings, "lake") == {"jdbc.password": "hunter2", "token": "hunter3"}
    conf = spark_conf(settings)
    assert conf["spark.sql.catalog.lake.warehouse"] == "/home/x/w"
    assert "hunter" not in repr(conf)
    assert "hunter" not in settings.model_dump_json()


def test_tables_are_never_cached_and_spark_conf_of_the_settings_wins() -> None:
    settings = settings_with({"type": "rest", "uri": "http://c"})
    assert spark_conf(settings)["spark.sql.catalog.lake.cache-enabled"] == "false"
    changed = settings.model_copy(
        update={"spark": settings.spark.model_copy(update={"conf": {"spark.sql.session.timeZone": "CET"}})}
    )
    assert spark_conf(changed)["spark.sql.session.timeZone"] == "CET"


def test_an_unknown_catalog_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"catalog 'nope' is not defined in the settings\. Defined: lake"):
        load_pyiceberg_catalog(settings_with({"type": "rest", "uri": "http://c"}), "nope")
    with pytest.raises(InputError, match=r"'lakes' is not defined .*, did you mean 'lake'\? Defined: lake"):
        load_pyiceberg_catalog(settings_with({"type": "rest", "uri": "http://c"}), "lakes")


def test_an_unreachable_catalog_is_one_line_without_credentials(tmp_path: Path) -> None:
    broken = tmp_path / "file"
    broken.write_text("not a database")
    with pytest.raises(InputError, match="catalog 'lake' cannot be") as caught:
        discover_tables(settings_with({"type": "jdbc", "uri": f"jdbc:sqlite:{broken}", "warehouse": str(tmp_path)}))
    assert "\n" not in str(caught.value)
    assert first_line(Exception("no route to postgresql://me:secret@db/x\nmore")) == "no route to postgresql://***@db/x"


def database(path: Path, **tables: list[str]) -> str:
    """A SQLite database with empty tables of some catalogs, ``namespace.name`` each."""
    schema = Schema(NestedField(1, "id", LongType()))
    for name, identifiers in tables.items():
        catalog = SqlCatalog(name, uri=f"sqlite:///{path}", warehouse=f"file://{path.parent}/warehouse")
        for identifier in identifiers:
            catalog.create_namespace_if_not_exists(identifier.partition(".")[0])
            catalog.create_table(identifier, schema)
    return str(path)


def test_a_name_that_the_database_does_not_know_is_answered_with_those_that_it_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = database(tmp_path / "c.db", prod=["sales.orders"], test=["sales.orders"])
    settings = settings_with({"type": "jdbc", "uri": f"jdbc:sqlite:{path}", "warehouse": str(tmp_path)})
    names = "its database holds tables of catalog 'prod', 'test' only: expected one of these names in the settings"
    orders = TableName.parse("lake.sales.orders")
    with pytest.raises(InputError, match=f"'lake.sales.orders' does not exist in catalog 'lake': {names}"):
        record_with_pyiceberg(load_pyiceberg_catalog(settings, "lake"), orders)
    with pytest.raises(InputError, match=names):
        check_existence(settings, [orders])
    assert discover_tables(settings) == []
    assert f"catalog 'lake' holds no tables: {names}" in caplog.text


@pytest.mark.parametrize(
    ("unknown", "ending"),
    [
        ("lake.sales.ordres", ", did you mean 'lake.sales.orders'?"),
        ("lake.Sales.Orders", ", did you mean 'lake.sales.orders'?"),
        ("lake.sale.orders", ", did you mean 'lake.sales.orders'?"),
        ("lake.sales.`late order`", ", did you mean 'lake.sales.`late orders`'?"),
        ("lake.sales.returns of 2026.new", ", did you mean 'lake.sales.`returns of 2026.new`'?"),
        ("lake.finance.ledger", "."),
    ],
)
def test_an_unknown_table_is_answered_with_the_closest(tmp_path: Path, unknown: str, ending: str) -> None:
    path = database(tmp_path / "c.db", lake=["sales.orders", "sales.late orders", "ops.readings"])
    with_a_dot = Schema(NestedField(1, "id", LongType()))
    SqlCatalog("lake", uri=f"sqlite:///{path}", warehouse=str(tmp_path)).create_table(
        ("sales", "returns of 2026.new"), with_a_dot
    )
    settings = settings_with({"type": "sql", "uri": f"sqlite:///{path}"})
    with pytest.raises(InputError) as caught:
        check_existence(settings, [TableName.parse("lake.sales.orders"), TableName.parse(unknown)])
    assert str(caught.value) == f"table {str(TableName.parse(unknown))!r} does not exist in catalog 'lake'{ending}"


def test_that_the_neighbours_of_a_missing_table_cannot_be_listed_is_no_error_of_its_own() -> None:
    catalog = mock.Mock(spec=Catalog)
    catalog.list_namespaces.side_effect = PermissionError("no")
    assert str(no_such_table(catalog, TableName.parse("lake.a.b"))) == (
        "table 'lake.a.b' does not exist in catalog 'lake'"
    )


def test_a_package_that_a_catalog_needs_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("boto3", "thrift", "psycopg2"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("glue", "hive"):
        monkeypatch.delitem(sys.modules, f"pyiceberg.catalog.{name}", raising=False)
    for properties, said in (
        ({"type": "glue"}, r"boto3 is not installed: pip install '\.\[glue\]'"),
        ({"type": "hive", "uri": "thrift://h:1"}, r"thrift is not installed: pip install '\.\[hive\]'"),
        ({"type": "jdbc", "uri": "jdbc:postgresql://h/d"}, r"psycopg2 is .*: pip install '\.\[postgres\]'"),
    ):
        with pytest.raises(InputError, match=f"catalog 'lake' cannot be opened: {said}"):
            load_pyiceberg_catalog(settings_with(properties), "lake")


def test_a_missing_or_wrong_java_gives_the_install_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"Java was not found.*install Java 17 or 21"):
        require_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    with pytest.raises(InputError, match=r"Java 11 at .* is not supported"):
        require_java()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\"' >&2\n")
    assert require_java() == 21
