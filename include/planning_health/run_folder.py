"""The folder of one run: where its results lie, on a local disk or an object store (fsspec)."""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import math
import posixpath
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fsspec
from pydantic import ValidationError

from planning_health.envelope import Envelope, Headline, ResultFile, Status
from planning_health.errors import InputError, WorkFailedError, first_problem
from planning_health.identifiers import TableName
from planning_health.redaction import first_line, redact

CLI_DAG_ID: Final = "cli"
FOLDER_MODE: Final = 0o750
FILE_MODE: Final = 0o640
"""Others than owner and group see nothing: what is recorded holds bounds of columns, which are values of the tables."""


def run_key(run_id: str) -> str:
    """The run id as a folder name: unsafe characters replaced, made unique by a hash (colons break Hadoop globs)."""
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", run_id)
    return f"{safe}-{hashlib.sha256(run_id.encode()).hexdigest()[:8]}"


def write_bytes(url: str, content: bytes) -> None:
    """Writes a whole file so that a reader sees the old one or the new one, never a part of it.

    Raises:
        InputError: when the place cannot be written at all.
        WorkFailedError: when the disk is full.
    """
    try:
        filesystem, path = fsspec.url_to_fs(url)
        if "file" not in _protocols(filesystem):
            filesystem.makedirs(posixpath.dirname(path), exist_ok=True)
            filesystem.pipe_file(path, content)  # object stores publish a put as a whole
            return
        make_folder(Path(path).parent)
        temporary = f"{path}.{uuid.uuid4().hex[:8]}.tmp"
        try:
            Path(temporary).touch(FILE_MODE, exist_ok=False)
            filesystem.pipe_file(temporary, content)
            filesystem.mv(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        kind = WorkFailedError if error.errno == errno.ENOSPC else InputError
        raise kind(f"{url} cannot be written: {error.strerror or first_line(error)}") from error
    except (ValueError, ImportError) as error:  # an unknown protocol, or one whose package is not installed
        raise InputError(f"{url} cannot be written: {first_line(error)}") from error


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it that are missing; others than owner and group see nothing of them."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)


def read_bytes(url: str) -> bytes | None:
    """A file's content, or ``None`` when it does not exist."""
    filesystem, path = fsspec.url_to_fs(url)
    try:
        content: bytes = filesystem.cat_file(path)
    except FileNotFoundError:
        return None
    return content


def _protocols(filesystem: Any) -> tuple[str, ...]:
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _finite(value: Any) -> Any:
    """JSON has no NaN or infinity: they become null, "not measured"."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


@dataclass(frozen=True)
class RunFolder:
    """The folder ``<home>/runs/<dag_id>/<run_key>/``.

    Args:
        home: fsspec URL or absolute path of the product's home folder.
        dag_id: the Dag's id, or ``cli``.
        run_id: the Dag run's id as Airflow gives it.
    """

    home: str
    dag_id: str
    run_id: str

    @property
    def relative_path(self) -> str:
        """The folder's path below ``home``."""
        return f"runs/{self.dag_id}/{run_key(self.run_id)}"

    @property
    def url(self) -> str:
        """The folder's full URL."""
        return f"{self.home.rstrip('/')}/{self.relative_path}"

    def table_path(self, table: TableName) -> str:
        """A table's folder below the run folder."""
        return f"tables/{table.catalog}/{table.path_segment}"

    def metadata_url(self, table: TableName) -> str:
        """Where the table's planning metadata is recorded."""
        return f"{self.url}/{self.table_path(table)}/metadata"

    def result_path(self, kind: str, table: TableName | None = None) -> str:
        """The path of a result file below ``home``."""
        folder = f"{self.relative_path}/{self.table_path(table)}" if table else self.relative_path
        return f"{folder}/{kind}.json"

    def write_result(
        self,
        kind: str,
        *,
        table: TableName | None = None,
        table_uuid: str | None = None,
        snapshot_id: int | None = None,
        status: Status = "ok",
        reason: str | None = None,
        headline: Headline | None = None,
        data: Any = None,
    ) -> Envelope:
        """Writes a step's result file and returns its envelope.

        ``data`` is anything that JSON can hold; NaN and infinities are written as null.
        """
        result = ResultFile(
            kind=kind,
            run_id=self.run_id,
            table=str(table) if table else None,
            table_uuid=table_uuid,
            snapshot_id=snapshot_id,
            status=status,
            reason=redact(reason) if reason else reason,
            headline=_finite(headline or {}),
            path=self.result_path(kind, table),
            data=_finite(data),
        )
        content = json.dumps(result.model_dump(), indent=1, ensure_ascii=False, allow_nan=False).encode()
        write_bytes(f"{self.home.rstrip('/')}/{result.path}", content)
        return result.envelope()

    def read_result(self, kind: str, table: TableName | None = None) -> ResultFile | None:
        """Reads a result file of this run, or ``None`` when the step left none.

        Raises:
            WorkFailedError: when the file is damaged or of an unknown schema version.
        """
        return read_result(self.home, self.result_path(kind, table))

    def require_result(self, kind: str, table: TableName | None = None) -> ResultFile:
        """Like :meth:`read_result`, for a step that cannot go on without it.

        Raises:
            WorkFailedError: also when the file is missing.
        """
        result = self.read_result(kind, table)
        if result is None:
            raise WorkFailedError(f"result {self.result_path(kind, table)} is missing: did the step {kind!r} run?")
        return result

    def tables(self) -> list[TableName]:
        """The tables that have a folder in this run, sorted."""
        filesystem, root = fsspec.url_to_fs(f"{self.url}/tables")
        if not filesystem.exists(root):
            return []
        found: list[TableName] = []
        for catalog in filesystem.ls(root, detail=False):
            catalog_name = posixpath.basename(catalog.rstrip("/"))
            found += [
                TableName.from_path_segment(catalog_name, posixpath.basename(path.rstrip("/")))
                for path in filesystem.ls(catalog, detail=False)
            ]
        return sorted(found)


def read_result(home: str, path: str) -> ResultFile | None:
    """Reads the result file at ``path`` below ``home``; ``None`` when it does not exist.

    Raises:
        WorkFailedError: when the file is damaged or of an unknown schema version.
    """
    content = read_bytes(f"{home.rstrip('/')}/{path}")
    if content is None:
        return None
    try:
        return ResultFile.model_validate_json(content)
    except ValidationError as error:
        raise WorkFailedError(f"result file {path} cannot be read: {first_problem(error)}") from error


def paths_below(home: str, *parts: str) -> list[str]:
    """The files and folders below ``home`` that a pattern names, relative to it, sorted.

    Args:
        home: fsspec URL or absolute path; characters that a pattern would read otherwise stand for themselves.
        parts: the pattern's parts; ``*`` stands for any name.
    """
    filesystem, root = fsspec.url_to_fs(home)
    root = root.rstrip("/")
    return sorted(posixpath.relpath(path, root) for path in filesystem.glob("/".join([glob.escape(root), *parts])))


def results_below(home: str, *parts: str) -> Iterator[ResultFile]:
    """The results that a pattern names; one that is damaged is passed over: its trouble must not cost the others."""
    for path in paths_below(home, *parts):
        try:
            result = read_result(home, path)
        except WorkFailedError:
            continue
        if result is not None:
            yield result
