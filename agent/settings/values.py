"""Parsers: the text of one variable -> its value, or a ValueError that says what is allowed."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KEY_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_KEY_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m)?", re.ASCII)
_ADDRESS = re.compile(r"(\[(?P<six>[^]]+)\]|(?P<four>[^][:]+)):(?P<port>\d{1,5})", re.ASCII)
_SCALE = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
_LARGEST_UID = 2**32 - 2  # Linux: 2**32 - 1 means "no uid"


def one_of(*allowed: str) -> Callable[[str], str]:
    """A parser that takes these words only."""

    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError("one of " + ", ".join(allowed))
        return text

    return parse


def pattern(regex: str, longest: int, allowed: str) -> Callable[[str], str]:
    """A parser that takes what `regex` matches whole, at most `longest` characters."""
    compiled = re.compile(regex)

    def parse(text: str) -> str:
        if len(text) > longest or not compiled.fullmatch(text):
            raise ValueError(allowed)
        return text

    return parse


# kube-apiserver: a Service's name is an RFC 1035 label, a namespace's an RFC 1123 label, a Pod's an RFC 1123
# subdomain; a port name in a Service may have 63 characters (in a container: 15).
service = pattern(
    r"[a-z]([-a-z0-9]*[a-z0-9])?", 63, "a Service name: at most 63 of a-z, 0-9 and -, beginning with a letter"
)
namespace = pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", 63, "a namespace: at most 63 of a-z, 0-9 and -")
pod = pattern(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    253,
    "a Pod name: at most 253 of a-z, 0-9, - and .",
)
container = pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", 63, "a container name: at most 63 of a-z, 0-9 and -")
port_name = pattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", 63, "a port name: at most 63 of a-z, 0-9 and -")


def boolean(text: str) -> bool:
    """`true` or `false`, in any case."""
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _number(text: str, low: int, high: int, allowed: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and low <= int(text) <= high):
        raise ValueError(allowed)
    return int(text)


def port(text: str) -> int:
    """A TCP port that can be written into a Service."""
    return _number(text, 1, 65535, "a port number from 1 to 65535")


def uid(text: str) -> int:
    """A numeric user id."""
    return _number(text, 0, _LARGEST_UID, "a numeric user id")


def seconds(low: float, high: float) -> Callable[[str], float]:
    """A parser of times such as `2s`, `500ms`, `1m` or `2` (seconds), from `low` to `high` seconds."""

    def parse(text: str) -> float:
        match = _DURATION.fullmatch(text)
        value = float(match[1]) * _SCALE[match[2]] if match else -1.0
        if not low <= value <= high:
            raise ValueError(f"a time from {low:g}s to {high:g}s, such as 2s or 500ms")
        return value

    return parse


def _good_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return _KEY_NAME.fullmatch(name) is not None and (not slash or _KEY_PREFIX.fullmatch(prefix) is not None)


def pairs(text: str, *, labels: bool) -> dict[str, str]:
    r"""`k=v,k=v` as a dict; a comma inside a value is written `\,`. Values are held to a label's when `labels`.

    Raises:
        ValueError: says what is allowed.
    """
    result: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in re.split(r"(?<!\\),", text))):
        key, equals, value = part.replace("\\,", ",").partition("=")
        good = bool(equals) and _good_key(key)
        if labels:
            good = good and len(value) <= 63 and _LABEL_VALUE.fullmatch(value) is not None
        if not good or key in result:
            kind = "labels" if labels else "annotations"
            raise ValueError(f"{kind} k=v, separated by commas, each key once (not {part!r})")
        result[key] = value
    return result


def label_pairs(text: str) -> dict[str, str]:
    """Labels, `k=v,k=v`."""
    return pairs(text, labels=True)


def annotation_pairs(text: str) -> dict[str, str]:
    """Annotations, `k=v,k=v`."""
    return pairs(text, labels=False)


def path(text: str) -> Path:
    """An absolute path, which need not exist."""
    if not text.startswith("/") or "\0" in text:
        raise ValueError("an absolute path")
    return Path(text)


def split_address(text: str) -> tuple[str, int]:
    """`IP:port` or `[IPv6]:port` as a pair; port 0 lets the kernel choose.

    Raises:
        ValueError: says what is allowed.
    """
    match = _ADDRESS.fullmatch(text)
    allowed = "auto, off, IP:port or [IPv6]:port"
    if match is None:
        raise ValueError(allowed)
    try:
        host = ipaddress.IPv6Address(match["six"]) if match["six"] else ipaddress.IPv4Address(match["four"])
    except ValueError:
        raise ValueError(allowed) from None
    return str(host), _number(match["port"], 0, 65535, allowed)


def address(text: str) -> str:
    """`auto`, `off` or an address and a port."""
    if text not in ("auto", "off"):
        split_address(text)
    return text
