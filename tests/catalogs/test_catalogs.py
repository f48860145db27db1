"""One definition configures both engines, and secrets are in neither's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planning_health.catalogs import discover_tables, load_pyiceberg_catalog, spark_conf
from planning_health.catalogs.definition import secrets
from planning_health.catalogs.java import require_java
from planning_health.catalogs.pyiceberg_catalog import pyiceberg_properties
from planning_health.errors import InputError
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


@pytest.mark.parametrize("kind", ["rest", "glue", "hive"])
def test_other_catalogs_keep_icebergs_keys(kind: str) -> None:
    given = {"type": kind, "uri": "http://c", "warehouse": "w"}
    assert pyiceberg_properties(given) == given


def test_an_unsupported_catalog_says_what_was_expected() -> None:
    with pytest.raises(InputError, match=r"jdbc:mysql.*expected jdbc:sqlite"):
        pyiceberg_properties({"type": "jdbc", "uri": "jdbc:mysql://x"})
    with pytest.raises(InputError, match="Hadoop"):
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
    with pytest.raises(InputError, match="catalog 'nope' is not defined in the settings; defined: lake"):
        load_pyiceberg_catalog(settings_with({"type": "rest", "uri": "http://c"}), "nope")


def test_an_unreachable_catalog_is_one_line_without_credentials(tmp_path: Path) -> None:
    broken = tmp_path / "file"
    broken.write_text("not a database")
    with pytest.raises(InputError, match="catalog 'lake' cannot be") as caught:
        discover_tables(settings_with({"type": "jdbc", "uri": f"jdbc:sqlite:{broken}", "warehouse": str(tmp_path)}))
    assert "\n" not in str(caught.value)
    assert first_line(Exception("no route to postgresql://me:secret@db/x\nmore")) == "no route to postgresql://***@db/x"


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
