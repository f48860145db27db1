"""The operator that runs our Spark jobs: spark-submit, and then the job's own result file as the judge."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from planning_health.errors import InputError, WorkFailedError
from planning_health.identifiers import TableName
from planning_health.settings import SettingsDocument, load_settings
from planning_links import TableLink
from planning_run import (
    announce,
    connection_secrets,
    environment,
    require_connection,
    settings_and_folder,
    settings_file,
)
from spark_log import readable

if TYPE_CHECKING:
    from airflow.sdk import Context

    from planning_health.envelope import ResultFile
    from planning_health.run_folder import RunFolder

JobName = Literal["measure", "propose", "act"]

_RUN_RESULTS: Final[dict[JobName, str]] = {"measure": "measure"}
_TABLE_RESULTS: Final[dict[JobName, str]] = {"propose": "proposal", "act": "action"}
"""The kind of result file that each job leaves: one for the run, or one for its table."""

_CONNECTION_HINT: Final = (
    "create it under Admin > Connections (type Spark; host local[*], spark://host:7077, yarn or k8s://https://host), "
    "or set AIRFLOW_CONN_{variable}"
)
_SPARK_DEFAULTS: Final = {
    "spark.driver.memory": "2g",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.yarn.maxAppAttempts": "1",  # a second attempt is Airflow's decision
}


class SparkJobOperator(SparkSubmitOperator):  # type: ignore[misc] # the provider is not typed
    """Runs one of the jobs in ``planning_health.jobs`` with spark-submit and returns its envelope.

    The master comes from the Airflow connection that the settings name; a missing connection is an error. Spark's
    configuration comes from the settings and holds no secret. The task succeeds only when spark-submit ended well
    *and* the job left a complete result of this very attempt.

    Args:
        job: the job's module in ``planning_health.jobs``.
        table: the table of a job that works on one (templated).
        request: what the person asked for in the form, as JSON (templated); its values reach the job as one argument.
    """

    template_fields = ("table", "request")
    operator_extra_links = (TableLink(),)
    template_fields_renderers: ClassVar[dict[str, str]] = {"request": "json"}

    def __init__(
        self, *, job: JobName, table: str | None = None, request: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        settings = load_settings(settings_file())
        super().__init__(
            application=_application(job),
            conn_id=settings.spark.connection,
            name=f"planning-health {job}",
            durable=False,  # the job itself can be repeated
            **kwargs,
        )
        self.job = job
        self.table = table
        self.request = request

    def execute(self, context: Context) -> dict[str, Any]:
        """Submits the job, waits for its end, and returns the envelope of its result.

        Raises:
            AirflowFailException: what no retry can mend: a missing connection, bad settings or input.
            AirflowException: the job failed, or left no result; the message gives the job's reason.
        """
        from planning_health.catalogs.java import require_java

        try:
            settings, folder = settings_and_folder(context)
            table = TableName.parse(self.table) if self.table else None
            require_java()
        except InputError as error:
            raise AirflowFailException(str(error)) from None  # one line is all that a person needs
        variables = self._variables(settings)
        self._configure(settings, folder, table)
        before = _read(folder, self.job, table)
        try:
            with environment(variables):
                super().execute(context)
        except AirflowException as error:
            result = _read(folder, self.job, table)
            if result is not None and result.reason and _is_of_this_attempt(result, before):
                raise AirflowException(f"job {self.job!r} failed: {result.reason}") from error
            raise
        envelope = self._judge(folder, _read(folder, self.job, table), before)
        announce(context, envelope)
        return envelope

    def _get_hook(self) -> Any:
        """The provider's hook, which logs what is worth reading of spark-submit's output."""
        hook = super()._get_hook()
        log_all = hook._process_spark_submit_log
        hook._process_spark_submit_log = lambda lines: log_all(readable(lines))
        return hook

    def _variables(self, settings: SettingsDocument) -> dict[str, str]:
        """The environment of spark-submit: the interpreter, and the secrets kept in Airflow connections."""
        connection = require_connection(self._conn_id, _CONNECTION_HINT.format(variable=self._conn_id.upper()))
        secrets = connection_secrets(settings)
        if secrets and connection.extra_dejson.get("deploy-mode") == "cluster":
            raise AirflowFailException(
                f"connection {self._conn_id!r} deploys the driver in the cluster, where secrets of Airflow connections "
                "cannot follow: give the driver an environment variable, and name it in the settings (secrets, env)"
            )
        own_binaries = f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{Path(sys.executable).parent}"
        return secrets | {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable), "PATH": own_binaries}

    def _configure(self, settings: SettingsDocument, folder: RunFolder, table: TableName | None) -> None:
        from planning_health.catalogs import spark_conf

        self.conf = _SPARK_DEFAULTS | spark_conf(settings)
        self.py_files = settings.spark.py_files
        self._archives = settings.spark.archives
        self.application_args = [
            *("--home", folder.home),
            *("--dag-id", folder.dag_id),
            *("--run-id", folder.run_id),
            *(("--table", str(table)) if table else ()),
            *(("--request", json.dumps(self.request, sort_keys=True)) if self.request is not None else ()),
        ]

    def _judge(self, folder: RunFolder, result: ResultFile | None, before: ResultFile | None) -> dict[str, Any]:
        if result is None or not _is_of_this_attempt(result, before):
            raise AirflowException(f"job {self.job!r} ended without a result: Spark's log above says more")
        if result.run_id != folder.run_id:
            raise AirflowException(f"result {result.path} is of run {result.run_id!r}, expected {folder.run_id!r}")
        if result.status != "ok":
            # What a maintenance job decided stands: it has repeated by itself what can be repeated.
            ending = AirflowFailException if self.job in _TABLE_RESULTS else AirflowException
            raise ending(f"job {self.job!r} {result.status}: {result.reason}")
        return result.envelope().model_dump()


def _application(job: JobName) -> str:
    """The job's file; nothing of it is imported here."""
    package = importlib.util.find_spec("planning_health.jobs")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("planning_health.jobs is not installed")
    return str(Path(package.submodule_search_locations[0]) / f"{job}.py")


def _read(folder: RunFolder, job: JobName, table: TableName | None) -> ResultFile | None:
    """The job's result file; a damaged one counts as none."""
    try:
        if job in _RUN_RESULTS:
            return folder.read_result(_RUN_RESULTS[job])
        return folder.read_result(_TABLE_RESULTS[job], table)
    except WorkFailedError:
        return None


def _is_of_this_attempt(result: ResultFile, before: ResultFile | None) -> bool:
    """Whether the file was written since: clocks of other machines are not asked."""
    return before is None or result.created_at != before.created_at
