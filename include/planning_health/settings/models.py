"""The settings document, version 1: one typed description of everything that can be configured."""

from __future__ import annotations

import re
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.settings.thresholds import DEFAULTS
from planning_health.suggestions import did_you_mean

ICEBERG_VERSION: Final = "1.12.0"
ICEBERG_RUNTIME: Final = f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG_VERSION}"
CATALOG_TYPES: Final = ("jdbc", "rest", "hive", "glue", "sql", "dynamodb", "bigquery", "nessie", "hadoop")
"""Iceberg's, and PyIceberg's where Iceberg has none: ``sql``, ``dynamodb``."""
MOST_WORKERS: Final = 10_000
MOST_TASKS: Final = 1_000_000
MOST_RANKED: Final = 10_000_000
"""Tasks times workers: every worker is ranked for every task, three times at some 40 bytes."""
MOST_DAYS: Final = 36_500
_CRON: Final = r"^(@(hourly|daily|weekly|monthly|quarterly|yearly)|(\S+\s+){4}\S+)$"
_SECRET_ARGUMENT: Final = re.compile(r"(?i)password|secret|token|api_?key|webhook")
_SECRET_KEY: Final = re.compile(
    r"(?i)(password|credential|secret|secret[._-](access-)?key|(^|[._-])token|account[._-]key([.][\w.]+)?|connection-string)$"
)
"""Property keys whose values are secrets: the last part of Iceberg's and Spark's own keys."""
_SECRET_IN_ADDRESS: Final = re.compile(
    r"(?i)://[^/@\s:]+:[^/@\s]+@|[?&;](password|[\w.-]*(secret|token|signature|sig))="
)


_CATALOG_NAME: Final = re.compile(r"\w[\w-]*")


def _no_switch(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


Integer = Annotated[int, BeforeValidator(_no_switch)]
"""An integer; ``true`` and ``yes``, which YAML reads as switches, are none."""
Number = Annotated[float, BeforeValidator(_no_switch)]
"""A number; switches are none."""


def _possible(value: Any, parse: ValidatorFunctionWrapHandler) -> timedelta:
    if isinstance(value, bool):
        raise ValueError(f"expected {_DURATION}")
    try:
        length: timedelta = parse(value)
    except ValidationError as error:
        raise ValueError(f"expected {_DURATION}") from error
    if not timedelta(0) < length <= timedelta(days=MOST_DAYS):
        raise ValueError(f"expected a length of time greater than 0 and at most {MOST_DAYS} days: {_DURATION}")
    return length


_DURATION: Final = "a length of time like P7D, PT12H or PT30M, or a number of seconds"
Duration = Annotated[timedelta, WrapValidator(_possible)]
"""A length of time above zero, as ISO 8601 (``PT8H``, ``P2D``) or seconds."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    FORM: ClassVar[str] = ""
    """How it is written, where an example tells more than the names of its keys."""

    @model_validator(mode="before")
    @classmethod
    def _knows_every_key(cls, value: Any) -> Any:
        known = ", ".join(cls.model_fields)
        if not isinstance(value, dict | BaseModel):
            raise ValueError(f"expected {cls.FORM or f'a mapping with keys among {known}'}")
        unknown = [key for key in value if key not in cls.model_fields] if isinstance(value, dict) else []
        if unknown:
            name = str(unknown[0])
            raise ValueError(f"unknown key {name!r}{did_you_mean(name, cls.model_fields)} Known keys: {known}")
        return value


class SecretReference(_Model):
    """Where a secret is found: an environment variable, or a field of an Airflow connection."""

    FORM = "where the secret is found: {env: NAME} or {airflow_connection: ID, field: FIELD}"

    env: str | None = None
    airflow_connection: str | None = None
    field: str = "password"

    @model_validator(mode="after")
    def _exactly_one_source(self) -> SecretReference:
        if (self.env is None) == (self.airflow_connection is None):
            raise ValueError("a secret names either env or airflow_connection")
        return self


class CatalogDefinition(_Model):
    """One catalog, in Iceberg's own property keys; both engines are configured from it.

    ``${home}`` in a value stands for the settings' home folder.
    """

    properties: dict[str, str]
    secrets: dict[str, SecretReference] = Field(default_factory=dict)

    @field_validator("properties", mode="before")
    @classmethod
    def _plain_text(cls, value: Any) -> Any:
        if isinstance(value, dict):
            lower = {key for key, item in value.items() if isinstance(item, bool) or key == "type"}
            return {key: str(item).lower() if key in lower else str(item) for key, item in value.items()}
        return value

    @field_validator("secrets", mode="before")
    @classmethod
    def _names_its_keys(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("expected properties with where their secrets are found: {credential: {env: NAME}}")
        return value

    @field_validator("properties")
    @classmethod
    def _hold_no_secret(cls, properties: dict[str, str]) -> dict[str, str]:
        for key, value in properties.items():
            if _SECRET_KEY.search(key):
                raise ValueError(f"{key} is a secret: expected it under `secrets`, not `properties`")
            if _SECRET_IN_ADDRESS.search(value):
                raise ValueError(f"{key} is an address with a secret in it: expected that under `secrets`")
        return properties

    @model_validator(mode="after")
    def _has_a_type(self) -> CatalogDefinition:
        known, kind = ", ".join(CATALOG_TYPES), self.properties.get("type")
        if kind is None and "catalog-impl" not in self.properties:
            raise ValueError(f"properties need 'type' ({known}) or 'catalog-impl'")
        if kind is not None and kind not in CATALOG_TYPES:
            raise ValueError(
                f"properties.type {kind!r} is unknown{did_you_mean(kind, CATALOG_TYPES)} Known types: {known}"
            )
        return self


class SparkSettings(_Model):
    """How Spark is started. The master comes from the Airflow connection; the command line uses ``conf``.

    ``history_url`` is the address of Spark's history server, for links to applications.
    """

    connection: str = "spark_default"
    packages: list[str] = [ICEBERG_RUNTIME]
    conf: dict[str, str] = Field(default_factory=dict)
    py_files: str | None = None
    archives: str | None = None
    history_url: str | None = Field(default=None, pattern=r"^https?://")

    @field_validator("conf")
    @classmethod
    def _hold_no_secret(cls, conf: dict[str, str]) -> dict[str, str]:
        for key, value in conf.items():
            if _SECRET_KEY.search(key) and not value.startswith("${env:"):
                raise ValueError(f"{key} is a secret: expected ${{env:NAME}}, the environment variable that holds it")
        return conf


class Threshold(_Model):
    """The levels of one signal: at or above ``warning``, at or above ``critical``."""

    FORM = "{warning: NUMBER, critical: NUMBER}"

    warning: Number
    critical: Number

    @model_validator(mode="after")
    def _warns_first(self) -> Threshold:
        if not self.warning <= self.critical:
            raise ValueError(f"warning {self.warning:g} is above critical {self.critical:g}")
        return self


class Query(_Model):
    """A query of the workload: its WHERE clause as written in Spark SQL, and how much it counts."""

    FORM = "{name: NAME, where: PREDICATE, weight: NUMBER}"

    name: str
    where: str = Field(min_length=1)
    weight: Number = Field(default=1.0, gt=0, allow_inf_nan=False)


class TableRule(_Model):
    """Settings of the tables whose ``catalog.namespace.table`` matches a pattern; the first match wins.

    ``every`` is how often the scheduled Dag measures them, at most as often as it runs; without it, in each run.
    Statistics are recorded of the columns of partitions, sort orders and queries, and of ``record_columns``.
    """

    match: str
    exclude: bool = False
    tolerate_failure: bool = False
    every: Duration | None = None
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    list_length: Integer = Field(default=5, ge=1, le=100)
    queries: list[Query] = Field(default_factory=list)
    record_columns: list[str] = Field(default_factory=list)

    @field_validator("thresholds", mode="before")
    @classmethod
    def _thresholds_are_of_signals(cls, thresholds: Any) -> Any:
        given = map(str, thresholds) if isinstance(thresholds, dict) else ()
        if unknown := sorted(set(given) - DEFAULTS.keys()):
            known = ", ".join(sorted(DEFAULTS))
            raise ValueError(
                f"unknown signal {unknown[0]!r}{did_you_mean(unknown[0], DEFAULTS)} Known signals: {known}"
            )
        return thresholds

    @field_validator("queries")
    @classmethod
    def _queries_can_be_told_apart_and_parsed(cls, queries: list[Query]) -> list[Query]:
        names = [query.name for query in queries]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{len(repeated)} names stand for several queries: {', '.join(map(repr, repeated))}")
        return queries


class AutoApproval(_Model):
    """Changes that need no person's approval: of these tables, by these actions, and no larger than this.

    ``tables`` are patterns like a rule's ``match``; the numbers are those of the table before the change.
    """

    tables: list[str] = Field(min_length=1)
    actions: list[Literal["rewrite_manifests", "set_properties", "trim_statistics"]] = ["rewrite_manifests"]
    most_manifests: Integer = Field(ge=1)
    most_metadata_bytes: Integer = Field(ge=1)


class MaintenanceSettings(_Model):
    """How maintenance is approved, retried and serialised."""

    approval: Literal["required", "off"] = "required"
    approval_timeout: Duration = timedelta(days=2)
    auto_approve: AutoApproval | None = None
    max_attempts: Integer = Field(default=5, ge=1, le=20)
    pool: str = "planning_health_maintenance"

    @field_validator("approval", mode="before")
    @classmethod
    def _yaml_off(cls, value: Any) -> Any:
        return "off" if value is False else value  # YAML 1.1 reads a bare `off` as false


class AssignmentSettings(_Model):
    """The workers that the assignment simulation assumes."""

    workers: Integer = Field(default=4, ge=1, le=MOST_WORKERS)
    partitions_per_task: Integer = Field(default=2, ge=1, le=MOST_WORKERS)
    tasks: Annotated[Integer, Field(ge=1, le=MOST_TASKS)] | None = None
    strategy: Literal["default", "greedy"] = "default"

    @model_validator(mode="after")
    def _ranking_fits_into_memory(self) -> AssignmentSettings:
        tasks = self.workers if self.tasks is None else self.tasks
        if tasks * self.workers > MOST_RANKED:
            raise ValueError(f"tasks {tasks} x workers {self.workers}: expected at most {MOST_RANKED:,} together")
        return self


class PlanTasksSettings(_Model):
    """The planning server that the plan-tasks simulation assumes."""

    batch_size: Integer = Field(default=100, ge=0, le=2**31 - 1)
    replicas: Integer = Field(default=3, ge=1, le=MOST_WORKERS)


class WorkloadSettings(_Model):
    """What was observed of the tables' queries: files or folders, as fsspec URLs or paths.

    ``event_logs`` are Spark's, plain or compressed; ``scan_reports`` are Iceberg's, JSON documents one a line.
    """

    event_logs: list[str] = Field(default_factory=list)
    scan_reports: list[str] = Field(default_factory=list)


class HistorySettings(_Model):
    """The Iceberg table that keeps every run's values."""

    catalog: str
    table: str = "planning_health.history"

    @field_validator("table")
    @classmethod
    def _has_a_namespace(cls, table: str) -> str:
        try:
            TableName.parse(f"catalog.{table}")
        except InputError:
            raise ValueError("expected namespace.table (back quotes around parts with dots)") from None
        return table

    @property
    def table_name(self) -> TableName:
        """The history table's full name."""
        return TableName.parse(f"{self.catalog}.{self.table}")


class RetentionSettings(_Model):
    """How long runs and history are kept."""

    runs_days: Integer = Field(default=90, ge=1, le=MOST_DAYS)
    history_days: Integer = Field(default=730, ge=1, le=MOST_DAYS)


class NotificationRule(_Model):
    """Whom to tell of what, through one of Airflow's notifiers.

    ``arguments`` are the notifier's own; credentials stay in the Airflow connection that one of them names. The text
    goes where the notifier takes it (``text``, ``body``, ``message``, ``html_content``, ``subject``, ``title``), unless
    an argument says otherwise by ``{{ planning_health.text }}``.
    """

    notifier: str = Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")
    arguments: dict[str, Any] = Field(default_factory=dict)
    on: list[Literal["critical", "failed", "report"]] = Field(default=["critical", "failed", "report"], min_length=1)
    only_changes: bool = True

    @model_validator(mode="before")
    @classmethod
    def _yaml_on(cls, value: Any) -> Any:
        if isinstance(value, dict) and True in value:  # YAML 1.1 reads a bare `on` as true
            return {"on" if key is True else key: item for key, item in value.items()}
        return value

    @field_validator("arguments")
    @classmethod
    def _hold_no_secret(cls, arguments: dict[str, Any]) -> dict[str, Any]:
        secret = [key for key in arguments if _SECRET_ARGUMENT.search(key) and not key.endswith("conn_id")]
        if secret:
            raise ValueError(f"{secret[0]} is a secret: expected an Airflow connection that holds it (…_conn_id)")
        return arguments


class OperationsSettings(_Model):
    """When the weekly Dag runs, and how long runs and tasks may take before somebody is told, or they are ended.

    ``deadline`` counts from when a run is queued; it is told to those who are told of failures.
    """

    schedule: str | None = Field(default="@weekly", pattern=_CRON)
    deadline: Duration | None = timedelta(hours=8)
    run_timeout: Duration = timedelta(hours=12)
    spark_timeout: Duration = timedelta(hours=6)
    retries: Integer = Field(default=1, ge=0, le=10)
    retry_delay: Duration = timedelta(minutes=1)


class SettingsDocument(_Model):
    """The whole document."""

    version: Literal[1] = 1
    home: str = ".planning-health"
    catalogs: dict[str, CatalogDefinition] = Field(min_length=1)
    spark: SparkSettings = SparkSettings()
    tables: list[TableRule] = [TableRule(match="*")]
    maintenance: MaintenanceSettings = MaintenanceSettings()
    assignment: AssignmentSettings = AssignmentSettings()
    plan_tasks: PlanTasksSettings = PlanTasksSettings()
    workload: WorkloadSettings = WorkloadSettings()
    history: HistorySettings | None = None
    retention: RetentionSettings = RetentionSettings()
    notifications: list[NotificationRule] = Field(default_factory=list)
    operations: OperationsSettings = OperationsSettings()

    @field_validator("home")
    @classmethod
    def _home_is_one_place(cls, home: str) -> str:
        if not home.strip():
            raise ValueError("expected a folder or URL")
        if "::" in home:
            raise ValueError("expected one folder or URL, not several chained by '::'")
        return home

    @field_validator("catalogs")
    @classmethod
    def _catalog_names_are_keys(cls, catalogs: dict[str, CatalogDefinition]) -> dict[str, CatalogDefinition]:
        for name in catalogs:
            if not _CATALOG_NAME.fullmatch(name):  # it is part of the keys of Spark's configuration
                raise ValueError(f"catalog name {name!r}: expected letters, digits, '_' and '-'")
        return catalogs

    @model_validator(mode="after")
    def _history_catalog_is_defined(self) -> SettingsDocument:
        if self.history and self.history.catalog not in self.catalogs:
            raise ValueError(f"history.catalog {self.history.catalog!r} is not one of {sorted(self.catalogs)}")
        return self

    def rule_for(self, table: TableName) -> TableRule | None:
        """The first rule whose pattern matches the table, or ``None``: then the table is left alone."""
        return next((rule for rule in self.tables if fnmatchcase(table.dotted, rule.match)), None)

    def includes(self, table: TableName) -> bool:
        """Whether the table is measured: a rule matches, does not exclude it, and it is not the history itself."""
        return self.left_out(table) is None

    def tolerates_failure(self, table: TableName) -> bool:
        """Whether the table's rule lets it fail without failing the run."""
        rule = self.rule_for(table)
        return rule is not None and rule.tolerate_failure

    def left_out(self, table: TableName) -> str | None:
        """Why the table is not measured; ``None`` when it is."""
        if self.history is not None and table == self.history.table_name:
            return "the history"
        rule = self.rule_for(table)
        if rule is None:
            return "no rule matches"
        return "excluded" if rule.exclude else None
