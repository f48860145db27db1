"""Values of Avro's type fixed: as the specification writes them, and with a length before them as Iceberg Java does."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning_health.metadata.avro_reader import read_avro

FIXED = {"type": "fixed", "name": "fixed_4", "size": 4}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "v": st.one_of(st.none(), st.binary(min_size=4, max_size=4)),
            "path": st.integers(0, 99_999).map(lambda n: f"s3://lake/t/data/{n:05}.parquet"),
        }
    ),
    min_size=1,
    max_size=20,
)


def schema_of(kind: Any) -> dict[str, Any]:
    fields = [{"name": "v", "type": ["null", kind], "default": None}, {"name": "path", "type": "string"}]
    return {"type": "record", "name": "r", "fields": fields}


@pytest.mark.parametrize("written_as", [FIXED, "bytes"], ids=["as specified", "as Java writes it"])
@given(rows=ROWS)
def test_fixed_values_are_read_in_both_encodings(written_as: Any, rows: list[dict[str, Any]]) -> None:
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema_of(written_as), rows, metadata={})
    content = buffer.getvalue()
    if written_as == "bytes":
        content = with_header_of(content, rows)
    assert list(read_avro("m.avro", content).records()) == rows


def with_header_of(content: bytes, rows: list[dict[str, Any]]) -> bytes:
    """The blocks of a file written with bytes, behind the header of one written with fixed."""
    buffer = io.BytesIO()
    fastavro.writer(buffer, schema_of(FIXED), rows, sync_marker=content[-16:])
    header, _, _ = buffer.getvalue().partition(content[-16:])
    _, _, blocks = content.partition(content[-16:])
    return header + content[-16:] + blocks
