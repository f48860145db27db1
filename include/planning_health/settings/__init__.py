"""One typed, validated configuration: a YAML file and the environment."""

from planning_health.settings.load import load_settings, settings_to_name
from planning_health.settings.models import CatalogDefinition, Query, SettingsDocument, TableRule, Threshold

__all__ = [
    "CatalogDefinition",
    "Query",
    "SettingsDocument",
    "TableRule",
    "Threshold",
    "load_settings",
    "settings_to_name",
]
