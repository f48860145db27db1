"""The services of docker-compose.yml as plain processes on loopback: PostgreSQL, SeaweedFS, a Spark cluster."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import s3fs
import yaml

REPOSITORY = Path(__file__).parents[2]
DATABASES = ("airflow", "iceberg")
USER, STORE_KEY, BUCKET = "airflow", "lake", "lake"
_START_SECONDS = 90


class MissingToolError(AssertionError):
    """A program of the operating system that the stack needs is not installed."""


@dataclass(frozen=True)
class Stack:
    """Addresses and secrets of the running services.

    Attributes:
        postgres: host and port of PostgreSQL.
        store: host and port of the object store's S3 interface.
        spark: the Spark master.
        password: of PostgreSQL's user.
        store_secret: the secret key of the object store.
    """

    postgres: str
    store: str
    spark: str
    password: str
    store_secret: str

    def settings(self, home: Path) -> Path:
        """Writes the Compose stack's own settings with these addresses, and the demonstration's table rules."""
        text = (REPOSITORY / "deploy" / "settings.yaml").read_text()
        for service, address in (("//postgres/", f"//{self.postgres}/"), ("object-store:8333", self.store)):
            assert service in text, f"deploy/settings.yaml does not name {service}"
            text = text.replace(service, address)
        document: dict[str, Any] = yaml.safe_load(text)
        demo = yaml.safe_load((REPOSITORY / "include" / "planning_health" / "demo" / "settings.yaml").read_text())
        document["spark"]["packages"] = image_packages()
        conf = {"spark.master": self.spark, "spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
        document |= {"home": str(home), "tables": demo["tables"]}
        document["spark"]["conf"] = document["spark"].get("conf", {}) | conf
        file = home.parent / "settings.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    def environment(self, settings: Path, home: Path) -> dict[str, str]:
        """The environment of the pipeline's processes: secrets, Airflow's database and its Spark connection."""
        database = f"{USER}:{self.password}@{self.postgres}/airflow"
        return os.environ | {
            "PLANNING_HEALTH_SETTINGS": str(settings),
            "PLANNING_HEALTH_HOME": str(home),
            "LAKE_PASSWORD": self.password,
            "LAKE_S3_SECRET": self.store_secret,
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{database}",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": self.spark}),
        }

    def files(self) -> s3fs.S3FileSystem:
        """The object store."""
        return s3fs.S3FileSystem(
            key=STORE_KEY,
            secret=self.store_secret,
            client_kwargs={"endpoint_url": f"http://{self.store}", "region_name": "us-east-1"},
            config_kwargs={"s3": {"addressing_style": "path"}},
            use_listings_cache=False,
        )


def image_packages() -> list[str]:
    """The jars that deploy/Dockerfile bakes into the image, as Maven coordinates."""
    dockerfile = (REPOSITORY / "deploy" / "Dockerfile").read_text()
    (line,) = [line for line in dockerfile.splitlines() if line.startswith("ARG SPARK_PACKAGES=")]
    return line.partition("=")[2].split(",")


@contextmanager
def running_stack(folder: Path) -> Iterator[Stack]:
    """All services, each in a process group of its own; ended in the end."""
    password, secret = os.urandom(12).hex(), os.urandom(12).hex()
    with ExitStack() as stack:
        database = stack.enter_context(_postgres(folder / "postgres", password))
        store = stack.enter_context(_object_store(folder / "objects", secret))
        spark = stack.enter_context(_spark_cluster(folder / "spark"))
        services = Stack(database, store, spark, password, secret)
        _until("the object store answers", lambda: services.files().mkdir(BUCKET))
        yield services


@contextmanager
def _postgres(folder: Path, password: str) -> Iterator[str]:
    initdb, server = _postgres_program("initdb"), _postgres_program("postgres")
    owner = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    folder.mkdir(parents=True)
    secret = folder / "password"
    secret.write_text(password)
    data, sockets = folder / "data", folder / "sockets"
    sockets.mkdir()
    if owner:
        for parent in (folder, *folder.parents):
            if parent.stat().st_uid == 0 and parent.is_relative_to("/tmp") and parent != Path("/tmp"):  # noqa: S108
                parent.chmod(parent.stat().st_mode | 0o011)
        for path in (folder, secret, sockets):
            shutil.chown(path, owner)
    options = ["--pgdata", str(data), "--username", USER, "--auth", "scram-sha-256", "--no-sync"]
    subprocess.run([initdb, *options, "--pwfile", str(secret)], check=True, capture_output=True, user=owner)
    secret.unlink()
    port = free_port()
    arguments = ["-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", str(sockets), "-c", "fsync=off"]
    with _process("postgres", [server, *arguments], folder, user=owner):

        def connect() -> None:
            psycopg2.connect(host="127.0.0.1", port=port, user=USER, password=password, dbname="postgres").close()

        _until("PostgreSQL answers", connect)
        connection = psycopg2.connect(host="127.0.0.1", port=port, user=USER, password=password, dbname="postgres")
        connection.autocommit = True
        with connection.cursor() as cursor:
            for database in DATABASES:
                cursor.execute(f"CREATE DATABASE {database}")
        connection.close()
        yield f"127.0.0.1:{port}"


def _postgres_program(name: str) -> str:
    folders = [os.environ.get("PATH", ""), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))]
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        raise MissingToolError(f"{name} was not found: install PostgreSQL (Debian: apt-get install postgresql)")
    return found


@contextmanager
def _object_store(folder: Path, secret: str) -> Iterator[str]:
    folder.mkdir(parents=True)
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    credentials = [{"accessKey": STORE_KEY, "secretKey": secret}]
    config = folder / "s3.json"
    config.touch(mode=0o600)
    config.write_text(json.dumps({"identities": [{"name": "lake", "actions": actions, "credentials": credentials}]}))
    ports = {name: free_port() for name in ("s3", "master", "volume", "filer")}
    command = [str(Path(sys.executable).with_name("weed")), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-dir={folder}", "-s3", f"-s3.config={config}", "-volume.max=32", "-master.volumeSizeLimitMB=256"]
    command += ["-master.telemetry=false", "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [f"-{name}.port={port}" for name, port in ports.items()]
    command += [f"-{name}.port.grpc={free_port()}" for name in ports]
    with _process("weed", command, folder):
        yield f"127.0.0.1:{ports['s3']}"


@contextmanager
def _spark_cluster(folder: Path) -> Iterator[str]:
    import pyspark

    folder.mkdir(parents=True)
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
        "SPARK_NO_DAEMONIZE": "1",
    }
    deploy = "org.apache.spark.deploy"
    master = [program, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = [program, f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "2g"]
    worker += ["--webui-port", "0", address]
    with ExitStack() as stack:
        stack.enter_context(_process("spark-master", master, folder, environment=environment))
        _until("the Spark master listens", lambda: socket.create_connection(("127.0.0.1", port), 1).close())
        for number in (1, 2):
            stack.enter_context(_process(f"spark-worker-{number}", worker, folder, environment=environment))
        yield address


@contextmanager
def _process(
    name: str,
    command: list[str],
    folder: Path,
    *,
    user: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, user=user, cwd=folder, env=environment, process_group=0
        )
        try:
            yield
        finally:
            end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Ends a process and all that it started."""
    if process.poll() is not None:
        return
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.terminate()
    _, alive = psutil.wait_procs(family, timeout=20)
    for survivor in alive:
        survivor.kill()
    process.wait()


def _until(what: str, attempt: Callable[[], object]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            attempt()
        except (OSError, psycopg2.OperationalError) as error:
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {_START_SECONDS} s in vain until {what}: {error}") from error
            time.sleep(0.5)
        else:
            return


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
