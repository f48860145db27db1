"""What `diagnose` prints: no row of its signals contradicts a finding, and every spec is named by its fields."""

from __future__ import annotations

import re

import pytest
from pyiceberg.types import DateType, StringType
from tests.health.builder import Entry, TableBuilder

from planning_health.cli.diagnose import show_diagnosis, shown_signals
from planning_health.cli.output import console
from planning_health.health.analysis import analyse
from planning_health.health.thresholds import resolve_thresholds
from planning_health.metadata import PlanningMetadata

THRESHOLDS = resolve_thresholds(None)


def two_specs() -> PlanningMetadata:
    """Thirty overlapping manifests of the first spec, thousands of files in one of the second."""
    table = TableBuilder({"d": DateType(), "c": StringType()}, [[("d", "day")], [("c", "identity")]])
    for shift in range(30):
        table.manifest(*(Entry((shift + 90 * place,)) for place in range(2)))
    return table.manifest(*(Entry((f"country {number % 5}",)) for number in range(9_000)), spec=1).build()


def printed(metadata: PlanningMetadata, monkeypatch: pytest.MonkeyPatch, columns: str = "200") -> str:
    monkeypatch.setenv("COLUMNS", columns)
    with console.capture() as captured:
        show_diagnosis(metadata.info, analyse(metadata, THRESHOLDS), THRESHOLDS)
    return captured.get()


def test_a_signal_is_shown_of_the_spec_that_a_finding_is_about() -> None:
    found = analyse(two_specs(), THRESHOLDS)
    assert {item["id"] for item in found["findings"]} >= {"too_many_manifests:0", "overlapping_manifests:0.d_0"}
    shown = {(item["signal"], item["scope_key"]): item for item in shown_signals(found)}
    assert ("manifests_to_expected", "") not in shown
    assert shown["manifests_to_expected", "0"]["level"] == "warning"
    assert shown["overlap_depth_mean", "0.d_0"]["level"] != "ok"
    for finding in found["findings"]:
        assert shown[finding["signal"], finding["scope_key"]]["level"] == finding["level"]


def test_specs_are_named_by_their_fields_wherever_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(two_specs(), monkeypatch)
    assert len(re.findall(r"spec \d", text)) == len(re.findall(r"spec (0 \(days\(d\)\)|1 \(c\))", text)) > 5
    assert re.search(r"manifests_to_expected +│ spec 0 \(days\(d\)\) +│ +30 │ +│ warning", text)


def test_a_narrow_terminal_breaks_no_signal_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = analyse(two_specs(), THRESHOLDS)
    text = printed(two_specs(), monkeypatch, columns="80")
    for item in shown_signals(found):
        row = rf"^│{item['signal']} *│.*│ {item['unit']} *│ (ok|warning|critical|–) *│$"
        assert re.search(row, text, re.MULTILINE), item["signal"]
    assert max(map(len, text.splitlines())) <= 80


def test_what_goes_into_a_pipe_is_as_wide_as_names_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert console.width == 200
    monkeypatch.setenv("COLUMNS", "90")
    assert console.width == 90


def test_evidence_is_shown_and_a_value_above_its_threshold_that_is_no_finding_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = " ".join(printed(two_specs(), monkeypatch).split())
    assert "About 500 files fit a manifest; here it is 2.0." in text
    assert (
        "metadata_to_data is not held against the table. The threshold of 0.01 (critical: 0.1) is for tables of 10,000 "
        "data files or more."
    ) in text
