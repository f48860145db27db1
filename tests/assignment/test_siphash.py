"""The hash of file homes, against known values and against CPython's own SipHash-1-3."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planning_health.assignment.siphash import integer_bytes, owners, pair_hashes, siphash13, string_bytes

_ORACLE = """
import json, sys
assert sys.hash_info.algorithm == "siphash13", sys.hash_info
print(json.dumps([hash(bytes.fromhex(line)) & (2**64 - 1) for line in json.load(sys.stdin)]))
"""


def cpython_siphash13(streams: list[bytes]) -> list[int]:
    """CPython hashes bytes with SipHash-1-3 and, with the hash seed 0, the key (0, 0); but the empty string with 0."""
    done = subprocess.run(
        [sys.executable, "-c", _ORACLE],
        input=json.dumps([stream.hex() for stream in streams]),
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_known_values_of_raw_bytes() -> None:
    assert siphash13([b"", b"abc"]).tolist() == [0xD1FBA762150C532C, 0xC03BC3A0042630F2]


def test_a_pair_of_strings_is_hashed_as_one_stream_with_0xff_after_each() -> None:
    hashes = pair_hashes([string_bytes("s3://bucket/a")], [string_bytes("http://worker-0/")])
    assert hashes.tolist() == [[0xD85999766538DC7C]]


def test_streams_of_every_length_agree_with_cpython() -> None:
    streams = [bytes((7 * i + j) % 256 for j in range(i)) for i in range(1, 300)]
    assert siphash13(streams).tolist() == cpython_siphash13(streams)


def test_pairs_of_every_length_agree_with_cpython() -> None:
    starts = [b"k" * length for length in range(20)]
    ends = [b"u" * length for length in range(1, 20)]
    expected = np.array(cpython_siphash13([start + end for start in starts for end in ends]), dtype=np.uint64)
    assert (pair_hashes(starts, ends) == expected.reshape(20, 19)).all()


def test_integers_enter_the_stream_as_eight_little_endian_bytes() -> None:
    assert integer_bytes(1) == b"\x01" + b"\0" * 7
    assert string_bytes("é") == b"\xc3\xa9\xff"


@given(st.lists(st.binary(max_size=40), max_size=30), st.lists(st.binary(max_size=40), max_size=10))
def test_hashing_pairs_equals_hashing_the_joined_streams(starts: list[bytes], ends: list[bytes]) -> None:
    joined = siphash13([start + end for start in starts for end in ends])
    assert pair_hashes(starts, ends).ravel().tolist() == joined.tolist()


def test_a_hash_does_not_depend_on_what_is_hashed_beside_it() -> None:
    streams = [b"x" * length for length in (9, 0, 17, 8, 9, 3)]
    assert siphash13(streams).tolist() == [siphash13([stream])[0] for stream in streams]


def test_owner_is_the_worker_with_the_largest_hash_whatever_the_chunks() -> None:
    keys = [f"s3://bucket/{'d' * (i % 9)}/f-{i}" for i in range(2000)]
    workers = sorted(f"http://worker-{i}:{80 + i}/" for i in range(30))
    table = pair_hashes([string_bytes(key) for key in keys], [string_bytes(worker) for worker in workers])
    assert owners(keys, workers).tolist() == table.argmax(axis=1).tolist()
