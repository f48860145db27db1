"""Spark entry points: thin, one for each Spark application of the Dags; they call the stages and nothing else."""
