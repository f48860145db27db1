"""Repairs that are recommended and never run unasked: they rewrite data or forget history.

Each names the procedure that removes the cause: ``rewrite_manifests`` can neither compact files nor drop deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow.compute as pc

from planning_health.identifiers import sql_string
from planning_health.maintenance import commands
from planning_health.maintenance.layout import live_files
from planning_health.metadata import PlanningMetadata
from planning_health.metadata.model import EQUALITY_DELETES

SNAPSHOTS_KEPT: Final = 10
SNAPSHOT_AGE: Final = timedelta(days=5)
"""Iceberg's own default age of expiry; far longer than any job that still reads an old snapshot."""


_NOT_PREDICTED: Final[dict[str, Any]] = {
    "manifests_before": None,
    "manifests_after": None,
    "metadata_bytes_before": None,
    "metadata_bytes_after": None,
    "overlap": [],
    "queries": [],
}


def recommendations(metadata: PlanningMetadata, findings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Recommendations for a table's findings, in the shape of proposals without a prediction.

    Args:
        metadata: the recorded snapshot that was diagnosed.
        findings: those of its health result; each kind is answered once.
    """
    by_rule: dict[str, Mapping[str, Any]] = {}
    for finding in findings:
        by_rule.setdefault(str(finding["id"]).split(":")[0], finding)
    answers = [(rule, _ANSWERS[rule]) for rule in by_rule if rule in _ANSWERS]
    return [answer(metadata, str(by_rule[rule]["title"])) for rule, answer in answers]


def _recommendation(action: str, title: str, why: str, command: str, risk: str) -> dict[str, Any]:
    return {
        "id": f"recommend_{action}",
        "action": f"recommend_{action}",
        "title": title,
        "why": why,
        "spec_id": None,
        "sort_by": [],
        "commands": [command],
        "undo": [],
        "predicted": _NOT_PREDICTED,
        "risk": risk,
        "params": {},
    }


def _options(**options: str) -> str:
    pairs = ", ".join(f"{sql_string(name.replace('_', '-'))}, {sql_string(value)}" for name, value in options.items())
    return f"map({pairs})"


def _compact_files(metadata: PlanningMetadata, why: str) -> dict[str, Any]:
    return _recommendation(
        "rewrite_data_files",
        "Compact small data files",
        why,
        commands.call(metadata.info.name, "rewrite_data_files"),
        "Rewrites data: it takes time and space, and conflicts with concurrent deletes of the same files. New data "
        "files get statistics by the table's current metrics properties.",
    )


def _compact_deletes(metadata: PlanningMetadata, why: str) -> dict[str, Any]:
    return _recommendation(
        "compact_deletes",
        "Apply merge-on-read deletes to the data files",
        why,
        commands.call(metadata.info.name, "rewrite_data_files", options=_options(delete_file_threshold="1")),
        "Rewrites every data file that has deletes; conflicts with concurrent deletes of the same files.",
    )


def _remove_dangling(metadata: PlanningMetadata, why: str) -> dict[str, Any]:
    deletes = live_files(metadata.delete_files)
    plain = pc.and_(pc.not_equal(deletes["content"], EQUALITY_DELETES), pc.not_equal(deletes["file_format"], "PUFFIN"))
    if pc.all(plain, min_count=0).as_py():
        return _recommendation(
            "remove_dangling_deletes",
            "Remove position deletes that apply to nothing",
            why,
            commands.call(metadata.info.name, "rewrite_position_delete_files", options=_options(rewrite_all="true")),
            "Rewrites delete files only. rewrite_manifests does not remove them.",
        )
    if _has_global_deletes(metadata, deletes):
        return _recommendation(
            "remove_dangling_deletes",
            "Compact data files until the deletes are gone",
            why,
            commands.call(metadata.info.name, "rewrite_data_files", options=_options(delete_file_threshold="1")),
            "Do not add the option remove-dangling-deletes here: the table has equality deletes of an unpartitioned "
            "spec, which apply to the files of every spec, and the option looks at their own spec only.",
        )
    return _recommendation(
        "remove_dangling_deletes",
        "Remove delete files that apply to nothing",
        why,
        commands.call(metadata.info.name, "rewrite_data_files", options=_options(remove_dangling_deletes="true")),
        "The deletes are removed only when the procedure finds at least one group of data files to rewrite; otherwise "
        "add the option rewrite-all with a where clause on one small partition. rewrite_manifests does not remove "
        "them.",
    )


def _has_global_deletes(metadata: PlanningMetadata, deletes: Any) -> bool:
    unpartitioned = [spec_id for spec_id, spec in metadata.info.specs.items() if spec.is_unpartitioned()]
    equality = deletes.filter(pc.equal(deletes["content"], EQUALITY_DELETES))
    return len(metadata.info.specs) > 1 and any(
        spec_id in unpartitioned for spec_id in pc.unique(equality["spec_id"]).to_pylist()
    )


def _expire_snapshots(metadata: PlanningMetadata, why: str) -> dict[str, Any]:
    cutoff = datetime.fromisoformat(metadata.info.measured_at) - SNAPSHOT_AGE
    older_than = f"TIMESTAMP {sql_string(cutoff.strftime('%Y-%m-%d %H:%M:%S') + 'Z')}"
    return _recommendation(
        "expire_snapshots",
        "Expire old snapshots",
        why,
        commands.call(metadata.info.name, "expire_snapshots", older_than=older_than, retain_last=str(SNAPSHOTS_KEPT)),
        "Cannot be undone: time travel and incremental reads before the cut-off end. Keep the cut-off older than the "
        "longest running job, and do not follow it with an orphan-file clean-up of a shorter one.",
    )


_ANSWERS: Final[dict[str, Callable[[PlanningMetadata, str], dict[str, Any]]]] = {
    "small_files": _compact_files,
    "many_delete_files": _compact_deletes,
    "dangling_deletes": _remove_dangling,
    "many_snapshots": _expire_snapshots,
}
