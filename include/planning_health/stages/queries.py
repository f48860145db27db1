"""The queries of a table that the simulations are about."""

from __future__ import annotations

from planning_health.identifiers import TableName
from planning_health.planning.default_queries import default_queries
from planning_health.planning.scan import ScanPlanner
from planning_health.settings import Query, SettingsDocument


def configured_queries(settings: SettingsDocument, table: TableName) -> list[Query]:
    """The queries that the table's rule in the settings lists."""
    rule = settings.rule_for(table)
    return list(rule.queries) if rule else []


def queries_of(settings: SettingsDocument, table: TableName, planner: ScanPlanner) -> list[Query]:
    """The configured queries; without any, those that the table's partitioning invites."""
    return configured_queries(settings, table) or [
        Query(name=query.name, where=query.where) for query in default_queries(planner)
    ]
