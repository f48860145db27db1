"""The blocks of an Avro file: where they lie in it, and their compression in the codecs that Iceberg writes.

PyArrow and zlib compress, so that no codec needs a package of its own, here or on Spark's executors.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

CODECS: Final = ("null", "deflate", "snappy", "zstandard")
"""Avro's names of Iceberg's ``uncompressed``, ``gzip`` (the default), ``snappy`` and ``zstd``."""

SYNC_MARKER_BYTES: Final = 16
_DEFLATE_LEVEL: Final = 9
"""Iceberg's ``Avro.GZIP_COMPRESSION_LEVEL_DEFAULT``; its level for zstd is that of PyArrow, 1."""
_CHECKSUM_BYTES: Final = 4
_SNAPPY_RATIO: Final = 32
"""Three bytes of snappy stand for at most 64; what declares a larger ratio is damaged."""


def blocks_from(content: bytes, header_bytes: int) -> Iterator[tuple[int, memoryview]]:
    """Number of records and compressed bytes of each block.

    Args:
        content: the whole file.
        header_bytes: where the first block begins, right behind the file's sync marker.

    Raises:
        ValueError: where the file ends within a block, or none begins where it should.
        IndexError: where the file ends within a block's sizes.
    """
    sync, view = content[header_bytes - SYNC_MARKER_BYTES : header_bytes], memoryview(content)
    position = header_bytes
    while position < len(content):
        records, position = read_varint(content, position)
        size, position = read_varint(content, position)
        end = position + size
        if size < 0 or view[end : end + SYNC_MARKER_BYTES] != sync:
            raise ValueError("a block does not end with the file's sync marker")
        yield records, view[position:end]
        position = end + SYNC_MARKER_BYTES


def encoded_block(codec: str, records: int, content: bytes) -> bytes:
    """A block, compressed, without the sync marker that follows it."""
    body = _compressed(codec, content)
    return varint(records) + varint(len(body)) + body


def decompressed(codec: str, body: memoryview) -> bytes:
    """A block's records.

    Raises:
        ValueError: for another codec than Iceberg's, or a damaged block.
        OSError: for a damaged block, too.
        zlib.error: likewise.
    """
    if codec == "null":
        return bytes(body)
    if codec == "deflate":
        return zlib.decompress(body, -zlib.MAX_WBITS)
    if codec == "snappy":
        return _from_snappy(body)
    if codec == "zstandard":
        return bytes(pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(body)), "zstd").read())
    raise ValueError(f"it is compressed with {codec!r}: expected one of {', '.join(CODECS)}")


def beginning(codec: str, body: memoryview, most: int) -> tuple[bytes, bool]:
    """The first bytes of a block's records, and whether that is all; a few large blocks are not inflated whole."""
    if codec == "deflate":
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        plain = inflater.decompress(body, most)
        return plain, inflater.eof
    plain = decompressed(codec, body)
    return plain[:most], len(plain) <= most


def varint(value: int) -> bytes:
    """A number that is not negative, as Avro writes it."""
    zigzag, out = value << 1, bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def read_varint(raw: bytes, position: int) -> tuple[int, int]:
    """A number as Avro writes it, and the position behind it."""
    zigzag, position = _read_unsigned(raw, position)
    return (zigzag >> 1) ^ -(zigzag & 1), position


def _read_unsigned(raw: bytes | memoryview, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = raw[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _compressed(codec: str, content: bytes) -> bytes:
    if codec == "deflate":
        compressor = zlib.compressobj(_DEFLATE_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return compressor.compress(content) + compressor.flush()
    if codec == "snappy":
        return bytes(pa.compress(content, "snappy", asbytes=True)) + _checksum(content)
    return bytes(pa.compress(content, "zstd", asbytes=True)) if codec == "zstandard" else content


def _from_snappy(body: memoryview) -> bytes:
    packed, checksum = body[:-_CHECKSUM_BYTES], body[-_CHECKSUM_BYTES:]
    size, _ = _read_unsigned(packed, 0)
    if size > _SNAPPY_RATIO * len(packed):
        raise ValueError("a block of snappy declares more bytes than it can hold")
    plain = bytes(pa.decompress(pa.py_buffer(packed), size, "snappy", asbytes=True))
    if _checksum(plain) != checksum:
        raise ValueError("a block's checksum is wrong")
    return plain


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "big")
