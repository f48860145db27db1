"""The "Planning health" pages: all tables with their trend, each table, and the reports, from the files of the runs.

Nothing here knows Airflow: who may look, and how a run is started, is given to the application by the plugin.
"""
