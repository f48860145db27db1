"""Airflow for the tests: a home of its own, set before anything imports Airflow."""

from __future__ import annotations

import logging
import os
import tempfile

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="planning-health-airflow-"))
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] = "False"

# Airflow lets every library log; py4j would do so while the interpreter ends, to a stream that is closed by then.
logging.getLogger("py4j").setLevel(logging.WARNING)
