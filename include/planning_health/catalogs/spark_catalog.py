"""A Spark session, and its configuration, from the catalog definitions."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planning_health.catalogs.definition import definition, properties, secret_variable, secrets, sqlite_path
from planning_health.catalogs.quiet_gateway import start_quietly
from planning_health.errors import InputError
from planning_health.run_folder import make_folder
from planning_health.settings.models import SettingsDocument

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_REDACTION: Final = "(?i)secret|password|token|(access|account)[._-]?key|credential|connection[._-]?string|jdbc[.]user"
_LOCAL: Final = {"spark.master": "local[*]", "spark.ui.enabled": "false", "spark.driver.memory": "2g"}


def spark_conf(settings: SettingsDocument) -> dict[str, str]:
    """Spark's configuration for all catalogs of the settings; a secret is a reference to an environment variable.

    Tables are never cached (a stale snapshot would be measured), planning stays on the driver so that times compare,
    and what looks like a secret is redacted from Spark's own pages and logs. ``spark.conf`` of the settings wins.
    """
    conf = {
        "spark.jars.packages": ",".join(settings.spark.packages),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.redaction.regex": _REDACTION,
        "spark.sql.iceberg.data-planning-mode": "local",
        "spark.sql.iceberg.delete-planning-mode": "local",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    for catalog in settings.catalogs:
        prefix = f"spark.sql.catalog.{catalog}"
        conf[prefix] = "org.apache.iceberg.spark.SparkCatalog"
        conf[f"{prefix}.cache-enabled"] = "false"
        conf |= {f"{prefix}.{key}": value for key, value in properties(settings, catalog).items()}
        conf |= {
            f"{prefix}.{key}": f"${{env:{secret_variable(reference)}}}"  # the driver's environment holds the value
            for key, reference in definition(settings, catalog).secrets.items()
        }
        if conf.get(f"{prefix}.type") == "jdbc":
            conf.setdefault(f"{prefix}.jdbc.schema-version", "V1")
    return conf | settings.spark.conf


def spark_session(settings: SettingsDocument, app_name: str, *, quiet: bool = False) -> SparkSession:
    """Starts (or finds) a Spark session for the settings' catalogs.

    Under ``spark-submit`` the submitted master stands; otherwise Spark runs in this process on all cores unless
    ``spark.conf`` says another master. ``quiet`` keeps what Java prints from the terminal.

    Raises:
        InputError: when Java is missing or too old, a secret is not set, or (``quiet``) Java does not start.
    """
    from planning_health.catalogs.java import require_java

    require_java()
    for catalog in settings.catalogs:
        secrets(settings, catalog)  # a variable that is not set is named before Spark starts
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise InputError("Spark is not installed: pip install '.[spark]'") from error

    submitted = "SPARK_ENV_LOADED" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    conf = ({} if submitted else _LOCAL) | spark_conf(settings)
    if quiet and not submitted:
        start_quietly(conf)
    session = SparkSession.builder.appName(app_name).config(map=conf).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _keep_jars_from_python(session.sparkContext)
    logger.info("%s", _where_to_look(settings, session))
    session.conf.unset("spark.wap.branch")  # row checks must read the branch that a rewrite commits to
    _create_embedded_folders(settings)
    return session


def _keep_jars_from_python(context: SparkContext) -> None:
    """Takes the packages' jars off the path of Python workers.

    Spark puts them there as if they held modules; before each task a worker reads their directories anew, which takes
    longer than a small table.
    """
    context._python_includes = [name for name in context._python_includes or () if not name.endswith(".jar")]


def _where_to_look(settings: SettingsDocument, session: SparkSession) -> str:
    """The application's id, its page while it runs, and its page in the history server."""
    context = session.sparkContext
    application = str(context.applicationId)
    pages = [f"page {context.uiWebUrl}"] if context.uiWebUrl else []
    if settings.spark.history_url:
        pages.append(f"history {settings.spark.history_url.rstrip('/')}/history/{application}")
    return ", ".join([f"Spark {session.version}, application {application} on {context.master}", *pages])


def _create_embedded_folders(settings: SettingsDocument) -> None:
    """SQLite creates its database file, but not the folder around it."""
    for catalog in settings.catalogs:
        path = sqlite_path(properties(settings, catalog).get("uri", ""))
        if path:
            make_folder(Path(path).parent)
