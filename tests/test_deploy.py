"""The Compose stack, as far as it can be checked without a container runtime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from planning_health.catalogs import spark_conf
from planning_health.settings import load_settings

REPOSITORY = Path(__file__).parents[1]


def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    return document


def test_the_compose_file_follows_the_compose_schema() -> None:
    checker = Path(sys.executable).parent / "check-jsonschema"
    command = [checker, "--builtin-schema", "vendor.compose-spec", REPOSITORY / "docker-compose.yml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_compose_file_mounts_and_builds_is_in_the_repository() -> None:
    services = compose()["services"]
    assert (REPOSITORY / services["airflow-init"]["build"]["dockerfile"]).exists()
    mounts = [
        volume.split(":")[0]
        for service in services.values()
        for volume in service.get("volumes", [])
        if volume.startswith(".")
    ]
    assert [mount for mount in mounts if not (REPOSITORY / mount).exists()] == []


def test_nothing_is_published_beyond_this_machine_and_no_secret_has_a_default() -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text()
    ports = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert ":-" not in text


def test_the_stacks_settings_are_valid_and_keep_secrets_out_of_sparks_configuration() -> None:
    settings = load_settings(REPOSITORY / "deploy" / "settings.yaml")
    conf = spark_conf(settings)
    assert conf["spark.sql.catalog.lake.io-impl"] == "org.apache.iceberg.aws.s3.S3FileIO"
    secret = [key for key in conf if "secret" in key.rpartition(".")[2] or key.endswith("jdbc.password")]
    assert secret, "the store and the catalog have secrets"
    assert all(conf[key].startswith("${env:") for key in secret)
