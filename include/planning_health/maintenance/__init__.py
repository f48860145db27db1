"""Maintenance: proposals with predicted effects, guarded actions, and their exact verification."""
