"""Trim: rewrites manifests so that entries carry no more statistics than the table's metrics configuration says."""
