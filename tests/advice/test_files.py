"""Logs of other programs are read plain and compressed, finished and not."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from planning_health.advice.files import files_of, read_lines
from planning_health.errors import InputError

LINES = [f"line {number}" + "x" * 100 for number in range(20_000)]
CONTENT = "\n".join(LINES).encode()


def zstd(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log", CONTENT),
        ("log.inprogress", CONTENT),
        ("log.gz", gzip.compress(CONTENT)),
        ("log.bz2", bz2.compress(CONTENT)),
        ("log.zstd", zstd(CONTENT[:700_000]) + zstd(CONTENT[700_000:])),
        ("log.zstd.compact", zstd(CONTENT)),
    ],
)
def test_lines_are_the_same_whatever_the_compression(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert [line.decode() for line in read_lines(str(tmp_path / name))] == LINES


@pytest.mark.parametrize("name", ["log.zstd", "log.gz"])
def test_a_log_that_is_still_written_gives_what_is_there(tmp_path: Path, name: str) -> None:
    packed = zstd(CONTENT) if name.endswith("zstd") else gzip.compress(CONTENT)
    (tmp_path / name).write_bytes(packed[: len(packed) // 2])
    lines = [line.decode() for line in read_lines(str(tmp_path / name))]
    assert 1_000 < len(lines) < len(LINES)
    assert lines[:-1] == LINES[: len(lines) - 1]


def test_a_folder_is_read_at_any_depth_without_hidden_files(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for name in ("b/log", "a", ".a.crc", "_SUCCESS"):
        (tmp_path / name).write_text(name)
    assert list(read_lines(str(tmp_path))) == [b"a", b"b/log"]
    assert [file.rsplit("/", 1)[-1] for file in files_of(str(tmp_path))] == ["a", "log"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "damaged.zstd").write_bytes(b"no archive at all")
    (tmp_path / "log.lzf").write_bytes(b"ZV")
    (tmp_path / "empty").mkdir()
    for name, expected in (
        ("missing", "does not exist: expected a file or a folder"),
        ("damaged.zstd", "cannot be read"),
        ("log.lzf", "compressed with lzf: expected zstd, lz4, snappy, gzip or none"),
        ("empty", "holds no files"),
    ):
        with pytest.raises(InputError, match=expected) as refused:
            list(read_lines(str(tmp_path / name)))
        assert name in str(refused.value)
