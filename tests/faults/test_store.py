"""The object store: manifests that are missing, cut off or not manifests, and requests that fail or are throttled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.faults.conftest import Conclude, Make, Outcome
from tests.faults.lake import Table, local
from tests.faults.operations import Seam

from planning_health.errors import NotMeasurableError
from planning_health.metadata.record_spark import _RecordTask

pytestmark = pytest.mark.spark

DAMAGES = {
    "missing": lambda path: path.unlink(),
    "cut_off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"Obj\x01" + bytes(range(256)) * (path.stat().st_size // 256 + 1)),
}


@contextmanager
def damaged(path: Path, damage: str) -> Iterator[None]:
    """The file is damaged meanwhile; Hadoop's checksum beside it would hide from Spark what is wrong."""
    content, checksum = path.read_bytes(), path.with_name(f".{path.name}.crc")
    checksum.unlink(missing_ok=True)
    DAMAGES[damage](path)
    yield
    path.write_bytes(content)


def a_manifest(table: Table) -> Path:
    iceberg = table.iceberg()
    snapshot = iceberg.current_snapshot()
    assert snapshot is not None
    return local(snapshot.manifests(iceberg.io)[1].manifest_path)


@pytest.mark.parametrize("action", ["set_properties", "rewrite_manifests", "trim_statistics"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_manifest_is_damaged(action: str, damage: str, make: Make, conclude: Conclude) -> None:
    table = make(action)
    before = table.iceberg()
    manifest = a_manifest(table)
    with damaged(manifest, damage):
        says = table.act()
        assert says["state"] == "failed"
        assert manifest.name in says["reason"]
        assert table.iceberg().metadata_location == before.metadata_location
    table.check_rows()
    table.check_truth(says, dict(before.properties))
    conclude(table, says["state"])


@pytest.mark.parametrize("action", ["rewrite_manifests", "trim_statistics"])
def test_a_manifest_vanishes_after_the_measurement(action: str, make: Make, seam: Seam, conclude: Conclude) -> None:
    table = make(action)
    before = table.iceberg()
    manifest = a_manifest(table)
    content = manifest.read_bytes()

    def lose() -> None:
        manifest.unlink(missing_ok=True)
        manifest.with_name(f".{manifest.name}.crc").unlink(missing_ok=True)

    seam.before(lose)
    says = table.act()
    seam.heal()
    manifest.write_bytes(content)
    assert says["state"] == "failed"
    assert manifest.name in says["reason"]
    assert table.iceberg().metadata_location == before.metadata_location
    table.check_rows()
    table.check_truth(says, dict(before.properties))
    conclude(table, says["state"])


CONTENT = b"Obj\x01" + b"a manifest" * 1000
ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>told</Message><RequestId>1</RequestId></Error>"


class Store(BaseHTTPRequestHandler):
    """An S3-like server with one object, which fails the first requests in one way."""

    fault, failures = "", 0
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        store = type(self)
        if store.failures > 0:
            store.failures -= 1
            getattr(self, f"_{store.fault}")()
        else:
            self._answer(200, CONTENT)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _slow_down(self) -> None:
        self._answer(503, ERROR.format(code="SlowDown").encode())

    def _internal_error(self) -> None:
        self._answer(500, ERROR.format(code="InternalError").encode())

    def _forbidden(self) -> None:
        self._answer(403, ERROR.format(code="AccessDenied").encode())

    def _cut_off(self) -> None:
        self._answer(200, CONTENT[:100], len(CONTENT))
        self.close_connection = True

    def _hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_: object) -> None: ...


@contextmanager
def store(fault: str, failures: int) -> Iterator[str]:
    handler = type("Faulty", (Store,), {"fault": fault, "failures": failures})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def read(endpoint: str) -> bytes:
    """Reads as an executor does that records the table."""
    properties = {
        "s3.endpoint": endpoint,
        "s3.access-key-id": "lake",
        "s3.secret-access-key": "not-a-secret",
        "s3.path-style-access": "true",
        "client.region": "us-east-1",
    }
    task = _RecordTask("", frozenset(), properties, compiled=False, sample_bytes={})
    return task.reader()("s3://lake/metadata/m0.avro")


@pytest.mark.parametrize("fault", ["slow_down", "internal_error", "cut_off", "hang_up"])
def test_a_store_that_recovers_is_asked_again(fault: str, outcome: Outcome) -> None:
    with store(fault, 2) as endpoint:
        assert read(endpoint) == CONTENT
        assert read(endpoint) == CONTENT
    outcome("read", "read", "nothing")


@pytest.mark.parametrize("fault", ["slow_down", "internal_error", "forbidden", "cut_off"])
def test_a_store_that_does_not_recover_names_the_manifest(fault: str, outcome: Outcome) -> None:
    with store(fault, 10_000) as endpoint, pytest.raises(NotMeasurableError, match=r"m0\.avro cannot be read"):
        read(endpoint)
    with store(fault, 0) as endpoint:
        assert read(endpoint) == CONTENT
    outcome("not measured", "read", "nothing")
