"""Property tests judge results, not the speed of a busy machine: no deadline per example."""

from hypothesis import settings

settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
