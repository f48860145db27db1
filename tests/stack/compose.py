"""docker-compose.yml for this machine: loopback addresses, folders and secrets stand where the containers' stand."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography.fernet import Fernet

REPOSITORY = Path(__file__).parents[2]
_VARIABLE = re.compile(r"\$(?:\$|\{(\w+)(?::\?[^}]*)?\})")
_LISTENERS = (
    *("airflow", "postgres", "spark-master", "spark-master-ui", "spark-worker-ui", "store", "store-grpc"),
    *(f"store-{part}{kind}" for part in ("master", "volume", "filer") for kind in ("", "-grpc")),
)
_VOLUMES = ("auth", "home", "logs", "objects", "spark")


@dataclass(frozen=True)
class LocalCompose:
    """The Compose file as processes of this machine read it.

    Attributes:
        folder: holds the volumes.
        ports: by the name of what listens there.
        secrets: the variables that the Compose file takes from its environment.
    """

    folder: Path
    ports: Mapping[str, int]
    secrets: Mapping[str, str]

    def address(self, listener: str) -> str:
        """Host and port of one of the listeners."""
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def places(self) -> dict[str, str]:
        """What stands for each of the containers' addresses and paths; of two that fit, the first is taken."""
        return {
            "http://airflow-api:8080": f"http://{self.address('airflow')}",
            "http://localhost:8080/api": f"http://{self.address('airflow')}/api",
            "http://localhost:8080": f"http://{self.address('spark-master-ui')}",
            "http://localhost:8081": f"http://{self.address('spark-worker-ui')}",
            "http://localhost:8333": f"http://{self.address('store')}",
            "http://object-store:8333": f"http://{self.address('store')}",
            "object-store:9333": f"{self.address('store-master')}.{self.ports['store-master-grpc']}",
            "@postgres/": f"@{self.address('postgres')}/",
            "//postgres/": f"//{self.address('postgres')}/",
            "spark://spark-master:7077": f"spark://{self.address('spark-master')}",
            "--host spark-master": "--host 127.0.0.1",
            "-dir=/data": f"-dir={self.folder / 'objects'}",
            "/etc/seaweedfs/s3.json": str(self.folder / "s3.json"),
            "/opt/planning-health": str(REPOSITORY),
            "/opt/airflow/auth": str(self.folder / "auth"),
            "/var/planning-health": str(self.folder / "home"),
        }

    def read(self, file: str) -> dict[str, Any]:
        """A YAML file of the repository, with everything that stands for this machine."""
        text = (REPOSITORY / file).read_text()
        text = _VARIABLE.sub(lambda match: self.secrets[match[1]] if match[1] else "$", text)
        places = self.places
        names = re.compile("|".join(map(re.escape, places)))
        document: dict[str, Any] = yaml.safe_load(names.sub(lambda match: places[match[0]], text))
        return document

    def service(self, name: str) -> dict[str, Any]:
        """A service of the Compose file."""
        service: dict[str, Any] = self.read("docker-compose.yml")["services"][name]
        return service

    @property
    def settings_file(self) -> Path:
        """Where the settings are for this machine."""
        return self.folder / "settings.yaml"

    def write_settings(self) -> None:
        """Writes the stack's own settings; Spark fetches the jars that the image holds."""
        document = self.read("deploy/settings.yaml")
        document["spark"]["packages"] = image_packages()
        document["spark"]["conf"] = {
            "spark.sql.shuffle.partitions": "4",
            "spark.eventLog.enabled": "true",  # the whole configuration, where the search for secrets finds it
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": (self.folder / "spark").as_uri(),
        }
        self.settings_file.write_text(yaml.safe_dump(document))


def local_compose(folder: Path) -> LocalCompose:
    """New secrets and free ports; the volumes are empty folders."""
    for volume in _VOLUMES:
        (folder / volume).mkdir()
    secrets = {name: os.urandom(16).hex() for name in ("POSTGRES_PASSWORD", "S3_SECRET_KEY", "AIRFLOW_JWT_SECRET")}
    secrets["AIRFLOW_FERNET_KEY"] = Fernet.generate_key().decode()
    return LocalCompose(folder, _free_ports(), secrets)


def image_packages() -> list[str]:
    """The jars that deploy/Dockerfile bakes into the image, as Maven coordinates."""
    dockerfile = (REPOSITORY / "deploy" / "Dockerfile").read_text()
    (line,) = [line for line in dockerfile.splitlines() if line.startswith("ARG SPARK_PACKAGES=")]
    return line.partition("=")[2].split(",")


def _free_ports() -> dict[str, int]:
    """Ports that nobody listens on; all are held until the last is found, so that no two are the same."""
    with ExitStack() as stack:
        probes = {name: stack.enter_context(socket.socket()) for name in _LISTENERS}
        for probe in probes.values():
            probe.bind(("127.0.0.1", 0))
        return {name: int(probe.getsockname()[1]) for name, probe in probes.items()}
