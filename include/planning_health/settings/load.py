"""Reads the settings: defaults, below the YAML file, below ``PLANNING_HEALTH__A__B`` in the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from planning_health.errors import InputError
from planning_health.settings.models import SettingsDocument

SETTINGS_VARIABLE: Final = "PLANNING_HEALTH_SETTINGS"
HOME_VARIABLE: Final = "PLANNING_HEALTH_HOME"
DEMO_SETTINGS: Final = Path(__file__).parent.parent / "demo" / "settings.yaml"


class _Loader(SettingsDocument, BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="PLANNING_HEALTH__", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return env_settings, init_settings


def load_settings(file: str | os.PathLike[str] | None = None) -> SettingsDocument:
    """Loads the settings from ``file``, else from ``PLANNING_HEALTH_SETTINGS``, else the demonstration lake's.

    ``home`` becomes absolute: relative to the file, or to the working folder where ``PLANNING_HEALTH_HOME`` or the
    demonstration's own settings give it.

    Raises:
        InputError: naming the file, the key, the value and what was expected.
    """
    path = Path(file or os.environ.get(SETTINGS_VARIABLE) or DEMO_SETTINGS)
    document = _read_yaml(path)
    try:
        loaded = _Loader(**document)
    except ValidationError as error:
        raise InputError(f"settings {path}: {_first_problem(error)}") from error
    settings = SettingsDocument(**loaded.model_dump())
    base = Path.cwd() if path == DEMO_SETTINGS else path.parent
    home = os.environ.get(HOME_VARIABLE)
    return settings.model_copy(
        update={"home": absolute_home(home, Path.cwd()) if home else absolute_home(settings.home, base)}
    )


def absolute_home(home: str, base: Path) -> str:
    """A home folder as a URL or absolute path without a trailing slash."""
    if "://" in home:
        return home.rstrip("/")
    return str((base / Path(home).expanduser()).resolve())


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"settings file {str(path)!r} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"settings file {str(path)!r} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise InputError(f"settings file {str(path)!r} holds {type(document).__name__}, expected a mapping")
    return document


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"]) or "document"
    message = problem["msg"].removeprefix("Value error, ")
    value = problem.get("input")
    shown = f" (got {value!r})" if isinstance(value, str | int | float | bool) and "secret" not in where else ""
    return f"{where}: {message}{shown}"
