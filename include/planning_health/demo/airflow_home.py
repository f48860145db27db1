"""An Airflow of its own for the demonstration: everything below ``<home>/airflow``, set up by environment variables.

Airflow is driven through its command line only: the library does not import it.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from planning_health.errors import InputError, WorkFailedError
from planning_health.run_folder import make_folder
from planning_health.settings import SettingsDocument
from planning_health.settings.load import DEMO_SETTINGS, HOME_VARIABLE, SETTINGS_VARIABLE

LOGIN: Final = "admin"
_REPOSITORY: Final = Path(__file__).resolve().parents[3]
_CPUS: Final = os.cpu_count() or 1


@dataclass(frozen=True)
class AirflowHome:
    """A prepared Airflow home.

    Attributes:
        folder: the folder, ``AIRFLOW_HOME``.
        environment: the whole environment for Airflow's processes.
    """

    folder: Path
    environment: Mapping[str, str]

    def command(self, *arguments: str) -> list[str]:
        """Airflow's command line with the interpreter that runs us."""
        return [sys.executable, "-m", "airflow", *arguments]

    def run(self, *arguments: str) -> None:
        """Runs an Airflow command to its end.

        Raises:
            WorkFailedError: with the last lines of its output.
        """
        done = subprocess.run(  # noqa: S603
            self.command(*arguments), env=dict(self.environment), capture_output=True, text=True, check=False
        )
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise WorkFailedError(f"airflow {' '.join(arguments)} ended with status {done.returncode}:\n{tail}")

    @property
    def password(self) -> str:
        """The password of the user ``admin``."""
        return str(json.loads(_password_file(self.folder).read_text(encoding="utf-8"))[LOGIN])


def prepare_airflow_home(settings: SettingsDocument, *, master: str = "local[*]") -> AirflowHome:
    """Makes the Airflow home below the settings' home folder, or finds it ready.

    Args:
        settings: the settings; their Spark connection and maintenance pool are defined.
        master: the Spark master of the connection, unless the environment defines that connection already.

    Raises:
        InputError: when Airflow is not installed, the home is not a local folder, or the Dags are not here.
        WorkFailedError: when Airflow's database cannot be made.
    """
    airflow_version = _airflow_version()
    if "://" in settings.home:
        raise InputError(f"home {settings.home!r} is not a local folder, which Airflow's own home needs to be")
    if not (_REPOSITORY / "dags").is_dir():
        raise InputError(f"the Dags are not at {_REPOSITORY / 'dags'}: install from a clone (`pip install -e`)")
    folder = Path(settings.home) / "airflow"
    make_folder(folder)
    home = AirflowHome(folder, os.environ | airflow_environment(settings, folder, master))
    _make_password(folder)
    ready = folder / f"ready-{airflow_version}-{settings.maintenance.pool}"
    if not ready.exists():
        home.run("db", "migrate")
        home.run("pools", "set", settings.maintenance.pool, "1", "Maintenance: one table at a time")
        ready.touch()
    return home


def airflow_environment(settings: SettingsDocument, folder: Path, master: str) -> dict[str, str]:
    """The variables that point Airflow at our Dags and plugins, and keep it to itself."""
    connection = f"AIRFLOW_CONN_{settings.spark.connection.upper()}"
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {
        "PATH": binaries,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(_REPOSITORY / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(_REPOSITORY / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": str(max(2, _CPUS)),
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{LOGIN}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_password_file(folder)),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "GX_ANALYTICS_ENABLED": "false",
        connection: os.environ.get(connection, json.dumps({"conn_type": "spark", "host": master})),
        HOME_VARIABLE: settings.home,
        SETTINGS_VARIABLE: str(Path(os.environ.get(SETTINGS_VARIABLE) or DEMO_SETTINGS).resolve()),
    }


def _airflow_version() -> str:
    try:
        return version("apache-airflow")
    except PackageNotFoundError as error:
        raise InputError("Airflow is not installed: `make .venv`, or `pip install '.[airflow]'`") from error


def _password_file(folder: Path) -> Path:
    return folder / "passwords.json"


def _make_password(folder: Path) -> None:
    file = _password_file(folder)
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(json.dumps({LOGIN: secrets.token_urlsafe(12)}), encoding="utf-8")
