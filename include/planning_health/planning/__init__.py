"""The scan-planning simulation, under Iceberg's class names: expressions, projections, evaluators, scans."""
