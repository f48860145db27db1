"""The queries of a table that the simulations are about."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.planning.default_queries import default_queries
from planning_health.planning.predicates import check_syntax
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner
from planning_health.settings import Query, SettingsDocument


@dataclass(frozen=True)
class NotPlanned:
    """A configured query that does not fit one of its rule's tables."""

    name: str
    where: str
    reason: str

    def as_json(self) -> dict[str, str]:
        """The query as results hold it."""
        return asdict(self)


@dataclass(frozen=True)
class TableQueries:
    """A table's queries.

    Attributes:
        planned: those to plan.
        not_planned: those that the table's rule lists and that do not fit the table.
        are_defaults: whether they are those that the table's partitioning invites, for want of configured ones.
    """

    planned: list[Query]
    not_planned: list[NotPlanned]
    are_defaults: bool


def configured_queries(settings: SettingsDocument, table: TableName) -> list[Query]:
    """The queries that the table's rule in the settings lists."""
    rule = settings.rule_for(table)
    return list(rule.queries) if rule else []


def queries_of(settings: SettingsDocument, table: TableName, planner: ScanPlanner) -> TableQueries:
    """The configured queries that fit the table; without any, those that the table's partitioning invites.

    A rule may cover many tables, of which some lack a query's column: there the query is left out, with the reason.

    Raises:
        InputError: a configured predicate is not valid Spark SQL, so that it fits no table.
    """
    planned, not_planned = [], []
    for query in configured_queries(settings, table):
        check_syntax(query.where)
        try:
            plan_where(planner, query.where)
        except InputError as error:
            not_planned.append(NotPlanned(query.name, query.where, str(error)))
        else:
            planned.append(query)
    if planned:
        return TableQueries(planned, not_planned, False)
    defaults = [Query(name=query.name, where=query.where) for query in default_queries(planner)]
    return TableQueries(defaults, not_planned, True)
