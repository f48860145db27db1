"""The demonstration lake."""
