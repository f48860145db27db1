"""Health of a table's planning metadata: signals, thresholds, findings, expectations and their history."""
