"""Errors of the Kubernetes API, by what the caller can do about them."""

from __future__ import annotations


class ApiError(Exception):
    """An API call that did not succeed. `status` is 0 where no answer came.

    The message never holds a token nor a whole object (a 422 of kube-apiserver quotes the object).
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after  # seconds, from the header


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409 Conflict: what was read is stale; read again, decide again."""


class AlreadyExistsError(ApiError):
    """409 AlreadyExists on POST."""


class ForbiddenError(ApiError):
    """403: a verb is missing, a quota is full, or an admission plugin said no."""


class UnauthorizedError(ApiError):
    """401, also after the token was read again."""


class InvalidError(ApiError):
    """400, 415 or 422: sending the same again is of no use."""


class ThrottledError(ApiError):
    """429, or 503 with Retry-After."""


class ServerError(ApiError):
    """Any other 5xx."""


class UnreachableError(ApiError):
    """No whole answer: refused, reset, time-out, bad certificate. A write may or may not have happened."""
