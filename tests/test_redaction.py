"""No secret that was read, and nothing that looks like one in an address, stands in a message."""

from __future__ import annotations

from pathlib import Path

import pytest

from planning_health.catalogs.definition import properties, secrets
from planning_health.catalogs.spark_catalog import spark_conf
from planning_health.errors import InputError
from planning_health.redaction import first_line, redact
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument


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


@pytest.mark.parametrize("key", ["token", "s3.secret-access-key", "jdbc.password", "credential", "s3.session-token"])
def test_a_secret_in_plain_text_is_refused_by_its_key(key: str) -> None:
    with pytest.raises(InputError, match=f"{key} is a secret: expected it under `secrets`") as caught:
        properties(rest(**{key: "hunter2"}), "lake")
    assert "hunter2" not in str(caught.value)
