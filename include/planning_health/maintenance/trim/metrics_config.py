"""How much of each column's statistics a table's properties ask for, by the rules of Iceberg's ``MetricsConfig``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortOrder
from pyiceberg.types import (
    BinaryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)

from planning_health.errors import InputError
from planning_health.maintenance.properties import COLUMN_METRICS, DEFAULT_METRICS, inferred_limit
from planning_health.maintenance.trim.rule import WHOLE, Kept, TrimRule
from planning_health.metadata.model import PlanningMetadata
from planning_health.planning.fewer_statistics import MetricsMode, leaf_columns

NONE: Final = MetricsMode.parse("none")
_DEFAULT: Final = MetricsMode.parse("truncate(16)")
"""What Iceberg takes where nothing is set, and for columns of the sort order where the default keeps no bounds."""

_ROW_LINEAGE_IDS: Final = (2147483540, 2147483539)
"""``_row_id`` and ``_last_updated_sequence_number``, which v3 data files may store as columns."""


def effective_modes(
    schema: Schema, properties: Mapping[str, str], sort_order: SortOrder | None = None
) -> dict[int, MetricsMode]:
    """The metrics mode that new files get for each column with values of its own, by field id.

    As ``MetricsConfig.forTable`` has it: a column's own property; else truncate(16) for a column that the table is
    sorted by, where the default keeps no bounds; else the default that is set; else truncate(16), which only so many
    columns get, top-level ones first, when the schema has more than ``max-inferred-column-defaults``. A mode that
    Iceberg does not know counts as not set.

    Args:
        schema: the table's current schema.
        properties: the table's properties.
        sort_order: the table's current sort order.
    """
    default = _default_mode(schema, properties)
    leaves = leaf_columns(schema)
    modes = dict.fromkeys([*leaves, *_ROW_LINEAGE_IDS], default)
    if DEFAULT_METRICS not in properties and default == NONE:
        modes |= dict.fromkeys(_first_columns(schema, inferred_limit(properties)), _DEFAULT)
    promoted = default if default.keeps_bounds else _DEFAULT
    for field in sort_order.fields if sort_order else ():
        if field.transform.preserves_order and field.source_id in leaves:
            modes[field.source_id] = promoted
    for field_id in leaves:
        own = properties.get(COLUMN_METRICS + (schema.find_column_name(field_id) or ""))
        if own is not None:
            modes[field_id] = _parsed(own, default)
    return modes


def trim_rule(metadata: PlanningMetadata, properties: Mapping[str, str]) -> TrimRule:
    """What a trim leaves of each column's statistics: what new files get, where it is there.

    Only bounds of strings and binaries are ever cut. Columns that equality deletes compare keep what they have: the
    delete index prunes by it. Columns that the schema has no more lose all.

    Args:
        metadata: the recorded snapshot, with all its delete files.
        properties: the table's properties, as they are or will be.
    """
    schema = metadata.info.metadata.schema()
    modes = effective_modes(schema, properties, metadata.info.sort_order)
    compared = pc.unique(pc.list_flatten(metadata.delete_files["equality_ids"])).to_pylist()
    kept = {field_id: _kept(mode, field_id, schema) for field_id, mode in modes.items() if mode.counts}
    return TrimRule(kept | dict.fromkeys(compared, Kept(WHOLE)))


def _kept(mode: MetricsMode, field_id: int, schema: Schema) -> Kept:
    kind = schema.find_type(field_id) if field_id in schema.field_ids else None
    if mode.length is None or (mode.length and not isinstance(kind, StringType | BinaryType)):
        return Kept(WHOLE)
    return Kept(mode.length, text=isinstance(kind, StringType))


def _parsed(text: str, fallback: MetricsMode) -> MetricsMode:
    try:
        return MetricsMode.parse(text)
    except InputError:
        return fallback


def _default_mode(schema: Schema, properties: Mapping[str, str]) -> MetricsMode:
    if DEFAULT_METRICS in properties:
        return _parsed(properties[DEFAULT_METRICS], _DEFAULT)
    return _DEFAULT if _counted_columns(schema.as_struct()) <= inferred_limit(properties) else NONE


def _children(kind: IcebergType) -> tuple[NestedField, ...]:
    if isinstance(kind, StructType):
        return kind.fields
    if isinstance(kind, ListType):
        return (kind.element_field,)
    return (kind.key_field, kind.value_field) if isinstance(kind, MapType) else ()


def _counted_columns(kind: IcebergType) -> int:
    """How many ids Iceberg compares with the limit (``TypeUtil.getProjectedIds``): structs count, some keys do not."""
    children = _children(kind)
    own = sum(isinstance(child.field_type, PrimitiveType) for child in children)
    if isinstance(kind, StructType):
        own += sum(isinstance(child.field_type, StructType) for child in children)
    elif isinstance(kind, MapType):
        own = 2 if isinstance(kind.value_type, PrimitiveType) else 0
    return own + sum(_counted_columns(child.field_type) for child in children)


def _first_columns(schema: Schema, limit: int) -> list[int]:
    """The columns that get statistics where there are too many: a struct's own before those of its structs."""
    found: list[int] = []
    _visit(schema.as_struct(), limit, found)
    return found


def _visit(kind: IcebergType, limit: int, found: list[int]) -> None:
    children = _children(kind)
    own = [child.field_id for child in children if isinstance(child.field_type, PrimitiveType)]
    found += own[: limit - len(found)]
    for child in children:
        if len(found) < limit:
            _visit(child.field_type, limit, found)
