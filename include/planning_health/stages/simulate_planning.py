"""Step: what each of a table's queries reads while it is planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planning_health.advice.layout import PlanningPrice
from planning_health.envelope import Envelope, Headline
from planning_health.identifiers import TableName
from planning_health.metadata import PlanningMetadata
from planning_health.planning.cost_model import cost_document, cost_sentence
from planning_health.planning.report import plan_where, predicate_document
from planning_health.planning.scan import ScanPlanner
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument
from planning_health.stages.queries import queries_of
from planning_health.stages.table_stage import MEASUREMENT, Outcome, run_table_stage

KIND = "planning"


def simulate_planning(settings: SettingsDocument, run_folder: RunFolder, table: TableName) -> Envelope:
    """Simulates planning each configured query of a table, or those that its partitioning invites.

    The result's data holds ``predicates`` (the ``plan`` document of each query, with its name, weight, predicted
    planning time and, where it was measured, Iceberg's own planning time and counters), ``not_planned`` (the configured
    queries that do not fit the table, with the reason; they are no failure),
    ``heaviest`` (the name of the query that opens most manifests, weighted; ties by files) and the cost models.

    Args:
        settings: the table's queries.
        run_folder: holds the measurement.
        table: the table.
    """
    measurement = run_folder.read_result(MEASUREMENT, table)
    times = (measurement.data or {}).get("planning_times", []) if measurement else []
    measured = {time["name"]: time for time in times}
    return run_table_stage(run_folder, table, KIND, lambda metadata: _outcome(settings, table, metadata, measured))


def _outcome(
    settings: SettingsDocument, table: TableName, metadata: PlanningMetadata, measured: Mapping[str, Any]
) -> Outcome:
    planner = ScanPlanner(metadata)
    queries = queries_of(settings, table, planner)
    price = PlanningPrice.of(metadata)
    predicates = [
        _predicate(planner, query, price) | {"measured": measured.get(query.name)} for query in queries.planned
    ]
    heaviest = max(predicates, key=_burden, default=None)
    share = _share_opened(predicates)
    costs = cost_document(metadata, share)
    data = {
        "queries_are_defaults": queries.are_defaults,
        "predicates": predicates,
        "not_planned": [query.as_json() for query in queries.not_planned],
        "heaviest": heaviest["name"] if heaviest else None,
        "cost_model": cost_sentence(costs),
        "costs": costs,
    }
    headline = _headline(predicates, heaviest, share) | {"not_planned": len(queries.not_planned)}
    return Outcome(headline, data)


def _predicate(planner: ScanPlanner, query: Query, price: PlanningPrice) -> dict[str, Any]:
    scan = plan_where(planner, query.where)
    predicted = {"predicted_ms": round(price.planning_ms(planner.metadata, scan.scanned_manifests), 2)}
    return {"name": query.name, "weight": query.weight, **predicate_document(scan, query.where), **predicted}


def _burden(predicate: dict[str, Any]) -> tuple[float, float]:
    opened = predicate["data_manifests"]["scanned"] + predicate["delete_manifests"]["scanned"]
    return predicate["weight"] * opened, predicate["weight"] * predicate["data_files"]["result"]


def _share_opened(predicates: list[dict[str, Any]]) -> float | None:
    """Weighted mean share of data manifests that the queries open."""
    weight = sum(predicate["weight"] for predicate in predicates)
    if not weight:
        return None
    shares = (
        predicate["weight"] * predicate["data_manifests"]["scanned"] / max(1, predicate["data_manifests"]["total"])
        for predicate in predicates
    )
    return float(sum(shares) / weight)


def _headline(predicates: list[dict[str, Any]], heaviest: dict[str, Any] | None, share: float | None) -> Headline:
    headline: Headline = {
        "queries": len(predicates),
        "not_pushed_down": sum(bool(predicate["not_pushed_down"]) for predicate in predicates),
        "mean_share_of_data_manifests_opened": share,
    }
    if heaviest is None:
        return headline
    return headline | {
        "data_manifests": heaviest["data_manifests"]["total"],
        "heaviest_data_manifests_opened": heaviest["data_manifests"]["scanned"],
        "heaviest_delete_manifests_opened": heaviest["delete_manifests"]["scanned"],
        "heaviest_data_files": heaviest["data_files"]["result"],
        "heaviest_delete_files_attached": heaviest["delete_files"]["attached"],
        "heaviest_bytes": heaviest["bytes"],
        "heaviest_metadata_bytes": heaviest["metadata_bytes"],
        "heaviest_splits": heaviest["splits"],
        "heaviest_tasks": heaviest["tasks"],
    }
