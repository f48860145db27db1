"""SipHash-1-3 on NumPy arrays: the hash behind the file homes of affinity routing.

Source of the rule: SipHash with one compression and three finalisation rounds and the key (0, 0), which is
what Rust's ``DefaultHasher`` computes. A string feeds its UTF-8 bytes and one byte 0xFF into the stream, an
unsigned 64-bit integer its eight little-endian bytes. Rust does not promise this hash across releases.

Rendezvous hashing asks for every pair of key and worker, so ``owners`` compresses each key once, keeps the
state, and only runs the worker's few blocks per pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

U64Array = npt.NDArray[np.uint64]
"""Array of unsigned 64-bit words; arithmetic on it wraps, as SipHash needs."""

_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_END_OF_STRING = b"\xff"
_WORD = 8
_CHUNK = 1 << 15  # pairs hashed at once: the buffers of a chunk stay in the L2 cache


@dataclass
class _State:
    """The four words of SipHash for many streams at once; all arrays have one shape and are changed in place."""

    v0: U64Array
    v1: U64Array
    v2: U64Array
    v3: U64Array
    scratch: U64Array

    @classmethod
    def of_shape(cls, shape: tuple[int, ...]) -> _State:
        v0, v1, v2, v3 = (np.full(shape, word, dtype=np.uint64) for word in _INITIAL)
        return cls(v0, v1, v2, v3, np.empty(shape, dtype=np.uint64))

    def head(self, rows: int) -> _State:
        """Views of the first ``rows`` streams."""
        return _State(self.v0[:rows], self.v1[:rows], self.v2[:rows], self.v3[:rows], self.scratch[:rows])

    def rows(self, index: npt.NDArray[np.int64]) -> _State:
        """A copy of the streams at ``index``."""
        return _State(self.v0[index], self.v1[index], self.v2[index], self.v3[index], self.scratch[: len(index)])

    def spread(self, columns: int) -> _State:
        """A copy in two dimensions, every stream repeated in each column."""
        shape = (len(self.v0), columns)
        sources = (self.v0, self.v1, self.v2, self.v3)
        v0, v1, v2, v3 = (np.broadcast_to(words[:, None], shape).copy() for words in sources)
        return _State(v0, v1, v2, v3, np.empty(shape, dtype=np.uint64))

    def compress(self, words: U64Array) -> None:
        """Feeds one word into every stream: c = 1 round."""
        self.v3 ^= words
        self.round()
        self.v0 ^= words

    def finish(self) -> U64Array:
        """The 64-bit results: d = 3 rounds. The state is used up; the result shares its memory."""
        self.v2 ^= np.uint64(0xFF)
        for _ in range(3):
            self.round()
        self.v0 ^= self.v1
        self.v2 ^= self.v3
        self.v0 ^= self.v2
        return self.v0

    def round(self) -> None:
        """One SipRound on every stream."""
        v0, v1, v2, v3 = self.v0, self.v1, self.v2, self.v3
        v0 += v1
        self._rotate(v1, 13)
        v1 ^= v0
        self._rotate(v0, 32)
        v2 += v3
        self._rotate(v3, 16)
        v3 ^= v2
        v0 += v3
        self._rotate(v3, 21)
        v3 ^= v0
        v2 += v1
        self._rotate(v1, 17)
        v1 ^= v2
        self._rotate(v2, 32)

    def _rotate(self, words: U64Array, bits: int) -> None:
        np.right_shift(words, np.uint64(64 - bits), out=self.scratch)
        np.left_shift(words, np.uint64(bits), out=words)
        np.bitwise_or(words, self.scratch, out=words)


@dataclass(frozen=True)
class _Blocks:
    """Byte strings cut into words: string i is ``words[first[i] : first[i] + count[i]]``."""

    words: U64Array
    first: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]

    @classmethod
    def of(cls, padded: Sequence[bytes]) -> _Blocks:
        count = np.fromiter((len(text) // _WORD for text in padded), dtype=np.int64, count=len(padded))
        words = np.frombuffer(b"".join(padded), dtype="<u8").astype(np.uint64, copy=False)
        return cls(words, np.cumsum(count) - count, count)


def string_bytes(text: str) -> bytes:
    """What a string feeds into a hash stream: its UTF-8 bytes and the byte 0xFF."""
    return text.encode() + _END_OF_STRING


def integer_bytes(number: int) -> bytes:
    """What an unsigned 64-bit integer feeds into a hash stream: eight little-endian bytes."""
    return number.to_bytes(_WORD, "little")


def siphash13(streams: Sequence[bytes]) -> U64Array:
    """The SipHash-1-3 of every byte stream, with the key (0, 0).

    Args:
        streams: raw bytes, of any lengths; use ``string_bytes`` and ``integer_bytes`` to make them.

    Returns:
        One unsigned 64-bit value per stream.
    """
    padded = [_pad_with_length(stream, len(stream)) for stream in streams]
    return _absorb(_Blocks.of(padded)).finish()


def owners(keys: Sequence[str], workers: Sequence[str]) -> npt.NDArray[np.int64]:
    """The home of every key: the worker with the largest ``H(key, worker)`` (rendezvous hashing).

    Args:
        keys: immutable file paths.
        workers: normalised URLs in ascending order; of two equal hashes the later worker wins.

    Returns:
        One index into ``workers`` per key.

    Raises:
        ValueError: there is no worker.
    """
    if not workers:
        raise ValueError("owners() needs at least one worker")
    result = np.zeros(len(keys), dtype=np.int64)
    best = np.zeros(len(keys), dtype=np.uint64)
    streams = [string_bytes(key) for key in keys]
    for rows, columns, hashes in _pair_hash_chunks(streams, [string_bytes(worker) for worker in workers]):
        # Reversed, because argmax takes the first of equal values and the last one must win.
        winner = hashes.shape[1] - 1 - np.argmax(hashes[:, ::-1], axis=1)
        value = hashes[np.arange(len(rows)), winner]
        candidate = columns[winner]
        better = (value > best[rows]) | ((value == best[rows]) & (candidate >= result[rows]))
        best[rows[better]] = value[better]
        result[rows[better]] = candidate[better]
    return result


def pair_hashes(starts: Sequence[bytes], ends: Sequence[bytes]) -> U64Array:
    """The hash of every start followed by every end: ``len(starts)`` rows and ``len(ends)`` columns."""
    table = np.empty((len(starts), len(ends)), dtype=np.uint64)
    for rows, columns, hashes in _pair_hash_chunks(starts, ends):
        table[np.ix_(rows, columns)] = hashes
    return table


def _pad_with_length(stream: bytes, length: int) -> bytes:
    """Zeros up to a multiple of eight bytes, the last one being the stream's length modulo 256."""
    size = (len(stream) // _WORD + 1) * _WORD
    return stream.ljust(size - 1, b"\0") + bytes((length & 0xFF,))


def _absorb(blocks: _Blocks) -> _State:
    """Compresses strings of different lengths together: the longest first, so that the active ones are a prefix."""
    order = np.argsort(-blocks.count, kind="stable")
    state = _State.of_shape((len(order),))
    first, count = blocks.first[order], blocks.count[order]
    for block in range(int(count[0]) if len(count) else 0):
        active = int(np.searchsorted(-count, -block, side="left"))
        state.head(active).compress(blocks.words[first[:active] + block])
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return state.rows(back)


def _pair_hash_chunks(
    starts: Sequence[bytes], ends: Sequence[bytes]
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], U64Array]]:
    """Yields (indexes of starts, indexes of ends, hashes of all their pairs) until every pair was covered.

    Starts are grouped by the number of bytes that their last, incomplete word holds and ends by length: within
    such a group all pairs have the same number of words left.
    """
    length = np.fromiter(map(len, starts), dtype=np.int64, count=len(starts))
    end_length = np.fromiter(map(len, ends), dtype=np.int64, count=len(ends))
    whole = [start[: len(start) // _WORD * _WORD] for start in starts]
    rest = [start[len(head) :].ljust(_WORD, b"\0") for start, head in zip(starts, whole, strict=True)]
    state = _absorb(_Blocks.of(whole))
    remainder = np.frombuffer(b"".join(rest), dtype="<u8").astype(np.uint64, copy=False)
    for used in np.unique(length % _WORD).tolist():
        rows = np.flatnonzero(length % _WORD == used)
        for size in np.unique(end_length).tolist():
            columns = np.flatnonzero(end_length == size)
            tails = _tails([ends[column] for column in columns.tolist()], used)
            total = ((length[rows] + size) & 0xFF).astype(np.uint64) << np.uint64(56)
            step = max(1, _CHUNK // len(columns))
            for at in range(0, len(rows), step):
                part = rows[at : at + step]
                hashes = _hash_pairs(state.rows(part), remainder[part], total[at : at + step], tails)
                yield part, columns, hashes


def _tails(ends: Sequence[bytes], used: int) -> U64Array:
    """The words that follow a start's whole words: one row per word, one column per end."""
    padded = [_pad_with_length(b"\0" * used + end, 0) for end in ends]
    return np.frombuffer(b"".join(padded), dtype="<u8").astype(np.uint64).reshape(len(ends), -1).T


def _hash_pairs(state: _State, head: U64Array, length: U64Array, tails: U64Array) -> U64Array:
    """Finishes every start (rows) with every end (columns of ``tails``)."""
    pairs = state.spread(tails.shape[1])
    last = len(tails) - 1
    for index, words in enumerate(tails):
        block = np.broadcast_to(words, pairs.v0.shape)
        if index == 0:
            block = block | head[:, None]
        if index == last:
            block = block | length[:, None]
        pairs.compress(block)
    return pairs.finish()
