"""The envelope around every result: small enough for an XCom, with a path to the full file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SCHEMA_VERSION: Final = 1
ACCEPTED_SCHEMA_VERSIONS: Final = frozenset({SCHEMA_VERSION, SCHEMA_VERSION - 1})

Headline = dict[str, int | float | None]
Status = Literal["ok", "failed", "skipped"]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Envelope(BaseModel):
    """What a step hands to the next one: identity, outcome, at most 20 headline numbers and the file's path.

    ``path`` is relative to the settings' ``home``. A headline value of ``None`` means "not measured", never 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA_VERSION
    kind: str
    run_id: str
    table: str | None = None
    table_uuid: str | None = None
    snapshot_id: int | None = None
    status: Status = "ok"
    reason: str | None = None
    created_at: str = Field(default_factory=_now)
    headline: Headline = Field(default_factory=dict, max_length=20)
    path: str

    @field_validator("schema_version")
    @classmethod
    def _known_version(cls, value: int) -> int:
        if value not in ACCEPTED_SCHEMA_VERSIONS:
            raise ValueError(f"schema_version {value} is not one of {sorted(ACCEPTED_SCHEMA_VERSIONS)}")
        return value


class ResultFile(Envelope):
    """A result file: the envelope and the full data."""

    data: Any = None

    def envelope(self) -> Envelope:
        """The envelope alone."""
        return Envelope(**self.model_dump(exclude={"data"}))
