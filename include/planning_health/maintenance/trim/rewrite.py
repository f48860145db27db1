"""Carries out a predicted trim: executors write the new manifests, Iceberg's API commits them in their places.

A first stage reads the old manifests and encodes their live entries for the new ones; a shuffle by new manifest
brings these together; a second stage writes them. The driver handles one row a manifest.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from planning_health.errors import WorkFailedError
from planning_health.maintenance.guards import copies_manifests
from planning_health.maintenance.predicted_state import Rows
from planning_health.maintenance.rewrite import ConflictError
from planning_health.maintenance.trim.executors import Places, Task, encoder, writer
from planning_health.maintenance.trim.manifest_file import EmptyManifest, described
from planning_health.maintenance.trim.prediction import TrimPrediction
from planning_health.maintenance.trim.staged import Staged
from planning_health.metadata.java_errors import causes
from planning_health.metadata.manifest_list import ManifestFile
from planning_health.metadata.manifest_reader import COMPILED_FROM_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_COMPRESSION_PROPERTY: Final = "write.manifest.compression-codec"
_MANIFESTS_PER_TASK: Final = 16
_TASKS_PER_CORE: Final = 2


def trim_manifests(spark: SparkSession, java_table: Any, prediction: TrimPrediction, summary: dict[str, str]) -> None:
    """Writes the predicted manifests and commits them in place of the old ones.

    What was written is removed when it is certain that the commit does not stand, and left where that is unknown; the
    run's next commit removes it then.

    Args:
        spark: the session.
        java_table: the table, freshly loaded.
        prediction: what to do.
        summary: goes into the snapshot's summary, the run id with it.

    Raises:
        ConflictError: when a manifest of the prediction is not current any more.
        WorkFailedError: when a manifest cannot be read or written.
        Exception: py4j's, when Iceberg refuses the commit.
    """
    old = _replaced(java_table, prediction)
    staged = Staged(java_table, summary)
    try:
        made = _write(spark, java_table, prediction, staged)
    except BaseException as error:
        staged.remove()
        raise _failure(error) or error from error
    try:
        _commit(spark, java_table, old, made, summary)
    except Exception as error:
        if any(_is_cleanable(spark, java) for java in causes(error)) and not staged.has_landed():
            staged.remove()
        raise
    if copies_manifests(java_table.operations().current().formatVersion(), dict(java_table.properties())):
        staged.remove()
    staged.remove_earlier()


def _failure(error: BaseException) -> WorkFailedError | None:
    """What an executor told, out of Spark's report of it; a manifest that is gone was replaced by somebody."""
    if (missing := re.search(r"FileNotFoundError: (.+)", str(error))) is not None:
        return ConflictError(f"a manifest is missing: {missing[1]}")
    told = re.search(r"planning_health\.errors\.\w+: (.+)", str(error))
    return WorkFailedError(told[1]) if told is not None else None


def _replaced(java_table: Any, prediction: TrimPrediction) -> list[Any]:
    wanted = set(prediction.replacement.old.manifests["path"].to_pylist())
    snapshot = java_table.currentSnapshot()
    current = snapshot.dataManifests(java_table.io()) if snapshot is not None else []
    found = [manifest for manifest in current if manifest.path() in wanted]
    if len(found) != len(wanted):
        raise ConflictError(
            f"{len(wanted) - len(found)} of {len(wanted)} manifests have been replaced since they were measured"
        )
    return found


def _is_cleanable(spark: SparkSession, java: Any) -> bool:
    from py4j.java_gateway import is_instance_of

    gateway = spark.sparkContext._gateway
    return bool(is_instance_of(gateway, java, "org.apache.iceberg.exceptions.CleanableFailure"))


def _commit(spark: SparkSession, java_table: Any, old: list[Any], made: list[bytes], summary: dict[str, str]) -> None:
    files = spark._jvm.org.apache.iceberg.ManifestFiles
    rewrite = java_table.rewriteManifests()
    for manifest in old:
        rewrite = rewrite.deleteManifest(manifest)
    for description in made:
        rewrite = rewrite.addManifest(files.decode(bytearray(description)))
    for key, value in summary.items():
        rewrite = rewrite.set(key, value)
    rewrite.commit()


def _empty_manifest(spark: SparkSession, java_table: Any, spec_id: int) -> EmptyManifest:
    """An empty manifest of the table's format version, in the codec that the table's own commits use."""
    iceberg: Any = spark._jvm.org.apache.iceberg
    output = iceberg.inmemory.InMemoryOutputFile("empty.avro")
    codec = str(java_table.properties().get(_COMPRESSION_PROPERTY) or "gzip")
    writer = iceberg.ManifestFiles.write(
        java_table.operations().current().formatVersion(),
        java_table.specs().get(spec_id),
        output,
        None,
        {"write.avro.compression-codec": codec},
    )
    writer.close()
    return EmptyManifest(bytes(output.toByteArray()))


def _write(spark: SparkSession, java_table: Any, prediction: TrimPrediction, staged: Staged) -> list[bytes]:
    """Writes the new manifests; returns their descriptions."""
    replacement = prediction.replacement
    if not replacement.groups:
        return []
    manifests = [_manifest_file(row) for row in replacement.old.manifests.to_pylist()]
    task = Task(
        rule=prediction.rule,
        empty=_empty_manifest(spark, java_table, prediction.spec_id),
        prefix=staged.prefix,
        io_properties=staged.io_properties,
        compiled=prediction.old_bytes >= COMPILED_FROM_BYTES,
    )
    places = _places(replacement.entries, replacement.groups)
    work = [(manifest, places[manifest.ordinal]) for manifest in manifests if manifest.ordinal in places]
    context = spark.sparkContext
    slices = max(-(-len(work) // _MANIFESTS_PER_TASK), min(len(work), _TASKS_PER_CORE * context.defaultParallelism))
    written: list[tuple[int, int]] = (
        context.parallelize(work, max(1, slices))
        .flatMap(encoder(task))
        .partitionBy(len(replacement.groups), int)
        .mapPartitions(writer(task))
        .collect()
    )
    lengths = dict(written)
    rows = prediction.metadata.manifests.slice(0, len(replacement.groups)).to_pylist()
    if lengths.keys() != set(range(len(rows))):
        raise WorkFailedError(f"{len(lengths)} of {len(rows)} new manifests were written")
    return [described(task.path(number), lengths[number], row) for number, row in enumerate(rows)]


def _manifest_file(row: dict[str, Any]) -> ManifestFile:
    names = ("ordinal", "path", "length", "partition_spec_id", "content", "sequence_number", "min_sequence_number")
    counts = {name: row[name] for name in row if name.endswith(("_files_count", "_rows_count", "first_row_id"))}
    return ManifestFile(
        **{name: row[name] for name in names},
        added_snapshot_id=row["added_snapshot_id"],
        counts=counts,
        partitions=None,
    )


def _places(entries: pa.Table, groups: Sequence[Rows]) -> dict[int, Places]:
    """Where entries go, by the old manifest's ordinal."""
    order = np.concatenate(list(groups)) if len(groups) else np.array([], dtype=np.int64)
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    group_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    rank_of = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes]) if len(sizes) else group_of
    ordinals = entries["manifest_ordinal"].to_numpy()[order]
    positions = entries["position"].to_numpy()[order]
    by_manifest = np.lexsort((rank_of, group_of, ordinals))
    found, starts = np.unique(ordinals[by_manifest], return_index=True)
    parts = np.split(by_manifest, starts[1:])
    return {
        int(ordinal): Places(positions[rows].astype(np.int32), group_of[rows], rank_of[rows])
        for ordinal, rows in zip(found, parts, strict=True)
    }
