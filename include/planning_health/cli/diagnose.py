"""What `planning-health diagnose` prints for people: findings with their evidence, and the signals they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planning_health.cli.output import console, level, plain, print_table, say
from planning_health.health.catalogue import SIGNALS
from planning_health.health.thresholds import Thresholds
from planning_health.metadata.model import TableInfo
from planning_health.planning.spec_text import spec_name

Row = Mapping[str, Any]


def show_diagnosis(info: TableInfo, found: Mapping[str, Any], thresholds: Thresholds) -> None:
    """Prints a diagnosis as :func:`planning_health.health.analysis.analyse` returns it."""
    snapshot = "no snapshot" if info.snapshot_id is None else f"snapshot {info.snapshot_id}"
    console.print(f"{plain(info.name)}: {level(found['state'])}, {snapshot}", highlight=False)
    for finding in found["findings"]:
        console.print(f"\n{level(finding['level'])} [bold]{plain(finding['title'])}[/]", highlight=False)
        for text in (finding["evidence"], finding["explanation"], f"→ {finding['recommendation']}"):
            say(text, wrap=True)
    if not found["manifests"]:
        say("The table is empty: there is nothing to plan.")
        return
    signals = list(shown_signals(found))
    print_table(
        ["signal", "of", "value", "unit", "level"],
        [(item["signal"], _scope(info, item), item["value"], item["unit"], _level(item)) for item in signals],
        title="\nSignals",
        whole=("signal", "value", "unit", "level"),
    )
    for item in signals:
        if item["level"] == "ok" and thresholds.level(item["signal"], item["value"]) != "ok":
            say(f"{item['signal']} is not held against the table. {thresholds.held_against(item['signal'])}", wrap=True)
    print_table(
        ["partition field", "spec", "mean", "p95", "worst", "clustering"],
        [
            (
                item["field"],
                spec_name(info, item["spec_id"]),
                *(item[key] for key in ("mean", "p95", "worst", "clustering_ratio")),
            )
            for item in found["overlap"]
        ],
        title="\nOverlap depth: manifests that an equality lookup opens",
    )
    for step in found["steps"]:
        say(f"{step['step']}. {step['title']}: {step['level']}", wrap=True)


def shown_signals(found: Mapping[str, Any]) -> Iterator[Row]:
    """One row a signal: the table's, or those of the specs and fields that findings are about in its place."""
    blamed = {(finding["signal"], finding["scope_key"]) for finding in found["findings"]}
    for name in SIGNALS:
        rows = [item for item in found["signals"] if item["signal"] == name]
        yield from (
            [item for item in rows if (name, item["scope_key"]) in blamed]
            or [item for item in rows if item["scope"] == "table"]
        )


def _level(signal: Row) -> str:
    """A signal's level; that it was not measured its value says already."""
    return "–" if signal["value"] is None else str(signal["level"])


def _scope(info: TableInfo, signal: Row) -> str:
    if signal["scope"] == "table":
        return "table"
    spec_id, _, field = signal["scope_key"].partition(".")
    return f"{field}, {spec_name(info, int(spec_id))}" if field else spec_name(info, int(spec_id))
