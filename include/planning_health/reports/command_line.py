"""How a proposal is run, with the guards and the verification around it: by the form, or from the command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from planning_health.reports.model import APPLY
from planning_health.reports.reading import mapping, text, texts, whole
from planning_health.settings.models import SettingsDocument

PROGRAM: Final = "planning-health "
"""How statements begin that are run in a shell."""


def maintain_command(table: str, params: Mapping[str, Any], settings_file: str | None = None) -> str:
    """The shell command that carries a proposal out; empty for one that the product only recommends.

    Args:
        table: the table's name as :meth:`TableName.parse` reads it.
        params: the proposal's values for the maintenance form.
        settings_file: what it names with ``--settings``; ``None`` for a command that finds the settings without.
    """
    actions = texts(params.get("actions"))
    if not actions:
        return ""
    words = ["maintain", table, *_properties(params)]
    if "trim_statistics" in actions:
        words.append("--trim")
    if "rewrite_manifests" not in actions:
        words.append("--no-rewrite")
    words += _rewrite(params)
    return command(words, settings_file, APPLY)


def what_apply_needs(settings: SettingsDocument, catalog: str) -> str:
    """What must be there before a command with ``--apply`` can change tables of a catalog."""
    needed = ["pip install '.[spark]'", "Java 17 or 21"]
    defined = settings.catalogs.get(catalog)
    if defined is not None and defined.properties.get("type") == "sql":
        needed.append(f"catalog '{catalog}' defined as type: jdbc instead of sql (README, Catalogs)")
    return f"{APPLY} needs {', '.join(needed[:-1])} and {needed[-1]}"


def with_settings(line: str, settings_file: str | None) -> str:
    """A shell command of a proposal, which names no settings, completed; SQL stays as it is."""
    if not settings_file or not line.startswith(PROGRAM):
        return line
    named, apply = line.removesuffix(f" {APPLY}"), line.endswith(f" {APPLY}")
    return " ".join([named, "--settings", shlex.quote(settings_file), *([APPLY] * apply)])


def command(words: Sequence[str], settings_file: str | None, *more: str) -> str:
    """A shell command of ``planning-health``; ``more`` follows the name of the settings."""
    named = ["--settings", settings_file] if settings_file else []
    return shlex.join(["planning-health", *words, *named, *more])


def form_values(table: str, params: Mapping[str, Any]) -> str:
    """What to fill into the maintenance form for a proposal; empty for one that the product only recommends."""
    if not texts(params.get("actions")):
        return ""
    chosen = {name: value for name, value in {"table": table, **params}.items() if value not in (None, "", [], {})}
    return "; ".join(f"{name.replace('_', ' ')}: {_value(value)}" for name, value in chosen.items())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _properties(params: Mapping[str, Any]) -> Iterator[str]:
    if default := text(params.get("metrics_default")):
        yield from ("--set-metrics", f"default={default}")
    for column, mode in mapping(params.get("metrics_columns")).items():
        yield from ("--set-metrics", f"column.{column}={mode}")
    if (target := whole(params.get("target_manifest_bytes"))) is not None:
        yield from ("--target-manifest-bytes", str(target))


def _rewrite(params: Mapping[str, Any]) -> Iterator[str]:
    if (spec_id := whole(params.get("spec_id"))) is not None:
        yield from ("--spec-id", str(spec_id))
    for field in texts(params.get("sort_by")):
        yield from ("--sort-by", field)
