"""How the planning service is set up: batches, kind of tokens, and the limits of cache and requests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from planning_health.errors import InputError
from planning_health.plan_tasks.batching import BATCH_SIZE
from planning_health.plan_tasks.cache_model import CACHE_ENTRIES, CACHE_EXPIRY_SECONDS

MIB = 1024 * 1024

TOKEN_VARIABLE = "PLANNING_HEALTH_SERVE_TOKEN"  # noqa: S105 - the name of a variable, not a secret
"""Environment variable with the bearer token that requests must carry."""


class TokenKind(StrEnum):
    """What a plan-task names: positions in the whole plan, or entries of manifests."""

    OFFSET = "offset"
    ENTRY_RANGES = "entry-ranges"


@dataclass(frozen=True)
class ServiceOptions:
    """Settings of one server process.

    Attributes:
        batch_size: tasks (or manifest entries) of one response; 0 puts all into the first.
        tokens: which kind of plan-tasks is handed out; both kinds are redeemed whatever is set.
        cache_bytes: most bytes that cached plans hold together; 0 caches nothing.
        cache_entries: most cached plans.
        cache_seconds: how long a plan and its plan-id stay after their last use.
        plans_at_once: whole plans and entry ranges that are computed at the same time, which bounds the memory beside
            the cache; further requests wait.
        body_bytes: largest request body.
        token_bytes: most bytes that the plan-tasks of one response take together; a plan of more is refused.
        bearer: the token that requests must carry; ``None`` lets everyone in who reaches the socket.

    Raises:
        InputError: a number is out of its range.
    """

    batch_size: int = BATCH_SIZE
    tokens: TokenKind = TokenKind.OFFSET
    cache_bytes: int = 256 * MIB
    cache_entries: int = CACHE_ENTRIES
    cache_seconds: float = CACHE_EXPIRY_SECONDS
    plans_at_once: int = 4
    body_bytes: int = 4 * MIB
    token_bytes: int = 64 * MIB
    bearer: str | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, least in (
            ("batch_size", 0),
            ("cache_bytes", 0),
            ("cache_entries", 0),
            ("plans_at_once", 1),
            ("body_bytes", 1),
            ("token_bytes", 1),
        ):
            value = getattr(self, name)
            if value < least:
                raise InputError(f"{name} {value}: expected at least {least}")
        if self.cache_seconds <= 0:
            raise InputError(f"cache_seconds {self.cache_seconds}: expected more than 0")
        if self.bearer == "":
            raise InputError(f"the bearer token in {TOKEN_VARIABLE} is empty: expected a secret, or no such variable")
