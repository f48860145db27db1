"""Resolves a catalog definition: the ``${home}`` placeholder and the secrets."""

from __future__ import annotations

import os
import re
from typing import Final

from planning_health.errors import InputError
from planning_health.redaction import remember_secret
from planning_health.settings.models import CatalogDefinition, SecretReference, SettingsDocument
from planning_health.suggestions import did_you_mean

_UNSAFE: Final = re.compile(r"[^A-Z0-9]")


def definition(settings: SettingsDocument, catalog: str) -> CatalogDefinition:
    """The definition of a catalog.

    Raises:
        InputError: when the settings define no catalog of that name.
    """
    found = settings.catalogs.get(catalog)
    if found is None:
        raise InputError(
            f"catalog {catalog!r} is not defined in the settings{did_you_mean(catalog, settings.catalogs)} "
            f"Defined: {', '.join(sorted(settings.catalogs))}"
        )
    return found


def properties(settings: SettingsDocument, catalog: str) -> dict[str, str]:
    """The catalog's properties in Iceberg's keys, without secrets."""
    return {
        key: value.replace("${home}", settings.home) for key, value in definition(settings, catalog).properties.items()
    }


def require_spark_catalog(settings: SettingsDocument, catalog: str) -> None:
    """Refuses what only PyIceberg can open, before anything of Spark starts.

    Raises:
        InputError: for a catalog of PyIceberg's type ``sql``, which Iceberg does not know.
    """
    if definition(settings, catalog).properties.get("type") == "sql":
        raise InputError(
            f"catalog {catalog!r} is of type 'sql', which Spark cannot use: define it as type 'jdbc' with a jdbc: "
            "address (README, Catalogs)"
        )


def sqlite_path(uri: str) -> str | None:
    """The database file of a ``jdbc:sqlite:`` address; ``None`` for any other address."""
    scheme, prefix, rest = uri.partition("jdbc:sqlite:")
    return rest.removeprefix("file:").partition("?")[0] if prefix and not scheme else None


def secret_variable(reference: SecretReference) -> str:
    """The environment variable that carries a secret.

    A field of an Airflow connection travels in a variable of ours, set by the operator for the time of the task.
    """
    if reference.env:
        return reference.env
    name = f"{reference.airflow_connection}_{reference.field}".upper()
    return f"PLANNING_HEALTH_SECRET_{_UNSAFE.sub('_', name)}"


def secrets(settings: SettingsDocument, catalog: str) -> dict[str, str]:
    """The catalog's secret properties, read from the environment.

    Raises:
        InputError: naming the variable that is not set (never a value).
    """
    resolved: dict[str, str] = {}
    for key, reference in definition(settings, catalog).secrets.items():
        variable = secret_variable(reference)
        value = os.environ.get(variable)
        if value is None:
            source = (
                f" (from Airflow connection {reference.airflow_connection!r})" if reference.airflow_connection else ""
            )
            raise InputError(f"catalog {catalog!r} needs {key}: environment variable {variable} is not set{source}")
        remember_secret(value)
        resolved[key] = value
    return resolved
