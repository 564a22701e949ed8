"""The client's side of TLS between byte strings; the caller moves them."""

from __future__ import annotations

import ssl


class TlsFailedError(Exception):
    """What came is no TLS that we speak."""


class TlsEndedError(Exception):
    """The other end speaks TLS and ended it with an alert, as one does that wants a client certificate."""


class TlsClient:
    """One TLS connection. No server name is sent."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out)

    def feed(self, data: bytes) -> None:
        """Takes what came; no bytes mean that the other end has closed."""
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()

    def to_send(self) -> bytes:
        """What is to be sent now."""
        return self._out.read()

    def shake(self) -> bool:
        """Goes on with the handshake; False while more has to come.

        Raises:
            TlsFailedError, TlsEndedError.
        """
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as error:
            raise _meaning(error) from error
        return True

    def write(self, data: bytes) -> None:
        """Encrypts; what comes of it is in `to_send`."""
        self._tls.write(data)

    def read(self, size: int) -> bytes | None:
        """At most `size` bytes, none at the end, None while more has to come.

        Raises:
            TlsFailedError, TlsEndedError: with TLS 1.3 a refused client certificate is told here.
        """
        try:
            return self._tls.read(size)
        except ssl.SSLWantReadError:
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as error:
            raise _meaning(error) from error

    def end(self) -> None:
        """Says goodbye; what comes of it is in `to_send`."""
        try:
            self._tls.unwrap()
        except (ssl.SSLError, ValueError):
            return  # goodbye is in the buffer, or there is nobody to say it to


def _meaning(error: ssl.SSLError) -> TlsFailedError | TlsEndedError:
    reason = error.reason or str(error)
    return TlsEndedError(reason) if "_ALERT_" in reason else TlsFailedError(reason)
