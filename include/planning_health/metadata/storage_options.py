"""The file system of a path, from Iceberg's file IO properties: what executors need to read and write manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import fsspec


def filesystem_of(path: str, properties: Mapping[str, str]) -> tuple[Any, str]:
    """The fsspec file system of a path that Iceberg opens with these properties, and the path in it."""
    found: tuple[Any, str] = fsspec.url_to_fs(path, **storage_options(path, properties))
    return found


def storage_options(path: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """The options with which fsspec opens a path that Iceberg opens with these properties.

    S3 settings are translated from Iceberg's keys; other stores use the process's own default credentials.
    """
    if not path.startswith(("s3://", "s3a://", "s3n://")):
        return {}
    client = {
        "endpoint_url": properties.get("s3.endpoint"),
        "region_name": properties.get("s3.region") or properties.get("client.region"),
    }
    options: dict[str, Any] = {
        "key": properties.get("s3.access-key-id"),
        "secret": properties.get("s3.secret-access-key"),
        "token": properties.get("s3.session-token"),
        "client_kwargs": {key: value for key, value in client.items() if value} or None,
    }
    if properties.get("s3.path-style-access") == "true":
        options["config_kwargs"] = {"s3": {"addressing_style": "path"}}
    return {key: value for key, value in options.items() if value}
