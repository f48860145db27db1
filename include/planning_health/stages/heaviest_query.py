"""Which query of a table the assignment and plan-tasks simulations are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planning_health.identifiers import TableName
from planning_health.planning.report import plan_where
from planning_health.planning.scan import ScanPlanner, SimulatedScan
from planning_health.run_folder import RunFolder
from planning_health.settings import SettingsDocument
from planning_health.stages.simulate_planning import KIND as PLANNING

WHOLE_TABLE = "whole table"


@dataclass(frozen=True)
class HeaviestQuery:
    """The query that a simulation is about.

    Attributes:
        name: its name in the settings, or what it is.
        where: its predicate in Spark SQL; None reads the whole table.
    """

    name: str
    where: str | None


def heaviest_query(settings: SettingsDocument, run_folder: RunFolder, table: TableName) -> HeaviestQuery:
    """Chooses the query of a table that the simulations are about.

    The one that this run's planning simulation calls heaviest; else, without such a result, the configured one of the
    largest weight; else a read of the whole table.
    """
    result = run_folder.read_result(PLANNING, table)
    data: Any = result.data if result is not None and isinstance(result.data, dict) else {}
    for predicate in data.get("predicates") or ():
        if predicate["name"] == data.get("heaviest"):
            return HeaviestQuery(predicate["name"], predicate["where"])
    rule = settings.rule_for(table)
    if rule and rule.queries and "predicates" not in data:  # else none of them fits the table
        query = max(rule.queries, key=lambda query: query.weight)
        return HeaviestQuery(query.name, query.where)
    return HeaviestQuery(WHOLE_TABLE, None)


def plan_query(planner: ScanPlanner, query: HeaviestQuery) -> SimulatedScan:
    """Simulates planning the query.

    Raises:
        InputError: the predicate cannot be understood, or names an unknown column.
    """
    return planner.plan() if query.where is None else plan_where(planner, query.where)
