"""Reads the lines of files that other programs wrote: one file or a folder, compressed or not, finished or not."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator
from typing import IO, Final

import fsspec
import pyarrow as pa

from planning_health.errors import InputError
from planning_health.redaction import first_line, redact

logger = logging.getLogger(__name__)

_CHUNK: Final = 1 << 16
_STREAMS: Final = {"zstd": "zstd", "zst": "zstd", "gz": "gzip", "bz2": "bz2"}
_SPARKS_OWN: Final = ("lz4", "snappy")
_UNSUPPORTED: Final = ("lzf",)
_ENDINGS: Final = (".inprogress", ".compact")


def files_of(path: str) -> list[str]:
    """The files of a folder at any depth, sorted; or the file itself.

    Names that begin with a dot or an underscore are left out, as Hadoop does.

    Raises:
        InputError: a path that does not exist or cannot be listed, or an empty folder.
    """
    try:
        filesystem, root = fsspec.core.url_to_fs(path)
        if filesystem.isfile(root):
            return [filesystem.unstrip_protocol(root)]
        if not filesystem.isdir(root):
            raise InputError(f"{redact(path)!r} does not exist: expected a file or a folder")
        names = [str(name) for name in filesystem.find(root)]
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{redact(path)!r} cannot be read: {first_line(error)}") from error
    shown = [name for name in names if not name.rsplit("/", 1)[-1].startswith((".", "_"))]
    if not shown:
        raise InputError(f"the folder {redact(path)!r} holds no files")
    return [filesystem.unstrip_protocol(name) for name in sorted(shown)]


def read_lines(path: str) -> Iterator[bytes]:
    """The lines of one file or of all files of a folder; a line that a program has not finished writing is left out.

    Raises:
        InputError: like :func:`files_of`; also for a file that cannot be decompressed.
    """
    for file in files_of(path):
        yield from lines_of(file)


def lines_of(file: str) -> Iterator[bytes]:
    """The lines of one file, decompressed as its name says.

    Raises:
        InputError: a file that cannot be read or decompressed.
    """
    rest = b""
    try:
        with fsspec.open(file, "rb") as stream:
            for chunk in _chunks(stream, _codec(file)):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines
    except (OSError, ValueError, struct.error) as error:
        raise InputError(f"{redact(file)!r} cannot be read: {first_line(error)}") from error
    if rest:
        yield rest


def _codec(file: str) -> str:
    name = file
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    codec = name.rsplit(".", 1)[-1]
    if codec in _UNSUPPORTED:
        raise InputError(f"{redact(file)!r} is compressed with {codec}: expected zstd, lz4, snappy, gzip or none")
    return codec


def _chunks(stream: IO[bytes], codec: str) -> Iterator[bytes]:
    if codec in _SPARKS_OWN:
        yield from _BLOCKS[codec](stream)
        return
    source = pa.CompressedInputStream(pa.PythonFile(stream, "r"), _STREAMS[codec]) if codec in _STREAMS else stream
    try:
        while chunk := bytes(source.read(_CHUNK)):
            yield chunk
    except OSError as error:
        if "truncated" not in str(error).lower():
            raise
        logger.warning("a compressed file ends in its middle, as while it is written: what is there was read")


def _lz4_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream format of ``LZ4BlockOutputStream``, which Spark uses."""
    codec = pa.Codec("lz4_raw")
    while len(head := stream.read(21)) == 21 and head[:8] == b"LZ4Block":
        token, packed, size, _checksum = struct.unpack("<BiiI", head[8:])
        block = stream.read(packed)
        if len(block) < packed:
            return
        yield bytes(block if token & 0xF0 == 0x10 else codec.decompress(block, decompressed_size=size)) if size else b""


def _snappy_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The stream format of ``SnappyOutputStream``, which Spark uses."""
    codec = pa.Codec("snappy")
    while len(head := stream.read(4)) == 4:
        if head == b"\x82SNA":  # a header of 16 bytes, once more where a file was appended to
            stream.read(12)
            continue
        packed = struct.unpack(">i", head)[0]
        block = stream.read(packed)
        if len(block) < packed:
            return
        yield bytes(codec.decompress(block, decompressed_size=_varint(block)))


def _varint(block: bytes) -> int:
    value = 0
    for position, byte in enumerate(block[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            break
    return value


_BLOCKS: Final[dict[str, Callable[[IO[bytes]], Iterator[bytes]]]] = {"lz4": _lz4_blocks, "snappy": _snappy_blocks}
