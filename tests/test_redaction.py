"""No secret that was read, and nothing that looks like one in an address, stands in a message."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from planning_health.catalogs.definition import secrets
from planning_health.catalogs.spark_catalog import spark_conf
from planning_health.errors import InputError
from planning_health.maintenance.steps import StepLog
from planning_health.redaction import first_line, redact
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument, load_settings
from planning_health.stages.run_record import start_run


def rest(**properties: str) -> SettingsDocument:
    catalog = {"properties": {"type": "rest", "uri": "http://c", **properties}, "secrets": {"token": {"env": "TOK"}}}
    return SettingsDocument.model_validate({"home": "/h", "catalogs": {"lake": catalog}})


def test_a_secret_that_was_read_is_masked_in_errors_results_and_messages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOK", "hunter2-bearer\n")
    secrets(rest(), "lake")
    header = ValueError("Invalid header value b'Bearer hunter2-bearer\\n'")
    assert "hunter2" not in first_line(header)
    assert "hunter2" not in str(InputError(f"failed: {header}"))
    folder = RunFolder(str(tmp_path), "cli", "r")
    folder.write_result("measure", status="failed", reason="token hunter2-bearer was refused")
    assert "hunter2" not in (tmp_path / folder.result_path("measure")).read_text()


@pytest.mark.parametrize(
    "text",
    [
        "catalog uri 'postgresql://etl:hunter2@db/iceberg'",
        "Max retries exceeded with url: /v1/config?warehouse=x&token=hunter2 (Caused by …)",
        "https://store/x?sv=1&sig=hunter2",
    ],
)
def test_addresses_lose_their_credentials(text: str) -> None:
    assert "hunter2" not in redact(text)
    assert "***" in redact(text)


def test_sparks_configuration_holds_a_reference_and_never_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOK", "hunter2-bearer")
    conf = spark_conf(rest())
    assert conf["spark.sql.catalog.lake.token"] == "${env:TOK}"
    assert "hunter2" not in repr(conf)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        *(
            ("properties", key, "hunter2")
            for key in ("token", "s3.secret-access-key", "jdbc.password", "credential", "s3.session-token")
        ),
        ("properties", "adls.account-key.lake", "hunter2"),
        ("properties", "uri", "https://etl:hunter2@catalog/api"),
        ("properties", "uri", "jdbc:postgresql://db/iceberg?user=etl&password=hunter2"),
        ("conf", "spark.hadoop.fs.s3a.secret.key", "hunter2"),
        ("conf", "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net", "hunter2"),
        ("conf", "spark.ssl.keyPassword", "hunter2"),
    ],
)
def test_a_secret_in_plain_text_is_refused_before_anything_is_written(
    tmp_path: Path, part: str, key: str, value: str
) -> None:
    document: dict[str, dict[str, object]] = {
        "catalogs": {
            "lake": {"properties": {"type": "rest", "uri": "http://c"} | ({key: value} if part != "conf" else {})}
        },
        "spark": {"conf": {key: value} if part == "conf" else {}},
    }
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(document))
    with pytest.raises(InputError, match=re.escape(key)) as caught:
        load_settings(file)
    assert "a secret" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.hadoop.fs.s3a.secret.key", "${env:S3_SECRET}"),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"),
        ("spark.kubernetes.driver.secrets.lake", "/etc/secrets"),
    ],
)
def test_what_only_names_a_secret_is_allowed_in_sparks_configuration(key: str, value: str) -> None:
    document = rest().model_dump() | {"spark": {"conf": {key: value}}}
    assert SettingsDocument.model_validate(document).spark.conf == {key: value}


@pytest.mark.parametrize("warehouse", ["abfss://container@account.dfs.core.windows.net/lake", "s3://lake/a:b@c"])
def test_an_at_sign_alone_is_no_secret(warehouse: str) -> None:
    assert rest(warehouse=warehouse).catalogs["lake"].properties["warehouse"] == warehouse


@pytest.mark.parametrize(
    "key",
    ["jdbc.password", "jdbc.user", "s3.secret-access-key", "token", "adls.account-key.x", "adls.connection-string"],
)
def test_sparks_own_pages_mask_what_looks_like_a_secret(key: str) -> None:
    assert re.search(spark_conf(rest())["spark.redaction.regex"], f"spark.sql.catalog.lake.{key}")


def test_the_settings_that_a_run_keeps_hold_references_and_never_the_value(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOK", "hunter2-bearer")
    settings = rest()
    secrets(settings, "lake")
    folder = RunFolder(str(tmp_path), "cli", "r")
    start_run(settings, folder)
    kept = [path.read_text() for path in tmp_path.rglob("*.json")]
    assert any('"env":' in text for text in kept)
    assert not any("hunter2" in text for text in kept)


def test_the_reason_of_a_failed_step_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOK", "hunter2-bearer")
    secrets(rest(), "lake")
    log = StepLog()
    with pytest.raises(RuntimeError), log.step("guard"):
        raise RuntimeError("Authorization: Bearer hunter2-bearer")
    assert log.as_json()[0]["reason"] == "Authorization: Bearer ***"
