"""The planning service under load: latency of batches on a large table, and concurrent scans against replicas.

    python benchmarks/plan_service.py latency --files 100000     # first and later batches, against planning in process
    python benchmarks/plan_service.py replicas --scans 200       # three processes, with and without routing affinity

All clients are on loopback, and every loop is bounded in count and in time. Results are printed as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from planning_health.plan_tasks import batch, plans_computed

TABLE = "db.wide"
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "kind", StringType(), required=False),
    *(NestedField(3 + number, f"value_{number}", LongType(), required=False) for number in range(8)),
)
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))
SECONDS = 15.0
"""Longest time of one loop of requests."""


def build(home: Path, files: int, manifests: int) -> SqlCatalog:
    """A table of many files that exist in the metadata only: planning opens no data file."""
    (home / "warehouse").mkdir(parents=True)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{home}/catalog.db", warehouse=f"{home}/warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table(
        TABLE, SCHEMA, partition_spec=SPEC, properties={"commit.manifest-merge.enabled": "false"}
    )
    per_manifest = -(-files // manifests)
    for first in range(0, files, per_manifest):
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for number in range(first, min(files, first + per_manifest)):
                append.append_data_file(_file(home, number))
    (home / "settings.yaml").write_text(
        "version: 1\nhome: .\ncatalogs:\n  lake:\n    properties: {type: jdbc, "
        f"uri: 'jdbc:sqlite:{home}/catalog.db', warehouse: '{home}/warehouse'}}\n"
    )
    return catalog


def _file(home: Path, number: int) -> DataFile:
    fields = range(1, 2 + 8)
    counts = dict.fromkeys(fields, 1000)
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{home}/warehouse/db/wide/data/kind={number % 7}/{number:08d}-00000-0000-0000-000000000000.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(str(number % 7)),
        record_count=1000,
        file_size_in_bytes=128 * 1024 * 1024,
        column_sizes=dict.fromkeys(fields, 5000),
        value_counts=counts,
        null_value_counts=dict.fromkeys(fields, 0),
        nan_value_counts={},
        lower_bounds={key: to_bytes(LongType(), number * 1000) for key in fields if key != 2},
        upper_bounds={key: to_bytes(LongType(), number * 1000 + 999) for key in fields if key != 2},
        split_offsets=[4],
        sort_order_id=None,
    )
    file.spec_id = 0
    return file


@dataclass
class Replica:
    """One server process."""

    url: str
    process: psutil.Process
    session: requests.Session = field(default_factory=requests.Session)

    def metrics(self) -> dict[str, float]:
        lines = self.session.get(f"{self.url}/metrics", timeout=30).text.splitlines()
        return {key: float(value) for key, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}

    def computed(self) -> int:
        return int(self.metrics()['planning_health_serve_plans_total{found="computed"}'])

    def held_bytes(self) -> int:
        return int(self.metrics()["planning_health_serve_cache_held_bytes"])

    def post(self, session: requests.Session, action: str, body: Any) -> dict[str, Any]:
        answer = session.post(f"{self.url}/v1/namespaces/db/tables/wide/{action}", json=body, timeout=120)
        if answer.status_code != 200:
            raise RuntimeError(f"{action} answered {answer.status_code}: {answer.text[:200]}")
        return answer.json()


@contextmanager
def replica(home: Path, *options: str) -> Iterator[Replica]:
    """Starts `planning-health serve`, and ends that process at the end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from planning_health.cli import main; main()", "serve", "--port", str(port)]
    command += ["--settings", str(home / "settings.yaml"), *options]
    with (home / f"serve-{port}.log").open("w") as log:
        process = subprocess.Popen(command, stderr=log, stdout=log, env=os.environ | {"OMP_NUM_THREADS": "1"})
        try:
            yield _ready(Replica(f"http://127.0.0.1:{port}", psutil.Process(process.pid)))
        finally:
            process.terminate()
            process.wait(timeout=20)


def _ready(server: Replica) -> Replica:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            server.session.get(f"{server.url}/v1/config", timeout=5).raise_for_status()
        except requests.ConnectionError:
            time.sleep(0.1)
        else:
            return server
    raise RuntimeError("the server did not start within a minute")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return (time.perf_counter() - started) * 1000, result


def repeated(work: Callable[[int], Any], count: int) -> dict[str, float]:
    """Latency of a bounded number of calls within a bounded time, in milliseconds."""
    deadline, times = time.monotonic() + SECONDS, []
    for number in range(count):
        if time.monotonic() > deadline:
            break
        times.append(timed(lambda number=number: work(number))[0])
    ordered = sorted(times)
    return {
        "calls": len(times),
        "median_ms": round(statistics.median(times), 2),
        "p95_ms": round(ordered[int(len(ordered) * 0.95) - 1], 2),
    }


def throughput(server: Replica, tokens: list[str], clients: int, count: int) -> dict[str, float]:
    """Requests a second of concurrent clients, bounded in count and time."""
    deadline = time.monotonic() + SECONDS

    def loop(client: int) -> int:
        session, done = requests.Session(), 0
        for number in range(count // clients):
            if time.monotonic() > deadline:
                break
            server.post(session, "tasks", {"plan-task": tokens[(client + number * clients) % len(tokens)]})
            done += 1
        return done

    with ThreadPoolExecutor(clients) as pool:
        ms, done = timed(lambda: sum(pool.map(loop, range(clients))))
    return {"clients": clients, "requests": done, "requests_per_second": round(done / ms * 1000, 1)}


def latency(home: Path, files: int, manifests: int) -> None:
    """First and later batches of one table, cold and cached, for both kinds of tokens."""
    build_ms, catalog = timed(lambda: build(home, files, manifests))
    report(step="table", files=files, manifests=manifests, seconds=round(build_ms / 1000, 1))
    one_file = {"type": "eq", "term": "id", "value": files * 500}
    for name, scan in (("whole table", {}), ("one file", {"filter": one_file})):
        filtered = {"row_filter": f"id = {files * 500}"} if scan else {}
        ms, found = timed(lambda filtered=filtered: list(catalog.load_table(TABLE).scan(**filtered).plan_files()))
        report(step="PyIceberg in process", scan=name, tasks=len(found), ms=round(ms, 1))
        del found
    for kind in ("offset", "entry-ranges"):
        with replica(home, "--tokens", kind, "--batch-size", "100") as server:
            _latency_of(server, kind, one_file)


def _latency_of(server: Replica, kind: str, one_file: dict[str, Any]) -> None:
    session = server.session
    cold_process, _ = timed(lambda: server.post(session, "plan", {"select": ["kind"]}))
    cold, first = timed(lambda: server.post(session, "plan", {}))
    tokens = first["plan-tasks"]
    report(
        step="first batch",
        tokens=kind,
        new_process_ms=round(cold_process, 1),
        cold_ms=round(cold, 1),
        again=repeated(lambda _: server.post(session, "plan", {}), 20),
        plan_tasks=len(tokens),
        response_bytes=len(json.dumps(first)),
    )
    choice = random.Random(1).choices(tokens, k=300)  # noqa: S311
    report(
        step="later batches",
        tokens=kind,
        one_client=repeated(lambda number: server.post(session, "tasks", {"plan-task": choice[number]}), 300),
        many_clients=throughput(server, tokens, 8, 1600),
    )
    scan = {"filter": one_file}
    report(
        step="one file",
        tokens=kind,
        cold_ms=round(timed(lambda: server.post(session, "plan", scan))[0], 1),
        again=repeated(lambda _: server.post(session, "plan", scan), 20),
    )
    report(
        step="memory",
        tokens=kind,
        held_mib=round(server.held_bytes() / 2**20, 1),
        process_mib=round(server.process.memory_info().rss / 2**20),
    )


@dataclass(frozen=True)
class Load:
    """Concurrent scans against replicas.

    ``distinct`` scans have a plan each; otherwise all ask for the same one. With affinity a scan stays with a replica.
    """

    scans: int
    distinct: bool
    affinity: bool

    def run(self, replicas: list[Replica], seed: int) -> tuple[int, int, list[str]]:
        """Returns (requests, tasks, errors)."""

        def scan(number: int) -> tuple[int, int, str | None]:
            pick = random.Random(f"{seed}-{number}")  # noqa: S311
            home, session = replicas[number % len(replicas)], requests.Session()
            floor = -1 - (number if self.distinct else 0) - 1000 * seed
            request = {"filter": {"type": "gt-eq", "term": "id", "value": floor}}
            try:
                answer = (home if self.affinity else pick.choice(replicas)).post(session, "plan", request)
                tasks, tokens = len(answer["file-scan-tasks"]), answer["plan-tasks"]
                for token in tokens:
                    server = home if self.affinity else pick.choice(replicas)
                    tasks += len(server.post(session, "tasks", {"plan-task": token})["file-scan-tasks"])
            except (RuntimeError, requests.RequestException) as error:
                return 0, 0, f"{type(error).__name__}: {error}"
            return 1 + len(tokens), tasks, None

        with ThreadPoolExecutor(self.scans) as pool:
            results = list(pool.map(scan, range(self.scans)))
        return sum(r for r, _, _ in results), sum(t for _, t, _ in results), [e for _, _, e in results if e]


def replicas(home: Path, scans: int, count: int) -> None:
    """Plans computed by replicas against the model, memory against the bound, and errors."""
    files, batch_size = 400, 40
    build(home, files, manifests=8)
    requests_each = batch(files, batch_size).requests
    model = plans_computed(requests_each, count)
    expected = {
        (True, True): scans,
        (True, False): round(scans * model.local_cache_expected, 1),
        (False, True): count,
        (False, False): count,
    }
    for cache_mib, plans in ((64, 10_000), (1, 4)):
        with ExitStack() as stack:
            options = ("--batch-size", str(batch_size), "--cache-mib", str(cache_mib), "--cache-plans", str(plans))
            servers = [stack.enter_context(replica(home, *options)) for _ in range(count)]
            for seed, (distinct, affinity) in enumerate(expected, start=1):
                _replicas_case(
                    Load(scans, distinct, affinity), servers, seed, expected[distinct, affinity], cache_mib, plans
                )


def _replicas_case(load: Load, servers: list[Replica], seed: int, expected: float, cache_mib: int, plans: int) -> None:
    before = [server.computed() for server in servers]
    ms, (done, tasks, failures) = timed(lambda: load.run(servers, seed))
    held = max(server.held_bytes() for server in servers)
    report(
        step="replicas",
        scans=load.scans,
        distinct_plans=load.distinct,
        affinity=load.affinity,
        requests=done,
        tasks=tasks,
        errors=len(failures),
        first_error=failures[0] if failures else None,
        plans_computed=sum(server.computed() for server in servers) - sum(before),
        model_without_eviction=expected,
        cache_mib=cache_mib,
        cache_plans=plans,
        largest_held_bytes=held,
        within_bound=held <= cache_mib * 2**20,
        process_mib=[round(server.process.memory_info().rss / 2**20) for server in servers],
        seconds=round(ms / 1000, 1),
    )


def report(**values: Any) -> None:
    print(json.dumps(values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("latency")
    one.add_argument("--files", type=int, default=100_000)
    one.add_argument("--manifests", type=int, default=100)
    several = commands.add_parser("replicas")
    several.add_argument("--scans", type=int, default=200)
    several.add_argument("--replicas", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="plan-service-") as folder:
        home = Path(folder) / "home"
        if arguments.command == "latency":
            latency(home, arguments.files, arguments.manifests)
        else:
            replicas(home, arguments.scans, arguments.replicas)


if __name__ == "__main__":
    main()
