"""One function per step of the pipeline; the command line, the Dags, the Spark jobs and the tests call only these."""
