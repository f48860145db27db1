"""Links between Airflow's tasks and the "Planning health" page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from airflow.providers.standard.decorators.python import _PythonDecoratedOperator
from airflow.sdk import BaseOperatorLink
from airflow.sdk.bases.decorator import TaskDecorator, task_decorator_factory

from planning_health.pages.links import in_airflow, run_path
from planning_run import airflow_url

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

_DEFAULT_URL: Final = "http://localhost:8080"


def base_url() -> str:
    """The address of the Airflow UI (``[api] base_url``)."""
    return airflow_url() or _DEFAULT_URL


def url_prefix() -> str:
    """The path that Airflow is served under; empty at the top of its host."""
    return urlsplit(base_url()).path.rstrip("/")


def page_address(path: str) -> str:
    """The address of a page inside the Airflow UI."""
    return in_airflow(base_url(), path)


class TableLink(BaseOperatorLink):
    """From a task to the page of its table; of a task of the whole run, to the page of the run."""

    name = "Planning health"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the page."""
        return page_address(run_path(ti_key.dag_id, ti_key.run_id, ti_key.map_index))


class PlanningTask(_PythonDecoratedOperator):  # type: ignore[misc] # the provider is not typed
    """A Python task that leads to the page of its table, or of its run."""

    custom_operator_name = "@planning_task"
    operator_extra_links = (TableLink(),)


def planning_task(python_callable: Callable[..., Any] | None = None, **options: Any) -> TaskDecorator:
    """Airflow's ``@task`` for our Dags, with the link to the "Planning health" page."""
    return task_decorator_factory(python_callable, decorated_operator_class=PlanningTask, **options)
