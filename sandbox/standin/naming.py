"""What names, labels and ports may look like, with the words in which kube-apiserver 1.36 refuses others."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbox.standin.status import Cause

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character"
)
_NAME_PART_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def label(field: str, value: str) -> list[Cause]:
    """Return what keeps ``value`` from being an RFC 1123 label (63 characters, no dots)."""
    if len(value) > 63:
        return [Cause.invalid(field, value, "must be no more than 63 characters")]
    if "." in value and _SUBDOMAIN.fullmatch(value):
        return [Cause.invalid(field, value, "must not contain dots")]
    return [] if _LABEL.fullmatch(value) else [Cause.invalid(field, value, _LABEL_WORDS)]


def subdomain(field: str, value: str) -> list[Cause]:
    """Return what keeps ``value`` from being an RFC 1123 subdomain (253 characters)."""
    if len(value) > 253:
        return [Cause.invalid(field, value, "must be no more than 253 characters")]
    return [] if _SUBDOMAIN.fullmatch(value) else [Cause.invalid(field, value, _SUBDOMAIN_WORDS)]


def qualified(field: str, value: str) -> list[Cause]:
    """Return what keeps ``value`` from being a key of a label or annotation, or an appProtocol."""
    prefix, slash, name = value.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        return [Cause.invalid(field, value, f"prefix part {_SUBDOMAIN_WORDS}")]
    if len(name) > 63:
        return [Cause.invalid(field, value, "name part must be no more than 63 bytes")]
    return [] if _NAME_PART.fullmatch(name) else [Cause.invalid(field, value, _NAME_PART_WORDS)]


def labels(field: str, values: Mapping[str, str]) -> list[Cause]:
    """Return what is wrong with labels or a selector: keys as `qualified`, values of 63 bytes."""
    causes: list[Cause] = []
    for key, value in values.items():
        causes += qualified(field, key)
        if len(value.encode()) > 63:
            causes.append(Cause.invalid(field, value, "must be no more than 63 bytes"))
        elif not _LABEL_VALUE.fullmatch(value):
            causes.append(Cause.invalid(field, value, _VALUE_WORDS))
    return causes


def port_number(field: str, value: int) -> list[Cause]:
    """Return what keeps ``value`` from being a port."""
    if 1 <= value <= 65535:
        return []
    return [Cause.invalid(field, value, "must be between 1 and 65535, inclusive")]


def port_name(field: str, value: str) -> list[Cause]:
    """Return what keeps ``value`` from being a container port's name (15 characters, a letter in it)."""
    rules = (
        (len(value) <= 15, "must be no more than 15 characters"),
        (
            re.fullmatch(r"[-a-z0-9]*", value),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (re.search(r"[a-z]", value), "must contain at least one letter (a-z)"),
        ("--" not in value, "must not contain consecutive hyphens"),
        (not value.startswith("-") and not value.endswith("-"), "must not begin or end with a hyphen"),
    )
    return [Cause.invalid(field, value, words) for holds, words in rules if not holds]
