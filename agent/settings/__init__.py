"""The environment, read once into one frozen `Settings`; every error at once."""

from __future__ import annotations

from .load import control_socket, load
from .names import operators_service_name, service_name
from .shape import IN_CLUSTER, PREFIX, Identity, Settings, SettingsError
from .table import TABLE, Setting
from .values import pairs, split_address

__all__ = [
    "IN_CLUSTER",
    "PREFIX",
    "TABLE",
    "Identity",
    "Setting",
    "Settings",
    "SettingsError",
    "control_socket",
    "load",
    "operators_service_name",
    "pairs",
    "service_name",
    "split_address",
]
