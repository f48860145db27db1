"""The whole diagnosis of one table: signals, lists, findings and the six steps, in the health result's shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planning_health.health.diagnose import six_steps
from planning_health.health.findings import Assessment, Finding, all_findings
from planning_health.health.lists import ManifestLists
from planning_health.health.measures import Measures
from planning_health.health.properties import properties_that_matter
from planning_health.health.signals import Signal, all_signals
from planning_health.health.thresholds import Level, Thresholds, worst
from planning_health.metadata.model import PlanningMetadata
from planning_health.settings.thresholds import DEFAULTS

_GUARDED: Final = frozenset(signal for signal, default in DEFAULTS.items() if default.floor)
"""Signals that only a finding can raise: their thresholds alone would condemn a table that cannot be better."""


def analyse(
    metadata: PlanningMetadata,
    thresholds: Thresholds,
    *,
    filter_columns: Iterable[str] = (),
    planning: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Diagnoses one recorded snapshot.

    Args:
        metadata: the recording.
        thresholds: the table's thresholds, see :func:`planning_health.health.thresholds.resolve_thresholds`.
        filter_columns: columns that the workload's queries filter by, in any case.
        planning: data of the table's planning result, if there is one; steps 2 and 3 read it.

    Returns:
        The data of the ``health`` result: ``state``, ``signals``, ``manifests``, ``lists``, ``overlap``,
        ``statistics_bytes``, ``columns_without_statistics``, ``properties``, ``findings`` and ``steps``. ``None``
        stands for "not measured".
    """
    measures = Measures(metadata, filter_columns)
    signals = all_signals(measures)
    assessment = Assessment(measures, signals, thresholds)
    findings = all_findings(assessment)
    lists = ManifestLists(measures.picture, thresholds)
    return {
        "state": worst([finding.level for finding in findings]),
        "signals": _levelled(signals, findings, thresholds),
        "manifests": lists.rows(),
        "lists": lists.lists(),
        "overlap": [overlap.as_json() for spec in measures.picture.specs for overlap in spec.overlap],
        "statistics_bytes": [dict(vars(column)) for column in measures.columns.by_column],
        "columns_without_statistics": measures.columns.columns_without,
        "properties": properties_that_matter(metadata.info.properties),
        "findings": [dict(vars(finding)) for finding in findings],
        "steps": [dict(vars(step)) for step in six_steps(assessment, findings, planning)],
    }


def levelled_signals(measures: Measures, thresholds: Thresholds) -> list[dict[str, Any]]:
    """The signals with their levels, as the health result holds them."""
    signals = all_signals(measures)
    return _levelled(signals, all_findings(Assessment(measures, signals, thresholds)), thresholds)


def _levelled(signals: Sequence[Signal], findings: Sequence[Finding], thresholds: Thresholds) -> list[dict[str, Any]]:
    found = {(finding.scope_key, finding.signal): finding.level for finding in findings}
    return [dict(vars(signal)) | {"level": _level(signal, found, thresholds)} for signal in signals]


def _level(signal: Signal, found: Mapping[tuple[str, str], Level], thresholds: Thresholds) -> Level:
    level = thresholds.level(signal.signal, signal.value)
    if level == "not_measured" or signal.signal not in _GUARDED:
        return level
    return found.get((signal.scope_key, signal.signal), "ok")
