"""Advice from the observed workload: which column statistics to keep, and how manifests should be laid out."""
