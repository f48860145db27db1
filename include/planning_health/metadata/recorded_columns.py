"""Which columns' statistics are recorded: those that some pruning decision can need."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata


def columns_to_record(metadata: TableMetadata, schema: Schema, queried: Iterable[str]) -> frozenset[int]:
    """Partition sources, sort-order columns, identifier fields and the columns of the configured queries.

    Args:
        metadata: the table's metadata.
        schema: the schema that the scan is bound to.
        queried: column names of the queries, in any case; unknown names are left out (the query itself reports them).
    """
    sources = {field.source_id for spec in metadata.partition_specs for field in spec.fields}
    sorted_by = {field.source_id for order in metadata.sort_orders for field in order.fields}
    wanted = sources | sorted_by | set(schema.identifier_field_ids)
    by_name = {name.lower(): field_id for name, field_id in _ids_by_name(schema).items()}
    wanted |= {by_name[name.lower()] for name in queried if name.lower() in by_name}
    return frozenset(field_id for field_id in wanted if field_id in schema.field_ids)


def _ids_by_name(schema: Schema) -> dict[str, int]:
    names = ((schema.find_column_name(field_id), field_id) for field_id in schema.field_ids)
    return {name: field_id for name, field_id in names if name is not None}
