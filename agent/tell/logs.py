"""The agent's log: one line for each event, on stderr, so that a command's result on stdout stays clean.

JSON or, on a terminal, plain text. What other libraries log (kubernetes_asyncio, aiohttp, asyncio) comes through
the same renderer, from WARNING up. A line never holds a secret that was given to `hide`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections import OrderedDict
from typing import TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

Log = FilteringBoundLogger

REPORT = "please report this; the driver is not affected"  # the remedy of a defect

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_HIDDEN = "[hidden]"
_MOST_SECRETS = (
    32  # a ServiceAccount token is replaced about every 50 minutes; the old ones end within the hour
)
_SHORTEST_SECRET = 8  # replacing a shorter text would eat words
_LONGEST_VALUE = 1000  # of one value: a 422 of kube-apiserver can quote a whole object

_secrets: OrderedDict[str, None] = OrderedDict()


def hide(secret: str) -> None:
    """From now on `secret` is replaced wherever it would appear in a line. Texts under 8 characters are ignored."""
    secret = secret.strip()
    if len(secret) < _SHORTEST_SECRET:
        return
    _secrets[secret] = None
    _secrets.move_to_end(secret)
    while len(_secrets) > _MOST_SECRETS:
        _secrets.popitem(last=False)


def clean(text: str) -> str:
    """`text` on one line, without control characters, secrets and excess length."""
    for secret in _secrets:
        for form in (secret, json.dumps(secret)[1:-1]):
            text = text.replace(form, _HIDDEN)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def _cleaned(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Every value as a clean text, unless JSON has a form of its own for it."""
    plain = (bool, int, float, type(None))
    return {key: value if type(value) in plain else clean(str(value)) for key, value in event.items()}


def _error_on_one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """`exc_info` as `error` (type and message) and `at` (innermost frame): a stack trace would take many lines."""
    info = event.pop("exc_info", None)
    error = sys.exc_info()[1] if info is True else info[1] if isinstance(info, tuple) else info
    if not isinstance(error, BaseException):
        return event
    event["error"] = f"{type(error).__name__}: {error}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        event["at"] = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return event


class _Line:
    """The logger below structlog: one line for each event, whatever its level.

    A closed or full stderr must not end the agent, so a line that can't be written is lost.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, text: str) -> None:
        """The one call that all levels end in."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text + "\n")
            self._stream.flush()

    debug = info = warning = error = critical = msg


class _Foreign(logging.Handler):
    """Hands the records of the standard library's logging to ours."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Never raises: a line with bad arguments is given unformatted."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            message = str(record.msg)
        self._log.log(record.levelno, message, logger=record.name, exc_info=record.exc_info)


def configure(level: str, form: str, stream: TextIO | None = None) -> Log:
    """Sets up the process's log and returns it.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        form: `json`, `console`, or `auto` (console where the stream is a terminal).
        stream: stderr unless a test wants another.
    """
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    renderer: Processor
    if form == "console" or (form == "auto" and terminal):
        renderer = structlog.dev.ConsoleRenderer(colors=terminal, sort_keys=False)
    else:
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    line = _Line(out)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _error_on_one_line,
            _cleaned,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=lambda *_: line,
        cache_logger_on_first_use=False,
    )
    log: Log = structlog.get_logger()
    root = logging.getLogger()
    root.handlers[:] = [_Foreign(log)]
    root.setLevel(logging.WARNING)
    return log
