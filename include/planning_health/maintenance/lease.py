"""A lease on one table, so that two maintenance runs do not do the same work.

It saves work only: safety rests on Iceberg's commit, the guards and the verification. See ``contracts.md``, Locks.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import fsspec

from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.run_folder import read_bytes, write_bytes

logger = logging.getLogger(__name__)

HEARTBEAT: Final = timedelta(seconds=30)
STALE_AFTER: Final = timedelta(minutes=10)


class LeaseHeldError(WorkFailedError):
    """Another run is at work on the table."""


def lease_url(home: str, table: TableName) -> str:
    """Where a table's lease lies."""
    return f"{home.rstrip('/')}/locks/{quote(table.catalog, safe='')}.{table.path_segment}.json"


@contextmanager
def lease(home: str, table: TableName, run_id: str, application_id: str | None = None) -> Iterator[None]:
    """Holds the table's lease while the block runs; a thread renews it.

    Raises:
        LeaseHeldError: naming the holder, when another run holds it and is alive.
    """
    url = lease_url(home, table)
    holder = {
        "run_id": run_id,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "spark_application_id": application_id,
        "token": uuid.uuid4().hex,
    }
    _acquire(url, table, holder)
    stop = threading.Event()
    heart = threading.Thread(target=_beat, args=(url, holder, stop), name=f"lease of {table}", daemon=True)
    heart.start()
    try:
        yield
    finally:
        stop.set()
        heart.join()
        if _is_ours(url, holder):
            _remove(url)


def _acquire(url: str, table: TableName, holder: dict[str, Any]) -> None:
    for _ in range(2):
        if _create(url, _document(holder)):
            return
        current = _read(url)
        if current is not None and not _is_abandoned(current):
            raise LeaseHeldError(
                f"{table} is being maintained by run {current.get('run_id')!r} on {current.get('host')} (process "
                f"{current.get('pid')}, Spark application {current.get('spark_application_id')}, last sign of life "
                f"{current.get('heartbeat')}); try again when it has ended"
            )
        logger.warning("taking over the abandoned lease %s of run %s", url, (current or {}).get("run_id"))
        _remove(url)
    raise LeaseHeldError(f"{table}: another run took the lease {url} at the same moment; try again")


def _create(url: str, content: bytes) -> bool:
    filesystem, path = fsspec.url_to_fs(url)
    filesystem.makedirs(posixpath.dirname(path), exist_ok=True)
    try:
        if "file" in filesystem.protocol:
            with filesystem.open(path, "xb") as stream:
                stream.write(content)
        else:
            filesystem.pipe_file(path, content, mode="create")
    except FileExistsError:
        return False
    return True


def _document(holder: dict[str, Any]) -> bytes:
    return json.dumps(holder | {"heartbeat": datetime.now(UTC).isoformat(timespec="seconds")}).encode()


def _read(url: str) -> dict[str, Any] | None:
    content = read_bytes(url)
    try:
        document = json.loads(content) if content else None
    except ValueError:
        return {}
    return document if isinstance(document, dict) else None


def _is_abandoned(current: dict[str, Any]) -> bool:
    try:
        heartbeat = datetime.fromisoformat(current["heartbeat"])
    except (KeyError, TypeError, ValueError):
        return True
    if datetime.now(UTC) - heartbeat > STALE_AFTER:
        return True
    return current.get("host") == socket.gethostname() and not _runs(current.get("pid"))


def _runs(pid: Any) -> bool:
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_ours(url: str, holder: dict[str, Any]) -> bool:
    current = _read(url)
    return current is not None and current.get("token") == holder["token"]


def _remove(url: str) -> None:
    filesystem, path = fsspec.url_to_fs(url)
    with suppress(FileNotFoundError):
        filesystem.rm_file(path)


def _beat(url: str, holder: dict[str, Any], stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT.total_seconds()):
        try:
            if not _is_ours(url, holder):
                logger.warning("the lease %s was taken over by another run", url)
                return
            write_bytes(url, _document(holder))
        except Exception:  # a store that is away for a moment must not end the work
            logger.warning("the lease %s could not be renewed", url, exc_info=True)
