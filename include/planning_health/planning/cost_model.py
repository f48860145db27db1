"""What planning costs: the reference lesson's formulas, with its constants or with those of the table at hand.

The lesson compares listing directories with reading Iceberg metadata, both counted in requests of one latency:
``listing = files / files_per_partition · selectivity · L`` and
``iceberg = (2 entry-point requests + 1 manifest list + max(1, files / files_per_manifest) · selectivity) · L``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from planning_health.metadata.model import DATA, DELETED

if TYPE_CHECKING:
    from planning_health.metadata.model import PlanningMetadata

_ENTRY_POINT_REQUESTS = 2
_MANIFEST_LIST_REQUESTS = 1


@dataclass(frozen=True, slots=True)
class CostModel:
    """The constants of the two formulas.

    Attributes:
        latency_ms: milliseconds of one request.
        files_per_partition: data files in a directory.
        files_per_manifest: entries of a manifest.
        selectivity: share of partitions and manifests that a query needs, 0 to 1.
    """

    latency_ms: float = 80.0
    files_per_partition: float = 8.0
    files_per_manifest: float = 500.0
    selectivity: float = 0.01

    def listing_seconds(self, files: int) -> float:
        """Seconds of listing the directories of the partitions that a query needs."""
        return files / self.files_per_partition * self.selectivity * self.latency_ms / 1000

    def iceberg_seconds(self, files: int) -> float:
        """Seconds of reading the metadata that a query needs."""
        manifests = max(1.0, files / self.files_per_manifest) * self.selectivity
        return (_ENTRY_POINT_REQUESTS + _MANIFEST_LIST_REQUESTS + manifests) * self.latency_ms / 1000

    def ratio(self, files: int) -> float:
        """How many times faster Iceberg plans than listing; bounded by files per manifest / per partition."""
        return self.listing_seconds(files) / self.iceberg_seconds(files)

    def break_even_files(self) -> float | None:
        """Number of files from which Iceberg is faster; None where it never is."""
        gain = 1 / self.files_per_partition - 1 / self.files_per_manifest
        if gain <= 0:
            return None
        return (_ENTRY_POINT_REQUESTS + _MANIFEST_LIST_REQUESTS) / (gain * self.selectivity)


LESSON = CostModel()


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """What reading one table's manifests took when they were recorded; means over its manifests.

    Attributes:
        manifests: number of manifests.
        read_ms: fetching a manifest.
        decode_ms: decoding a manifest.
        bytes_per_manifest: its size.
        entries_per_manifest: its entries, DELETED ones included.
        files_per_partition: live data files for each distinct partition; None for a table without files.
    """

    manifests: int
    read_ms: float
    decode_ms: float
    bytes_per_manifest: float
    entries_per_manifest: float
    files_per_partition: float | None

    def model(self, selectivity: float) -> CostModel:
        """The lesson's formulas with this table's constants."""
        return CostModel(
            latency_ms=self.read_ms + self.decode_ms,
            files_per_partition=self.files_per_partition or LESSON.files_per_partition,
            files_per_manifest=max(self.entries_per_manifest, 1.0),
            selectivity=selectivity,
        )

    def planning_seconds(self, manifests: int) -> float:
        """Seconds of opening some manifests one after the other."""
        return manifests * (self.read_ms + self.decode_ms) / 1000


def measured_costs(metadata: PlanningMetadata) -> MeasuredCosts | None:
    """Take the constants from a recorded picture; None for a snapshot without manifests."""
    manifests = metadata.manifests
    if not len(manifests):
        return None
    entries = sum(_mean(metadata, f"entries_{kind}") for kind in ("added", "existing", "deleted"))
    return MeasuredCosts(
        manifests=len(manifests),
        read_ms=_mean(metadata, "read_ms"),
        decode_ms=_mean(metadata, "decode_ms"),
        bytes_per_manifest=_mean(metadata, "length"),
        entries_per_manifest=entries,
        files_per_partition=_files_per_partition(metadata),
    )


def _mean(metadata: PlanningMetadata, column: str) -> float:
    return float(pc.mean(metadata.manifests[column]).as_py() or 0.0)


def _files_per_partition(metadata: PlanningMetadata) -> float | None:
    live = metadata.data_files.filter(pc.not_equal(metadata.data_files["status"], DELETED))
    if not len(live):
        return None
    partitions = {tuple(values) for values in live["partition"].to_pylist()}
    return len(live) / len(partitions)


def cost_document(metadata: PlanningMetadata, mean_selectivity: float | None) -> dict[str, Any]:
    """Describe both cost models for a table: the lesson's, and the one with the constants measured on it.

    Args:
        metadata: the recorded picture.
        mean_selectivity: share of data manifests that the table's queries open; the lesson's 1 % without queries.
    """
    statuses = metadata.data_files["status"].to_numpy()
    files = int(np.count_nonzero(statuses != DELETED))
    manifests = int(np.count_nonzero(metadata.manifests["content"].to_numpy() == DATA))
    document: dict[str, Any] = {"files": files, "data_manifests": manifests, "lesson": _priced(LESSON, files)}
    costs = measured_costs(metadata)
    if costs is not None:
        selectivity = LESSON.selectivity if mean_selectivity is None else mean_selectivity
        document["measured"] = {**asdict(costs), **_priced(costs.model(selectivity), files)}
    return document


def _priced(model: CostModel, files: int) -> dict[str, Any]:
    return {
        "latency_ms": model.latency_ms,
        "selectivity": model.selectivity,
        "listing_seconds": model.listing_seconds(files),
        "iceberg_seconds": model.iceberg_seconds(files),
        "ratio": model.ratio(files),
        "break_even_files": model.break_even_files(),
    }


def cost_sentence(document: dict[str, Any]) -> str:
    """Say both models in one sentence."""
    lesson = document["lesson"]
    text = (
        f"planning {document['files']:,} files takes {lesson['iceberg_seconds']:.3f} s by a rule of thumb "
        f"({LESSON.latency_ms:.0f} ms a request, {LESSON.files_per_manifest:.0f} files a manifest)"
    )
    measured = document.get("measured")
    if measured is None:
        return text
    per_manifest = measured["read_ms"] + measured["decode_ms"]
    size, entries = measured["bytes_per_manifest"], measured["entries_per_manifest"]
    return (
        f"{text}, {measured['iceberg_seconds']:.3f} s by what was measured on the table ({per_manifest:.1f} ms, "
        f"{size:,.0f} bytes and {entries:.0f} entries a manifest)"
    )
