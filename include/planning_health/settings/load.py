"""Reads the settings: defaults, below the YAML file, below ``PLANNING_HEALTH__A__B`` in the environment."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from planning_health.errors import InputError, first_problem
from planning_health.redaction import first_line
from planning_health.settings.models import SettingsDocument

logger = logging.getLogger(__name__)

ENVIRONMENT_PREFIX: Final = "PLANNING_HEALTH__"
SETTINGS_VARIABLE: Final = "PLANNING_HEALTH_SETTINGS"
HOME_VARIABLE: Final = "PLANNING_HEALTH_HOME"
DEMO_SETTINGS: Final = Path(__file__).parent.parent / "demo" / "settings.yaml"


class _Loader(SettingsDocument, BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
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


def settings_path() -> Path:
    """The file that ``PLANNING_HEALTH_SETTINGS`` names, else the demonstration lake's settings."""
    return Path(os.environ.get(SETTINGS_VARIABLE) or DEMO_SETTINGS)


def settings_to_name(file: str | os.PathLike[str] | None = None) -> str | None:
    """What a command must name with ``--settings`` to use the same settings; ``None`` for the demonstration's own."""
    path = Path(file) if file else settings_path()
    return None if path == DEMO_SETTINGS else str(path.resolve())


def load_settings(file: str | os.PathLike[str] | None = None) -> SettingsDocument:
    """Loads the settings from ``file``, else from ``PLANNING_HEALTH_SETTINGS``, else the demonstration lake's.

    ``home`` becomes absolute: relative to the file, or to the working folder where ``PLANNING_HEALTH_HOME`` or the
    demonstration's own settings give it.

    Raises:
        InputError: naming the file, the key, the value and what was expected.
    """
    path = Path(file) if file else settings_path()
    if not file and path == DEMO_SETTINGS:
        logger.warning("no settings file is given (--settings, %s): using the demonstration lake's", SETTINGS_VARIABLE)
    document = _read_yaml(path)
    _check_environment()
    try:
        loaded = _Loader(**document)
    except ValidationError as error:
        raise InputError(
            f"settings {path} (or {ENVIRONMENT_PREFIX}… in the environment): {first_problem(error)}"
        ) from error
    except SettingsError as error:
        raise InputError(
            f"settings in the environment: {first_line(error)}; expected JSON for a nested value"
        ) from error
    settings = SettingsDocument(**loaded.model_dump())
    base = Path.cwd() if path == DEMO_SETTINGS else path.parent
    home = os.environ.get(HOME_VARIABLE)
    return settings.model_copy(
        update={"home": absolute_home(home, Path.cwd()) if home else absolute_home(settings.home, base)}
    )


def _check_environment() -> None:
    for name in os.environ:
        key = name.removeprefix(ENVIRONMENT_PREFIX).split("__")[0].lower()
        if name.startswith(ENVIRONMENT_PREFIX) and key not in SettingsDocument.model_fields:
            raise InputError(
                f"environment variable {name} sets no known key: expected one of "
                f"{', '.join(SettingsDocument.model_fields)}"
            )


def absolute_home(home: str, base: Path) -> str:
    """A home folder as a URL or absolute path without a trailing slash.

    Raises:
        InputError: when it names more than one place.
    """
    if "::" in home:
        raise InputError(f"home {home!r} holds '::', which chains file systems: expected one folder or URL")
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
    if document is None:
        raise InputError(f"settings file {str(path)!r} is empty: expected at least the key 'catalogs'")
    if not isinstance(document, dict):
        raise InputError(f"settings file {str(path)!r} holds {type(document).__name__}, expected a mapping")
    return document
