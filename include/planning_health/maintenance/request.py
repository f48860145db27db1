"""What a person asks of a maintenance run: the values of the form, validated."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Action = Literal["set_properties", "rewrite_manifests", "trim_statistics"]

MAX_MANIFEST_BYTES: Final = 2**31 - 1
"""Iceberg reads the target size as a long, and a table with a larger number cannot be written any more; a manifest of
more than 2 GiB serves nobody."""


class MaintenanceRequest(BaseModel):
    """The actions to propose and to run on one table; changes nothing unless ``dry_run`` is false.

    Attributes:
        actions: what to do; properties are always set before manifests are rewritten. A spec whose entries carry
            more statistics than the table's metrics properties say is trimmed, which clusters its data manifests
            too; the others are rewritten by Iceberg.
        metrics_default: value of ``write.metadata.metrics.default``.
        metrics_columns: column name → metrics mode; an empty mode removes the column's property.
        target_manifest_bytes: value of ``commit.manifest.target-size-bytes``, which the rewrite aims at and later
            commits keep to; ``None`` leaves the table's own.
        spec_id: the partition spec whose manifests are rewritten; ``None`` stands for each one that gains by it.
        sort_by: partition field names to cluster by; empty stands for all fields of the spec.
        dry_run: only say what would be done.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    actions: list[Action] = Field(default=["rewrite_manifests"])
    metrics_default: str | None = None
    metrics_columns: dict[str, str] = Field(default_factory=dict)
    target_manifest_bytes: int | None = Field(default=None, ge=1024, le=MAX_MANIFEST_BYTES)
    spec_id: int | None = Field(default=None, ge=0)
    sort_by: list[str] = Field(default_factory=list)
    dry_run: bool = True

    @model_validator(mode="after")
    def _values_belong_to_an_action(self) -> MaintenanceRequest:
        if not self.actions:
            raise ValueError(
                "nothing was asked for: expected 'set_properties', 'rewrite_manifests' or 'trim_statistics'"
            )
        if not self.sets_properties and self.wants_properties:
            raise ValueError("metrics modes and the manifest target size need the action 'set_properties'")
        if self.sets_properties and not self.wants_properties:
            raise ValueError("the action 'set_properties' needs metrics modes or a manifest target size")
        if not (self.rewrites_manifests or self.trims) and (self.spec_id is not None or self.sort_by):
            raise ValueError("a spec and a sort order need the action 'rewrite_manifests' or 'trim_statistics'")
        return self

    @property
    def wants_properties(self) -> bool:
        """Whether any property is given."""
        return bool(self.metrics_default or self.metrics_columns or self.target_manifest_bytes is not None)

    @property
    def sets_properties(self) -> bool:
        """Whether properties are to be set."""
        return "set_properties" in self.actions

    @property
    def rewrites_manifests(self) -> bool:
        """Whether Iceberg is to rewrite manifests that gain by it."""
        return "rewrite_manifests" in self.actions

    @property
    def trims(self) -> bool:
        """Whether manifests whose entries carry too many statistics are to be trimmed."""
        return "trim_statistics" in self.actions
