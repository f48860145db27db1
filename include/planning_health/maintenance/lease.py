"""A lease on one table, so that two maintenance runs do not do the same work.

It saves work only: safety rests on Iceberg's commit, the guards and the verification. See ``contracts.md``, Locks.

On a local filesystem each change of a lease is made under a lock of the folder, which ends with the process, and a
lease appears with its whole content (a hard link). An object store has the exclusive create only.
"""

from __future__ import annotations

import errno
import fcntl
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
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import fsspec

from planning_health.errors import WorkFailedError
from planning_health.identifiers import TableName
from planning_health.run_folder import FILE_MODE, make_folder, read_bytes, write_bytes

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
    holder: dict[str, Any] = {
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
        with _exclusive(url):
            _end(url, holder["token"])


def _acquire(url: str, table: TableName, holder: dict[str, Any]) -> None:
    with _exclusive(url):
        for _ in range(3):
            if _create(url, _document(holder)):
                return
            current = _read(url)
            if current is None:
                continue
            if not _is_abandoned(url, current):
                raise LeaseHeldError(f"{table} is being maintained {_shown(url, current)}")
            logger.warning("taking over the abandoned lease %s of run %s", url, current.get("run_id"))
            _end(url, current.get("token"))
    raise LeaseHeldError(f"{table}: another run took the lease {url} at the same moment; try again")


def _shown(url: str, current: dict[str, Any]) -> str:
    if not current:
        return f"or was a short while ago: the lease {url} cannot be read; try again in {STALE_AFTER}"
    return (
        f"by run {current.get('run_id')!r} on {current.get('host')} (process {current.get('pid')}, Spark application "
        f"{current.get('spark_application_id')}, last sign of life {current.get('heartbeat')}); try again when it has "
        "ended"
    )


@contextmanager
def _exclusive(url: str) -> Iterator[None]:
    """Keeps other processes from changing a lease meanwhile, where the filesystem can: a lock of the leases' folder."""
    filesystem, path = fsspec.url_to_fs(url)
    if not _is_local(filesystem):
        yield
        return
    folder = posixpath.dirname(path)
    make_folder(Path(folder))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network filesystems cannot lock a folder: link and rename remain
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_local(filesystem: Any) -> bool:
    return "file" in filesystem.protocol


def _create(url: str, content: bytes) -> bool:
    """Makes the lease unless there is one; it is there as a whole or not at all."""
    filesystem, path = fsspec.url_to_fs(url)
    try:
        if _is_local(filesystem):
            make_folder(Path(path).parent)
            _link(path, content)
        else:
            filesystem.makedirs(posixpath.dirname(path), exist_ok=True)
            filesystem.pipe_file(path, content, mode="create")
    except FileExistsError:
        return False
    return True


def _link(path: str, content: bytes) -> None:
    temporary = Path(f"{path}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.touch(FILE_MODE, exist_ok=False)
        temporary.write_bytes(content)
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        with Path(path).open("xb") as stream:  # no hard links here: a reader waits while the file is empty
            stream.write(content)
    finally:
        temporary.unlink(missing_ok=True)


def _document(holder: dict[str, Any]) -> bytes:
    return json.dumps(holder | {"heartbeat": datetime.now(UTC).isoformat(timespec="seconds")}).encode()


def _read(url: str) -> dict[str, Any] | None:
    """The lease, ``None`` without one; one that cannot be read is empty."""
    content = read_bytes(url)
    return None if content is None else _parsed(content)


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _is_abandoned(url: str, current: dict[str, Any]) -> bool:
    try:
        if datetime.now(UTC) - _last_sign_of_life(url, current) > STALE_AFTER:
            return True
    except (KeyError, TypeError, ValueError, NotImplementedError):
        return True
    except FileNotFoundError:
        return False
    return bool(current) and current.get("host") == socket.gethostname() and not _runs(current.get("pid"))


def _last_sign_of_life(url: str, current: dict[str, Any]) -> datetime:
    """By the holder's clock; by the store's where the holder's is far ahead, or the lease cannot be read."""
    if current:
        heartbeat = datetime.fromisoformat(current["heartbeat"])
        if heartbeat - datetime.now(UTC) <= STALE_AFTER:
            return heartbeat
    return _modified(url)


def _modified(url: str) -> datetime:
    filesystem, path = fsspec.url_to_fs(url)
    modified: datetime = filesystem.modified(path)
    return modified


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


def _end(url: str, token: str | None) -> None:
    """Removes the lease that carries this token, and no other."""
    current = _read(url)
    if current is None or current.get("token") != token:
        return
    filesystem, path = fsspec.url_to_fs(url)
    with suppress(FileNotFoundError):
        if not _is_local(filesystem):
            filesystem.rm_file(path)
            return
        aside = Path(f"{path}.{uuid.uuid4().hex}.ended")
        Path(path).rename(aside)
        if _parsed(aside.read_bytes()).get("token") != token:  # replaced meanwhile, by one who cannot lock the folder
            with suppress(FileExistsError):
                os.link(aside, path)
        aside.unlink()


def _beat(url: str, holder: dict[str, Any], stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT.total_seconds()):
        try:
            with _exclusive(url):
                if not _is_ours(url, holder):
                    logger.warning("the lease %s was taken over by another run", url)
                    return
                write_bytes(url, _document(holder))
        except Exception:  # a store that is away for a moment must not end the work
            logger.warning("the lease %s could not be renewed", url, exc_info=True)
