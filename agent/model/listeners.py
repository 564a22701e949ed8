"""What listens in the driver's network, what it answers when it is asked, and what it is taken for then."""

from __future__ import annotations

import enum
import ipaddress
from dataclasses import dataclass


class Scheme(enum.StrEnum):
    """What a client has to speak to the published port."""

    HTTP = "http"
    HTTPS = "https"


@dataclass(frozen=True, slots=True)
class Listener:
    """One TCP socket in state LISTEN, as the kernel reports it.

    `address` is the text form, IPv4-mapped IPv6 shown as IPv4 (Java binds dual-stack, so `::` is the rule).
    `inode` is the socket's own number: a new socket on the same port has another one.
    `backlog` is the listen backlog, or None where the source does not know it (/proc).
    `v6only`: an IPv6 socket that takes no IPv4 connections (IPV6_V6ONLY); False where the source does not know it.
    """

    port: int
    address: str
    uid: int
    inode: int
    backlog: int | None = None
    v6only: bool = False

    @property
    def loopback(self) -> bool:
        """True when only this network namespace can reach it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def wildcard(self) -> bool:
        """True when bound to every address."""
        return ipaddress.ip_address(self.address).is_unspecified


class Taken(enum.StrEnum):
    """What a listener is taken for, after an answer."""

    OURS = "ours"
    REDIRECTOR = "redirector"  # plain port that only points at the TLS one
    SPEAKS_TLS = "speaks-tls"  # answered plain HTTP with a TLS alert: ask again over TLS
    STARTING = "starting"  # Spark's "starting up" page, a 404 before the REST servlet, an empty list
    FOREIGN = "foreign"  # a Spark UI with another application
    MANY = "many"  # several applications: a History Server
    FILTERED = "filtered"  # 401 or 403 for everything
    SILENT = "silent"  # accepted or not, no answer in time: paused or busy
    NOT_SPARK = "not-spark"  # anything else
    CLOSED = "closed"  # refused: the listener went between scan and question


class Said(enum.StrEnum):
    """The kind of answer that a probe met."""

    HTTP = "http"  # a whole HTTP head, and a body as far as bounded
    TLS_ALERT = "tls-alert"  # plain HTTP was answered with a TLS record
    TLS_FAILED = "tls-failed"  # the handshake failed: no TLS there
    NOT_HTTP = "not-http"  # bytes that are no HTTP/1
    EOF = "eof"  # closed without a byte
    RESET = "reset"
    REFUSED = "refused"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of one candidate to one question. Header values are as sent, at most the bounded part."""

    said: Said
    status: int = 0
    content_type: str = ""
    location: str = ""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Question:
    """One candidate and the scheme to ask it in."""

    listener: Listener
    scheme: Scheme


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one answer says about one listener; `detail` is for people (`discover`, the log)."""

    taken: Taken
    detail: str
    application: str | None = None
    started: int = 0  # startTimeEpoch of the application's attempt in ms, 0 when not told
