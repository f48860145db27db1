"""Blocks of Avro files in all codecs that Iceberg writes, whole and damaged."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.avro_files import in_codec

from planning_health.errors import NotMeasurableError
from planning_health.metadata.avro_blocks import CODECS, beginning, decompressed, encoded_block, read_varint, varint
from planning_health.metadata.avro_reader import read_avro

SCHEMA = {"type": "record", "name": "entry", "fields": [{"name": "text", "type": "string"}]}
RECORDS = [{"text": f"s3://bucket/table/data/{number:08}.parquet"} for number in range(60)]


def avro_file(codec: str) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, SCHEMA, RECORDS, sync_interval=1000)
    return in_codec(stream.getvalue(), codec)


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_in_every_codec_of_iceberg(codec: str) -> None:
    found = read_avro("m.avro", avro_file(codec))
    assert (found.codec, list(found.records())) == (codec, RECORDS)
    assert len(found.blocks) > 1
    few = read_avro("m.avro", avro_file(codec), 3)
    assert list(few.records()) == RECORDS[:3]


@pytest.mark.parametrize("codec", CODECS)
def test_an_end_within_a_block_is_the_one_error(codec: str) -> None:
    content = avro_file(codec)
    whole = read_avro("m.avro", content)
    ends = 0
    for end in range(content.index(b"avro.codec"), len(content)):
        try:
            cut = read_avro("m.avro", content[:end])
        except NotMeasurableError:
            continue
        ends += 1  # behind a whole block nothing tells that others followed
        assert cut.blocks == whole.blocks[: len(cut.blocks)]
    assert ends == len(whole.blocks)


def test_a_wrong_checksum_is_damage() -> None:
    body = encoded_block("snappy", 1, b"abc" * 100)[2:]
    with pytest.raises(ValueError, match="checksum"):
        decompressed("snappy", memoryview(body[:-1] + bytes([body[-1] ^ 1])))


@given(st.sampled_from(CODECS), st.binary(max_size=5000), st.integers(1, 6000))
def test_a_block_holds_what_was_put_into_it(codec: str, content: bytes, most: int) -> None:
    block = encoded_block(codec, 7, content)
    records, position = read_varint(block, 0)
    size, position = read_varint(block, position)
    body = memoryview(block)[position:]
    assert (records, size) == (7, len(body))
    assert decompressed(codec, body) == content
    plain, whole = beginning(codec, body, most)
    assert plain == content[:most]
    assert whole or len(content) >= most


@given(st.integers(0, 2**63 - 1))
def test_numbers_go_round(value: int) -> None:
    assert read_varint(varint(value), 0) == (value, len(varint(value)))


def test_a_size_that_snappy_cannot_hold_is_damage_and_takes_no_memory() -> None:
    declared = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(ValueError, match="declares more bytes"):
        decompressed("snappy", memoryview(declared + bytes(10)))


def test_another_codec_is_named_with_those_that_iceberg_has() -> None:
    stream = io.BytesIO()
    fastavro.writer(stream, SCHEMA, RECORDS, codec="bzip2")
    with pytest.raises(NotMeasurableError, match="'bzip2': expected one of null, deflate, snappy, zstandard"):
        read_avro("m.avro", stream.getvalue())
