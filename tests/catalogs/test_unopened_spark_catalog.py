"""A catalog that Spark cannot open is one line that names the catalog and the cause, not a complaint of a namespace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from planning_health.catalogs.spark_catalog import _where_to_look, spark_conf
from planning_health.errors import InputError
from planning_health.identifiers import TableName
from planning_health.metadata.record_spark import load_java_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from planning_health.settings import SettingsDocument

pytestmark = pytest.mark.spark

ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
PACKAGES = r"; is the package that has it among spark\.packages\?"


@pytest.mark.parametrize(
    ("name", "implementation", "properties", "message"),
    [
        (
            "no_driver",
            ICEBERG,
            {"type": "jdbc", "uri": "jdbc:nosuchdb://h/d", "warehouse": "warehouse"},
            f"driver.*{PACKAGES}",
        ),
        ("no_class", "org.example.NoCatalog", {}, rf"org\.example\.NoCatalog.*{PACKAGES}"),
        ("no_impl", ICEBERG, {"catalog-impl": "org.example.NoImpl"}, rf"org\.example\.NoImpl.*{PACKAGES}"),
        ("bad_type", ICEBERG, {"type": "nonsense"}, "nonsense"),
        ("bad_uri", ICEBERG, {"type": "rest", "uri": "http://127.0.0.1:1"}, "127.0.0.1.*refused|Connect"),
    ],
)
def test_a_catalog_that_cannot_be_opened_is_named_with_its_cause(
    spark: SparkSession, name: str, implementation: str, properties: dict[str, str], message: str
) -> None:
    prefix = f"spark.sql.catalog.{name}"
    for key, value in {
        prefix: implementation,
        **{f"{prefix}.{key}": value for key, value in properties.items()},
    }.items():
        spark.conf.set(key, value)
    with pytest.raises(InputError, match=message) as caught:
        load_java_table(spark, TableName.parse(f"{name}.sales.orders"))
    text = str(caught.value)
    assert text.startswith(f"catalog '{name}' cannot be opened by Spark: ")
    assert "\n" not in text
    assert "NAMESPACE" not in text


def test_a_catalog_that_nobody_configured_is_said_so(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="catalog 'nowhere' is not configured in this Spark session"):
        load_java_table(spark, TableName.parse("nowhere.sales.orders"))


def test_where_to_look_at_the_application_is_logged(spark: SparkSession, settings: SettingsDocument) -> None:
    history = settings.spark.model_copy(update={"history_url": "http://history:18080/"})
    told = _where_to_look(settings.model_copy(update={"spark": history}), spark)
    application = spark.sparkContext.applicationId
    assert f"application {application} on local" in told
    assert told.endswith(f"history http://history:18080/history/{application}")


def test_a_thread_of_its_own_opens_a_catalog_that_nobody_has_opened(
    spark: SparkSession, settings: SettingsDocument
) -> None:
    lake, prefix = "spark.sql.catalog.lake", "spark.sql.catalog.opened_by_a_thread"
    for key, value in spark_conf(settings).items():
        if key.startswith(lake):
            spark.conf.set(key.replace(lake, prefix), value)
    missing = TableName.parse("opened_by_a_thread.sales.orders")
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(InputError, match="does not exist in catalog 'opened_by_a_thread'"),
    ):
        pool.submit(load_java_table, spark, missing).result()
