"""Avro files made for tests."""

from __future__ import annotations

import io

import fastavro

from planning_health.metadata.avro_blocks import SYNC_MARKER_BYTES, blocks_from, decompressed, encoded_block
from planning_health.metadata.avro_reader import read_header

MAGIC = b"Obj\x01"


def in_codec(content: bytes, codec: str) -> bytes:
    """An Avro file with the same blocks, compressed otherwise."""
    header = read_header(content)
    sync = content[header.length - SYNC_MARKER_BYTES : header.length]
    metadata = io.BytesIO()
    entries = {"avro.schema": header.schema.encode(), "avro.codec": codec.encode()}
    fastavro.schemaless_writer(metadata, {"type": "map", "values": "bytes"}, entries)
    blocks = [
        encoded_block(codec, count, decompressed(header.codec, body)) + sync
        for count, body in blocks_from(content, header.length)
    ]
    return b"".join([MAGIC, metadata.getvalue(), sync, *blocks])
