"""Entries are rewritten alike by the compiled kernel and by fastavro, and cut bounds stay bounds."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning_health.errors import WorkFailedError
from planning_health.maintenance.trim.rule import WHOLE, Kept, TrimRule
from planning_health.maintenance.trim.transcode import transcode
from planning_health.metadata.avro_reader import AvroFile
from planning_health.metadata.manifest_list import ManifestFile

Entry = dict[str, Any]
CHARACTERS = "ab\x7f\x80éߟ߿ࠀ\ud7ff\ue000\uffff\U00010000\U0010ffff"
BYTES = [0x00, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF]


def field(field_id: int, name: str, kind: Any, *, optional: bool = True) -> dict[str, Any]:
    return {"name": name, "field-id": field_id, "type": ["null", kind] if optional else kind}


def metric_map(field_id: int, name: str, value: str) -> dict[str, Any]:
    pair = {
        "type": "record",
        "name": f"k{field_id}_v{field_id}",
        "fields": [
            field(1000 + field_id, "key", "int", optional=False),
            field(2000 + field_id, "value", value, optional=False),
        ],
    }
    return field(field_id, name, {"type": "array", "items": pair, "logicalType": "map"})


MAPS = {
    108: ("column_sizes", "long"),
    109: ("value_counts", "long"),
    110: ("null_value_counts", "long"),
    137: ("nan_value_counts", "long"),
    125: ("lower_bounds", "bytes"),
    128: ("upper_bounds", "bytes"),
}


def schema_of(version: int) -> dict[str, Any]:
    """The entry schema as Iceberg writes it, for a partition by a day, a string and a decimal."""
    decimal = {"type": "fixed", "name": "decimal_9_2", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    partition = {
        "type": "record",
        "name": "r102",
        "fields": [field(1000, "day", "int"), field(1001, "city", "string"), field(1002, "price", decimal)],
    }
    file = [] if version == 1 else [field(134, "content", "int", optional=False)]
    file += [
        field(100, "file_path", "string", optional=False),
        field(101, "file_format", "string", optional=False),
        field(102, "partition", partition, optional=False),
        field(103, "record_count", "long", optional=False),
        field(104, "file_size_in_bytes", "long", optional=False),
        *([field(105, "block_size_in_bytes", "long", optional=False)] if version == 1 else []),
        *(metric_map(field_id, *MAPS[field_id]) for field_id in MAPS),
        field(131, "key_metadata", "bytes"),
        field(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}),
        field(140, "sort_order_id", "int"),
    ]
    file += [] if version < 3 else [field(142, "first_row_id", "long")]
    own = [field(0, "status", "int", optional=False), field(1, "snapshot_id", "long", optional=version > 1)]
    own += [] if version == 1 else [field(3, "sequence_number", "long"), field(4, "file_sequence_number", "long")]
    data_file = {"type": "record", "name": "r2", "fields": file}
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [*own, field(2, "data_file", data_file, optional=False)],
    }


bounds = st.one_of(
    st.text(CHARACTERS, max_size=9).map(str.encode), st.lists(st.sampled_from(BYTES), max_size=9).map(bytes)
)
columns = st.sampled_from([1, 2, 3, 40, 2147483540])
kept = st.builds(Kept, length=st.sampled_from([WHOLE, 0, 1, 2, 3, 8]), text=st.booleans())
rules = st.dictionaries(columns, kept, max_size=5).map(
    lambda found: TrimRule({i: Kept(k.length, k.text and i < 1 << 20) for i, k in found.items()})
)  # of the reserved columns none holds text


def pairs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    listed = st.dictionaries(columns, values, max_size=4).map(
        lambda found: [{"key": key, "value": value} for key, value in found.items()]
    )
    return st.none() | listed


@st.composite
def entries(draw: st.DrawFn, version: int) -> Entry:
    status = draw(st.sampled_from([0, 1, 1, 2]))
    known = st.integers(1, 2**40)
    optional = st.none() | known if status == 1 else known
    file = {
        "content": 0,
        "file_path": draw(st.text("abc/é", min_size=1, max_size=300)),
        "file_format": "PARQUET",
        "partition": {
            "day": draw(st.none() | st.integers(-(2**31), 2**31 - 1)),
            "city": draw(st.none() | st.text("aé", max_size=3)),
            "price": draw(st.none() | st.binary(min_size=4, max_size=4)),
        },
        "record_count": draw(st.integers(0, 2**40)),
        "file_size_in_bytes": 5,
        "block_size_in_bytes": 67_108_864,
        "key_metadata": draw(st.none() | st.binary(max_size=3)),
        "split_offsets": draw(st.none() | st.lists(st.integers(0, 2**50), max_size=3)),
        "sort_order_id": draw(st.none() | st.integers(0, 3)),
        "first_row_id": draw(st.none() | st.integers(0, 2**50)),
    }
    file |= {name: draw(pairs(bounds if kind == "bytes" else st.integers(0, 2**62))) for name, kind in MAPS.values()}
    own = {"status": status, "snapshot_id": draw(known if version == 1 else optional)}
    return own | {"sequence_number": draw(optional), "file_sequence_number": draw(optional), "data_file": file}


def manifest_of(version: int, first_row_id: int | None = None) -> ManifestFile:
    number = 0 if version == 1 else 7
    return ManifestFile(0, "m.avro", 1, 0, 0, number, number, 11, {"first_row_id": first_row_id}, None)


def avro_of(version: int, records: list[Entry]) -> AvroFile:
    schema = schema_of(version)
    block = io.BytesIO()
    for record in records:
        fastavro.schemaless_writer(block, fastavro.parse_schema(_plain(schema)), record)
    return AvroFile(schema, "null", ((len(records), block.getvalue()),))


def _plain(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {key: _plain(value) for key, value in schema.items() if key != "logicalType"}
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema


def decoded(version: int, content: memoryview) -> list[Entry]:
    parsed, stream = fastavro.parse_schema(_plain(schema_of(version))), io.BytesIO(content)
    found = []
    while stream.tell() < len(content):
        found.append(fastavro.schemaless_reader(stream, parsed, None))
    return found


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_the_kernel_and_fastavro_write_the_same_entries(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from([1, 2, 3]))
    target = data.draw(st.sampled_from([known for known in (1, 2, 3) if known >= version]))
    records = data.draw(st.lists(entries(version), max_size=4))
    manifest = manifest_of(version, data.draw(st.none() | st.just(1000)) if version == 3 else None)
    source, rule = avro_of(version, records), data.draw(rules)
    compiled = transcode(manifest, source, schema_of(target), rule, compiled=True)
    interpreted = transcode(manifest, source, schema_of(target), rule, compiled=False)
    assert bytes(compiled.content) == bytes(interpreted.content)
    assert compiled.offsets.tolist() == interpreted.offsets.tolist()
    live = [record for record in records if record["status"] != 2]
    for old, new in zip(live, decoded(target, compiled.content), strict=True):
        assert new["status"] == 0
        assert new["snapshot_id"] == (old["snapshot_id"] or 11)
        for name in ("file_path", "partition", "record_count", "key_metadata", "split_offsets", "sort_order_id"):
            assert new["data_file"][name] == old["data_file"][name]
        if target > 1 and version > 1:
            assert new["sequence_number"] == (old["sequence_number"] or 7)
        if target > 1 and version == 1:
            assert (new["sequence_number"], new["file_sequence_number"], new["data_file"]["content"]) == (0, 0, 0)


def test_row_ids_are_counted_over_the_entries_that_lack_them() -> None:
    base = {"snapshot_id": 3, "sequence_number": 4, "file_sequence_number": 4}
    records = [base | {"status": status, "data_file": plain_file(row_id)} for status, row_id in ROW_IDS]
    for compiled in (True, False):
        new = transcode(manifest_of(3, 1000), avro_of(3, records), schema_of(3), TrimRule({}), compiled=compiled)
        ids = [entry["data_file"]["first_row_id"] for entry in decoded(3, new.content)]
        assert ids == [1000, 5, 1010, 1020]
        none = transcode(manifest_of(3), avro_of(3, records), schema_of(3), TrimRule({}), compiled=compiled)
        assert {entry["data_file"]["first_row_id"] for entry in decoded(3, none.content)} == {None}


ROW_IDS = [(1, None), (0, 5), (2, None), (0, None), (1, None)]


def plain_file(row_id: int | None) -> Entry:
    partition = {"day": 1, "city": None, "price": None}
    return dict.fromkeys(name for name, _ in MAPS.values()) | {
        "content": 0,
        "file_path": "a",
        "file_format": "PARQUET",
        "partition": partition,
        "record_count": 10,
        "file_size_in_bytes": 1,
        "key_metadata": None,
        "split_offsets": None,
        "sort_order_id": None,
        "first_row_id": row_id,
    }


@pytest.mark.parametrize("compiled", [True, False])
def test_an_entry_without_a_sequence_number_and_damaged_bytes_are_refused(compiled: bool) -> None:
    lost = {"status": 0, "snapshot_id": 3, "sequence_number": None, "file_sequence_number": None}
    source = avro_of(2, [lost | {"data_file": plain_file(None)}])
    with pytest.raises(WorkFailedError, match=r"m\.avro cannot be rewritten \(ValueError: an entry has no sequence"):
        transcode(manifest_of(2), source, schema_of(2), TrimRule({}), compiled=compiled)
    known = avro_of(2, [lost | {"sequence_number": 1, "data_file": plain_file(None)}])
    ((count, content),) = known.blocks
    cut = AvroFile(known.schema, "null", ((count, content[:20]),))
    with pytest.raises(WorkFailedError, match=r"m\.avro cannot be rewritten"):
        transcode(manifest_of(2), cut, schema_of(2), TrimRule({}), compiled=compiled)


@given(bounds, st.integers(1, 8), st.booleans(), st.booleans())
def test_a_cut_bound_is_still_a_bound_and_short_enough(raw: bytes, length: int, text: bool, upper: bool) -> None:
    cut = Kept(length, text).bound(raw, upper=upper)
    if cut is None:
        assert upper or text
        return
    assert len(cut.decode(errors="replace") if text and len(raw) > length else cut) <= max(length, 1)
    if upper:
        assert cut >= raw
    else:
        assert raw.startswith(cut)


@pytest.mark.parametrize(
    ("raw", "length", "text", "lower", "upper"),
    [
        ("abcd", 2, True, "ab", "ac"),
        ("ab", 2, True, "ab", "ab"),
        ("a\ud7ffz", 2, True, "a\ud7ff", "a\ue000"),
        ("a\U0010ffffz", 2, True, "a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffffz", 2, True, "\U0010ffff\U0010ffff", None),
        ("😀😀😀", 2, True, "😀😀", "😀😁"),
        (b"\x01\xff\x03", 2, False, b"\x01\xff", b"\x02"),
        (b"\xff\xff\x03", 2, False, b"\xff\xff", None),
        (b"\xff\xfe\x03", 2, True, None, None),
    ],
)
def test_bounds_are_cut_as_iceberg_cuts_them(raw: Any, length: int, text: bool, lower: Any, upper: Any) -> None:
    raw, lower, upper = (value.encode() if isinstance(value, str) else value for value in (raw, lower, upper))
    kept = Kept(length, text)
    assert (kept.bound(raw, upper=False), kept.bound(raw, upper=True)) == (lower, upper)
