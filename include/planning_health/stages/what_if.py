"""Step: what a table's queries would read if its manifests, its statistics or its partition spec were others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from planning_health.envelope import Envelope, Headline
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.maintenance.layout import layout_of
from planning_health.maintenance.prediction import target_size
from planning_health.maintenance.proposals import decide_spec, used_specs
from planning_health.maintenance.workload import Workload
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.model import DATA
from planning_health.planning.fewer_statistics import with_statistics
from planning_health.planning.respec import with_spec
from planning_health.planning.scan import ScanPlanner
from planning_health.planning.spec_text import parse_spec
from planning_health.planning.what_if import compare
from planning_health.run_folder import RunFolder
from planning_health.settings import Query, SettingsDocument
from planning_health.stages.queries import queries_of
from planning_health.stages.table_stage import Outcome, run_table_stage

KIND: Final = "what_if"


class WhatIfRequest(BaseModel):
    """The alternatives that are asked for; a rewrite of the manifests is always one of them.

    Attributes:
        spec: another partition spec, as in Spark SQL: ``days(ts), bucket(16, id)``; ``None`` leaves it out.
        metrics_default: the metrics mode of all columns that ``metrics_columns`` does not name.
        metrics_columns: column name → metrics mode; without any mode this alternative is left out.
        target_manifest_bytes: the size that rewritten manifests aim at; ``None`` stands for the table's own.
        sort_by: partition field names that rewritten manifests are clustered by; empty stands for all fields.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: str | None = None
    metrics_default: str | None = None
    metrics_columns: dict[str, str] = Field(default_factory=dict)
    target_manifest_bytes: int | None = Field(default=None, ge=1024)
    sort_by: list[str] = Field(default_factory=list)

    @property
    def spec_columns(self) -> list[str]:
        """The columns that the other spec partitions by: a measurement must record their statistics.

        Raises:
            InputError: when the spec cannot be read.
        """
        return [column for column, _ in parse_spec(self.spec)] if self.spec else []


def what_if(settings: SettingsDocument, run_folder: RunFolder, table: TableName, request: WhatIfRequest) -> Envelope:
    """Predicts what each of the table's queries reads as it is and after each alternative; changes nothing.

    The result's data is that of :func:`what_if_document`, and ``not_planned`` as in the planning result. An alternative
    that does not fit the table (an unknown column, mode, transform or sort field), and queries of which none does, give
    status ``failed`` with the reason.
    """

    def work(metadata: PlanningMetadata) -> Outcome:
        queries = queries_of(settings, table, ScanPlanner(metadata))
        if queries.not_planned and queries.are_defaults:  # nothing of what was asked for can be answered
            raise InputError("; ".join(query.reason for query in queries.not_planned))
        data = what_if_document(metadata, queries.planned, request)
        return Outcome(_headline(data), data | {"not_planned": [query.as_json() for query in queries.not_planned]})

    return run_table_stage(run_folder, table, KIND, work)


def what_if_document(metadata: PlanningMetadata, queries: Sequence[Query], request: WhatIfRequest) -> dict[str, Any]:
    """The alternatives as JSON.

    Each has an ``id`` (``rewrite_manifests``, ``metrics``, ``partition_spec``), a ``title``, ``notes`` on what the
    prediction rests on, the whole ``table`` before and after, and for each of the ``predicates`` what is read before
    and after: manifests, files and metadata bytes.

    Raises:
        InputError: a predicate or an alternative does not fit the table.
    """
    if metadata.info.snapshot_id is None:
        return {"request": request.model_dump(), "alternatives": [], "reason": "the table is empty"}
    alternatives = [_rewritten(metadata, queries, request)]
    if request.metrics_default or request.metrics_columns:
        alternatives.append(_with_fewer_statistics(metadata, queries, request))
    if request.spec:
        alternatives.append(_partitioned_otherwise(metadata, queries, request.spec))
    return {"request": request.model_dump(), "alternatives": alternatives, "reason": None}


def _rewritten(metadata: PlanningMetadata, queries: Sequence[Query], request: WhatIfRequest) -> dict[str, Any]:
    target = request.target_manifest_bytes or target_size(metadata.info.properties)
    workload = Workload.of(metadata, queries)
    state, left, refused = metadata, [], []
    specs = used_specs(metadata)
    for spec_id in specs:
        decision = decide_spec(state, spec_id, target, request.sort_by, workload)
        if decision.prediction is not None:
            state = decision.prediction.metadata
        else:
            left.append(decision.reason)
        refused += [decision.reason] if decision.refused else []
    if request.sort_by and len(refused) == len(specs):
        raise InputError(refused[-1])
    order = f", clustered by {', '.join(request.sort_by)}" if request.sort_by else ""
    title = f"Manifests rewritten to {target:,} bytes{order}"
    notes = [f"left as it is: {reason}" for reason in left] if state is not metadata else left
    return _alternative("rewrite_manifests", title, metadata, state, queries, [*notes, _bytes_note(metadata)])


def _with_fewer_statistics(
    metadata: PlanningMetadata, queries: Sequence[Query], request: WhatIfRequest
) -> dict[str, Any]:
    change = with_statistics(metadata, request.metrics_columns, default=request.metrics_default)
    modes = {"default": request.metrics_default, **request.metrics_columns}
    title = f"Statistics {', '.join(f'{column} = {mode}' for column, mode in modes.items() if mode)}"
    notes = ["Files keep their statistics until their data is rewritten: this is the table after that."]
    notes += [f"the statistics of {name} are not recorded; no predicate uses them" for name in change.not_recorded]
    alternative = _alternative("metrics", title, metadata, change.metadata, queries, [*notes, _bytes_note(metadata)])
    return alternative | {"saved_bytes": change.saved_bytes}


def _partitioned_otherwise(metadata: PlanningMetadata, queries: Sequence[Query], spec: str) -> dict[str, Any]:
    predicted = with_spec(metadata, parse_spec(spec))
    notes = [
        "All data is rewritten. The model: rows are spread evenly between a file's bounds, and over all buckets; each "
        "partition's rows are gathered into files of the target size."
    ]
    return _alternative(
        "partition_spec",
        f"Partitioned by {spec.strip()}",
        metadata,
        predicted,
        queries,
        [*notes, _bytes_note(metadata)],
    )


def _alternative(
    name: str,
    title: str,
    before: PlanningMetadata,
    after: PlanningMetadata,
    queries: Sequence[Query],
    notes: Sequence[str],
) -> dict[str, Any]:
    effects = compare(before, after, [query.where for query in queries])
    return {
        "id": name,
        "title": title,
        "notes": list(notes),
        "table": {"before": _whole(before), "after": _whole(after)},
        "predicates": [
            {"name": query.name, "weight": query.weight, **effect.document()}
            for query, effect in zip(queries, effects, strict=True)
        ],
    }


def _whole(metadata: PlanningMetadata) -> dict[str, int]:
    layout = layout_of(metadata)
    return {
        "data_manifests": layout.data_manifests,
        "delete_manifests": layout.delete_manifests,
        "data_files": len(metadata.data_files) - int((metadata.data_files["status"].to_numpy() == 2).sum()),
        "metadata_bytes": layout.metadata_bytes,
    }


def _bytes_note(metadata: PlanningMetadata) -> str:
    """What the predicted metadata bytes rest on."""
    entries = sum(len(manifest.entries) for manifest in metadata.samples.manifests if manifest.content == DATA)
    if entries:
        return f"Metadata bytes are predicted by encoding {entries:,} of the table's real entries again."
    return "Metadata bytes are scaled: this measurement kept none of the table's real entries."


def _headline(data: Mapping[str, Any]) -> Headline:
    alternatives = data["alternatives"]
    headline: Headline = {"alternatives": len(alternatives)}
    for alternative in alternatives:
        opened = [
            sum(side["data_manifests"] + side["delete_manifests"] for side in sides)
            for sides in zip(*((p["before"], p["after"]) for p in alternative["predicates"]), strict=True)
        ] or [0, 0]
        name = alternative["id"]
        headline |= {
            "manifests_opened": opened[0],
            f"{name}_manifests_opened": opened[1],
            f"{name}_metadata_bytes": alternative["table"]["after"]["metadata_bytes"],
        }
    return headline
