"""Which snapshot is measured, and the schema that a scan of it is bound to."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

from planning_health.errors import InputError
from planning_health.metadata.snapshot_choice import SnapshotChoice, parent_of_current


def table(**changes: Any) -> TableMetadata:
    """Snapshots 10, 20 and 30 of the schemas 0, 1 and 1; the table's current schema is 2."""
    columns = [{"id": 1, "name": "a", "type": "int", "required": False}]
    document: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "file:/t",
        "last-sequence-number": 3,
        "last-updated-ms": 3000,
        "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": schema, "fields": columns} for schema in (0, 1, 2)],
        "current-schema-id": 2,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "snapshots": [
            {
                "snapshot-id": number * 10,
                "sequence-number": number,
                "timestamp-ms": number * 1000,
                "manifest-list": f"file:/t/{number}.avro",
                "summary": {"operation": "append"},
                "schema-id": schema,
            }
            for number, schema in ((1, 0), (2, 1), (3, 1))
        ],
        "current-snapshot-id": 30,
        "snapshot-log": [{"snapshot-id": number * 10, "timestamp-ms": number * 1000} for number in (1, 2, 3)],
        "refs": {
            "main": {"snapshot-id": 30, "type": "branch"},
            "audit": {"snapshot-id": 20, "type": "branch"},
            "v1": {"snapshot-id": 10, "type": "tag"},
        },
    }
    return TableMetadataUtil.parse_obj(document | changes)


@pytest.mark.parametrize(
    ("choice", "snapshot", "schema"),
    [
        (SnapshotChoice(), 30, 2),  # the table's current schema
        (SnapshotChoice(ref="main"), 30, 2),
        (SnapshotChoice(ref="audit"), 20, 2),
        (SnapshotChoice(ref="v1"), 10, 0),  # the snapshot's own
        (SnapshotChoice(snapshot_id=10), 10, 0),
        (SnapshotChoice(snapshot_id=30), 30, 1),
        (SnapshotChoice(as_of_timestamp_ms=1000), 10, 0),
        (SnapshotChoice(as_of_timestamp_ms=2999), 20, 1),
        (SnapshotChoice(as_of_timestamp_ms=9999), 30, 1),
    ],
    ids=repr,
)
def test_a_branch_is_read_by_the_tables_schema_and_all_else_by_the_snapshots(
    choice: SnapshotChoice, snapshot: int, schema: int
) -> None:
    found, bound = choice.resolve(table())
    assert (found, bound.schema_id) == (snapshot, schema)


def test_a_snapshot_that_names_no_schema_is_read_by_the_tables() -> None:
    snapshots = [{"snapshot-id": 10, "sequence-number": 1, "timestamp-ms": 1000, "manifest-list": "file:/t/1.avro"}]
    refs = {"main": {"snapshot-id": 10, "type": "branch"}}
    metadata = table(**{"snapshots": snapshots, "current-snapshot-id": 10, "snapshot-log": [], "refs": refs})
    found, bound = SnapshotChoice(snapshot_id=10).resolve(metadata)
    assert (found, bound.schema_id) == (10, 2)


def test_a_table_without_snapshots_has_none_to_measure() -> None:
    empty = table(**{"snapshots": [], "current-snapshot-id": -1, "snapshot-log": [], "refs": {}})
    found, bound = SnapshotChoice().resolve(empty)
    assert (found, bound.schema_id) == (None, 2)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (SnapshotChoice(ref="nope"), "ref 'nope' does not exist; known: audit, main, v1"),
        (SnapshotChoice(snapshot_id=17), "snapshot 17 does not exist"),
        (SnapshotChoice(as_of_timestamp_ms=999), "no snapshot is older than timestamp 999 ms"),
    ],
)
def test_a_state_that_there_is_not_is_named(choice: SnapshotChoice, message: str) -> None:
    with pytest.raises(InputError, match=message):
        choice.resolve(table())


def test_a_snapshot_or_ref_that_there_is_not_is_answered_with_the_five_newest() -> None:
    snapshots = [
        {
            "snapshot-id": number * 10,
            "sequence-number": number,
            "timestamp-ms": number * 60_000,
            "manifest-list": f"file:/t/{number}.avro",
            "summary": {"operation": "append"},
        }
        for number in range(1, 8)
    ]
    metadata = table(**{"snapshots": snapshots, "current-snapshot-id": 70, "snapshot-log": [], "refs": {}})
    newest = r"; newest snapshots: 70 \(1970-01-01 00:07 UTC, append\), 60 .*, 50 .*, 40 .*, 30 \([^,]*, append\)$"
    for choice in (SnapshotChoice(ref="nope"), SnapshotChoice(snapshot_id=17)):
        with pytest.raises(InputError, match=newest):
            choice.resolve(metadata)


def test_the_current_snapshot_s_parent_is_named_where_it_is_still_there() -> None:
    snapshots = [
        {"snapshot-id": 10, "sequence-number": 1, "timestamp-ms": 1000, "manifest-list": "file:/t/1.avro"},
        {
            "snapshot-id": 20,
            "parent-snapshot-id": 10,
            "sequence-number": 2,
            "timestamp-ms": 2000,
            "manifest-list": "file:/t/2.avro",
        },
    ]
    changes = {"snapshots": snapshots, "current-snapshot-id": 20, "snapshot-log": [], "refs": {}}
    assert parent_of_current(table(**changes)) == SnapshotChoice(snapshot_id=10)
    with pytest.raises(InputError, match="no earlier one that is still there; newest snapshots: 20 "):
        parent_of_current(table(**(changes | {"snapshots": snapshots[1:]})))


def test_one_state_at_most_can_be_meant() -> None:
    with pytest.raises(InputError, match="not 2 of them"):
        SnapshotChoice(snapshot_id=1, ref="main")
