"""Nobody is asked only for what the settings name: tables, actions, and the largest change."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planning_health.identifiers import TableName
from planning_health.maintenance.auto_approval import why_to_ask
from planning_health.settings.models import AutoApproval, MaintenanceSettings

LIMITS = AutoApproval(tables=["lake.sales.*"], most_manifests=100, most_metadata_bytes=10_000_000)
HEADLINE = {"manifests_before": 100, "metadata_bytes_before": 10_000_000}
ORDERS = TableName.parse("lake.sales.orders")


def test_a_change_within_all_limits_needs_nobody() -> None:
    assert why_to_ask(LIMITS, ORDERS, ["rewrite_manifests"], HEADLINE) is None


def test_by_default_everything_is_asked() -> None:
    assert MaintenanceSettings().auto_approve is None
    assert why_to_ask(None, ORDERS, ["rewrite_manifests"], HEADLINE) == "the settings approve nothing in advance"


@pytest.mark.parametrize(
    ("table", "actions", "headline", "reason"),
    [
        ("lake.ops.logs", ["rewrite_manifests"], {}, "lake.ops.logs matches none of maintenance.auto_approve.tables"),
        ("lake.sales.orders", ["rewrite_manifests", "set_properties"], {}, "set_properties is not one of"),
        ("lake.sales.orders", ["trim_statistics"], {}, "trim_statistics is not one of"),
        ("lake.sales.orders", [], {"manifests_before": 101}, "manifests before: 101, above .*most_manifests = 100"),
        ("lake.sales.orders", [], {"metadata_bytes_before": 10_000_001}, "10,000,001, above .*most_metadata_bytes"),
        ("lake.sales.orders", [], {"metadata_bytes_before": None}, "metadata bytes before: not measured, above"),
    ],
)
def test_what_lies_beyond_a_limit_is_asked_and_the_limit_is_named(
    table: str, actions: list[str], headline: dict[str, Any], reason: str
) -> None:
    found = why_to_ask(LIMITS, TableName.parse(table), actions, HEADLINE | headline)
    assert found is not None
    assert re.search(reason, found)
