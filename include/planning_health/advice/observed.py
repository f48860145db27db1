"""The observed workload of one table: what its scans filter by, how often, and what else needs column statistics."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, FloatType

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.planning.expressions import (
    BoundPredicate,
    Expression,
    ReferenceResolver,
    UnboundPredicate,
    bind_predicate,
    from_iceberg_json,
    leaves,
    to_iceberg_json,
    visit,
)
from planning_health.planning.literals import Kind, Literal

SETTINGS: Final = "settings"
_COLUMNS: Final = ("hidden", "bounds_of", "counts_of", "row_level")


@dataclass(frozen=True)
class Observation:
    """One thing that a source tells of a scan, a query or a row-level operation.

    Attributes:
        source: where it was read: ``settings``, ``event log`` or ``scan report``.
        table: the full name of the table; ``None`` where the source does not tell it: any that has the columns.
        weight: how many scans it stands for.
        name: the query's name, where it has one.
        filter: what is pushed down to Iceberg; ``None`` where there is none, or its values are not known.
        hidden: columns of a filter whose values the source does not tell.
        bounds_of: columns whose minimum or maximum is answered from metadata.
        counts_of: columns whose number of values is answered from metadata.
        row_level: columns of the conditions of DELETE, UPDATE and MERGE.
        unread: a filter that could not be read: the columns that its text names are kept as they are.
    """

    source: str
    table: str | None
    weight: float = 1.0
    name: str = ""
    filter: Expression | None = None
    hidden: frozenset[str] = frozenset()
    bounds_of: frozenset[str] = frozenset()
    counts_of: frozenset[str] = frozenset()
    row_level: frozenset[str] = frozenset()
    unread: str = ""

    @property
    def columns(self) -> frozenset[str]:
        """Every column that is named, as the source names it."""
        filtered = {leaf.name for leaf in _predicates(self.filter)}
        return self.hidden | self.bounds_of | self.counts_of | self.row_level | filtered

    def as_json(self) -> dict[str, Any]:
        """The observation as a result file holds it."""
        filter_ = to_iceberg_json(self.filter) if self.filter is not None else None
        return asdict(self) | {"filter": filter_} | {kind: sorted(getattr(self, kind)) for kind in _COLUMNS}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Observation:
        """Reads what :meth:`as_json` made."""
        filter_ = document["filter"]
        read = {"filter": from_iceberg_json(filter_) if filter_ is not None else None}
        return cls(**{**document, **read, **{kind: frozenset(document[kind]) for kind in _COLUMNS}})

    def concerns(self, table: TableName) -> bool:
        """Whether it is, or may be, about a table."""
        return self.table is None or self.table == table.dotted


@dataclass(frozen=True)
class ObservedFilter:
    """One distinct filter and the scans that had it.

    Attributes:
        name: the query's name, else the filter's text.
        expression: what Iceberg is given.
        weight: the number of scans.
        sources: where they were observed.
        columns: the columns filtered by.
    """

    name: str
    expression: Expression
    weight: float
    sources: tuple[str, ...]
    columns: frozenset[str]


@dataclass(frozen=True)
class ObservedWorkload:
    """What was observed of a table, in the table's own column names. Columns carry the number of scans.

    Attributes:
        filters: distinct filters with known values, the most frequent first.
        hidden: columns of filters whose values are not known.
        bounds_of: columns whose minimum or maximum is answered from metadata.
        counts_of: columns whose number of values is answered from metadata.
        row_level: columns of row-level operations' conditions.
        unread: what could not be used, with the number of scans.
        other_tables: scans of other tables in the same sources.
    """

    filters: tuple[ObservedFilter, ...] = ()
    hidden: Mapping[str, float] = field(default_factory=dict)
    bounds_of: Mapping[str, float] = field(default_factory=dict)
    counts_of: Mapping[str, float] = field(default_factory=dict)
    row_level: Mapping[str, float] = field(default_factory=dict)
    unread: Mapping[str, float] = field(default_factory=dict)
    other_tables: Mapping[str, float] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Nothing was observed that tells which columns need statistics."""
        return not (self.filters or self.hidden or self.bounds_of or self.counts_of or self.row_level)

    def filtered_by(self, column: str) -> float:
        """The scans that filter by a column, those with hidden values included."""
        return sum(item.weight for item in self.filters if column in item.columns) + self.hidden.get(column, 0.0)


def observed_columns(table: TableName, observations: Iterable[Observation]) -> frozenset[str]:
    """The columns whose statistics a measurement must record; some may be another table's."""
    return frozenset[str]().union(*(item.columns for item in observations if item.concerns(table)))


def observe(table: TableName, schema: Schema, observations: Iterable[Observation]) -> ObservedWorkload:
    """Adds up what was observed of one table.

    Names are resolved in any case, and values take their columns' types. A filter that does not fit the table, such as
    one on a column that it does not have any more, counts as unread.
    """
    resolve = _Resolver(schema)
    filters: dict[Expression, ObservedFilter] = {}
    sums = {kind: defaultdict[str, float](float) for kind in (*_COLUMNS, "unread", "other_tables")}
    for item in observations:
        if not item.concerns(table):
            sums["other_tables"][str(item.table)] += item.weight
            continue
        try:
            found = resolve.observation(item)
        except InputError as error:
            if item.table is not None:  # else it is about another table
                sums["unread"][str(error)] += item.weight
            continue
        if found.filter is not None:
            filters[found.filter] = _added(filters.get(found.filter), found, found.filter)
        for kind in _COLUMNS:
            for column in getattr(found, kind):
                sums[kind][column] += found.weight
        if found.unread:
            sums["unread"][found.unread] += found.weight
    ordered = sorted(filters.values(), key=lambda item: (-item.weight, item.name))
    return ObservedWorkload(tuple(ordered), **sums)


def _added(known: ObservedFilter | None, seen: Observation, expression: Expression) -> ObservedFilter:
    if known is None:
        columns = frozenset(leaf.name for leaf in _predicates(expression))
        return ObservedFilter(seen.name or str(expression), expression, seen.weight, (seen.source,), columns)
    sources = known.sources if seen.source in known.sources else (*known.sources, seen.source)
    return replace(known, weight=known.weight + seen.weight, sources=sources)


def _predicates(expression: Expression | None) -> list[UnboundPredicate]:
    found = leaves(expression) if expression is not None else ()
    return [leaf for leaf in found if isinstance(leaf, UnboundPredicate)]


class _Resolver:
    """Says what a source says in the words of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._resolve = ReferenceResolver(schema, case_sensitive=False)

    def observation(self, item: Observation) -> Observation:
        """The observation with exact column names and values of their columns' types; raises InputError."""
        return replace(
            item,
            filter=visit(item.filter, self._predicate) if item.filter is not None else None,
            hidden=self._names(item.hidden) | self._named_in(item.unread),
            bounds_of=self._names(item.bounds_of),
            counts_of=self._names(item.counts_of),
            row_level=self._names(item.row_level),
        )

    def _names(self, names: frozenset[str]) -> frozenset[str]:
        return frozenset(self._name(name) for name in names)

    def _named_in(self, text: str) -> frozenset[str]:
        names = (self._schema.find_column_name(field_id) for field_id in self._schema.field_ids)
        return frozenset(
            name for name in names if name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        )

    def _name(self, name: str) -> str:
        return self._schema.find_column_name(self._resolve(name).field_id) or name

    def _predicate(self, leaf: UnboundPredicate) -> Expression:
        ref = self._resolve(leaf.name)
        floating = isinstance(ref.type, FloatType | DoubleType)
        literals = tuple(_as_double(value) if floating else value for value in leaf.literals)
        bound = bind_predicate(leaf.op, ref, literals)  # refuses what does not fit the column
        if isinstance(bound, BoundPredicate):  # the same value is the same, whatever its source writes it as
            return UnboundPredicate(bound.op, self._name(leaf.name), bound.literals)
        return UnboundPredicate(leaf.op, self._name(leaf.name), literals)


def _as_double(value: Literal) -> Literal:
    """Event logs write decimals and doubles alike, and JSON writes decimals as texts."""
    if not isinstance(value.value, Decimal | str):
        return value
    try:
        return Literal(Kind.DOUBLE, float(value.value))
    except ValueError:
        return value
