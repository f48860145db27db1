"""What must hold before maintenance touches a table. A guard that fails refuses the work with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict
from pyiceberg.transforms import UnknownTransform, VoidTransform
from pyiceberg.types import UUIDType

from planning_health.metadata.model import PlanningMetadata

MANAGED_BY_PROPERTY: Final = "planning-health.managed-by"
"""A table property that names who maintains the table; ours to respect, for its owner to set."""

OUR_NAME: Final = "planning-health"
INHERITANCE_PROPERTY: Final = "compatibility.snapshot-id-inheritance.enabled"
_HIGHEST_FORMAT_VERSION: Final = 3
_ROW_IDS_KEPT_SINCE: Final = (1, 12)


class Guard(BaseModel):
    """One guard: ``refuse`` ends the work, ``warn`` is shown."""

    model_config = ConfigDict(frozen=True)

    name: str
    level: str
    reason: str


class Environment(BaseModel):
    """What the guards need to know of the session and the catalog.

    Attributes:
        iceberg_version: the runtime's version, for example ``1.12.0``.
        wap_branch: value of ``spark.wap.branch``, if set.
        catalog_type: the catalog's ``type`` in the settings.
    """

    model_config = ConfigDict(frozen=True)

    iceberg_version: str
    wap_branch: str | None = None
    catalog_type: str | None = None


def check_table(metadata: PlanningMetadata, environment: Environment) -> list[Guard]:
    """The guards that fail or warn for the table as a whole; an empty list means that all hold."""
    return [*_table_guards(metadata), *_environment_guards(metadata, environment), *_warnings(metadata)]


def refusals(guards: Iterable[Guard]) -> list[str]:
    """The reasons of those guards that refuse."""
    return [guard.reason for guard in guards if guard.level == "refuse"]


def _refuse(name: str, reason: str) -> Guard:
    return Guard(name=name, level="refuse", reason=reason)


def _warn(name: str, reason: str) -> Guard:
    return Guard(name=name, level="warn", reason=reason)


def _table_guards(metadata: PlanningMetadata) -> Iterator[Guard]:
    info = metadata.info
    if info.format_version > _HIGHEST_FORMAT_VERSION:
        yield _refuse("format_version", f"format version {info.format_version} is newer than what is supported (3)")
    if info.ref not in (None, "main"):
        yield _refuse("branch", f"the measurement is of {info.ref!r}; only the main branch is maintained")
    if "encryption.key-id" in info.properties:
        yield _refuse("encryption", "the table is encrypted (property encryption.key-id)")
    manager = info.properties.get(MANAGED_BY_PROPERTY, OUR_NAME)
    if manager != OUR_NAME:
        yield _refuse("managed_elsewhere", f"the table is maintained by {manager!r} (property {MANAGED_BY_PROPERTY})")
    if info.properties.get("self-optimizing.enabled", "").lower() == "true":
        yield _refuse("managed_elsewhere", "the table is maintained by Amoro (property self-optimizing.enabled)")
    for spec in info.specs.values():
        for field in spec.fields:
            if isinstance(field.transform, UnknownTransform):
                yield _refuse("transform", f"partition field {field.name!r} has unknown transform {field.transform}")


def copies_manifests(format_version: int, properties: Mapping[str, str]) -> bool:
    """Whether Iceberg copies manifests that are added: format version 1 inherits no snapshot ids, unless told so."""
    return format_version == 1 and properties.get(INHERITANCE_PROPERTY, "false").lower() != "true"


def _warnings(metadata: PlanningMetadata) -> Iterator[Guard]:
    info = metadata.info
    if copies_manifests(info.format_version, info.properties):
        yield _warn(
            "driver_copies",
            f"format version 1: the driver copies {len(metadata.manifests)} manifests one after the other; set "
            f"{INHERITANCE_PROPERTY} = true, or upgrade the table",
        )
    statistics = getattr(info.metadata, "statistics", [])
    if any(file.snapshot_id == info.snapshot_id for file in statistics):
        yield _warn(
            "statistics_file",
            "the table's Puffin statistics belong to the current snapshot and are not used after a new one: "
            "compute them again afterwards (CALL system.compute_table_stats)",
        )


def _environment_guards(metadata: PlanningMetadata, environment: Environment) -> Iterator[Guard]:
    if metadata.info.format_version >= 3 and _version(environment.iceberg_version) < _ROW_IDS_KEPT_SINCE:
        yield _refuse(
            "runtime_version",
            f"Iceberg {environment.iceberg_version} changes row ids when it rewrites manifests of a v3 table; "
            "1.12.0 or newer is needed",
        )
    if environment.wap_branch:
        yield _refuse(
            "wap_branch",
            f"spark.wap.branch is {environment.wap_branch!r}: rows would be checked on that branch while the rewrite "
            "commits to main; unset it",
        )
    if environment.catalog_type == "hadoop":
        yield _warn(
            "hadoop_catalog",
            "a Hadoop catalog can lose commits of concurrent writers: make sure that nobody else writes meanwhile",
        )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def spec_refusal(metadata: PlanningMetadata, spec_id: int) -> str | None:
    """Why the manifests of a spec cannot be rewritten by Iceberg, or ``None`` when they can."""
    info = metadata.info
    spec = info.specs.get(spec_id)
    if spec is None:
        return f"spec {spec_id} does not exist; the table has {', '.join(map(str, sorted(info.specs)))}"
    current = info.metadata.schema()
    for field in spec.fields:
        if isinstance(field.transform, VoidTransform):
            continue
        if isinstance(field.transform, UnknownTransform):
            return f"cannot rewrite this spec: partition field {field.name!r} has unknown transform {field.transform}"
        if field.source_id not in current.field_ids:
            return (
                f"cannot rewrite this spec: the source column of partition field {field.name!r} was dropped "
                "(apache/iceberg#10234)"
            )
        if isinstance(field.transform.result_type(current.find_type(field.source_id)), UUIDType):
            return (
                f"cannot rewrite this spec: Iceberg's Spark action fails on UUID partitions (field {field.name!r}, "
                "apache/iceberg#13703)"
            )
    mine = metadata.manifests.filter(pc.equal(metadata.manifests["partition_spec_id"], spec_id))
    if mine["existing_files_count"].null_count or mine["added_files_count"].null_count:
        return "cannot rewrite this spec: an old v1 manifest list has no file counts, which Iceberg requires"
    return None
