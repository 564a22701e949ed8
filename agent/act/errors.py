"""What an API call that failed means: an answer -> our own error, an error -> what a user is told."""

from __future__ import annotations

from ..decide.tree import Json, text
from ..model import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
    ThrottledError,
    Trouble,
    UnauthorizedError,
    UnreachableError,
)
from ..settings import Settings

# Reasons of an ApiError that no server gives.
SEVERAL = "Several"  # the labels do not say which Service is meant
OVERRULED = "Overruled"  # something between us and the store changes what is written


def api_error(status: int, retry_after: str, answer: Json | None) -> ApiError:
    """The answer as our own type, by status and reason."""
    reason = text(answer, "reason") or "Unknown"
    # The text of a 422 can quote the whole object, and with it what a user keeps in annotations.
    message = text(answer, "message")[:300]
    wait = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None
    kind: type[ApiError]
    match status:
        case 401:
            kind = UnauthorizedError
        case 403:
            kind = ForbiddenError
        case 404:
            kind = NotFoundError
        case 409 if reason == "AlreadyExists":
            kind = AlreadyExistsError
        case 409:
            kind = ConflictError
        case 429:
            kind = ThrottledError
        case 503 if wait is not None:
            kind = ThrottledError
        case _ if status >= 500:
            kind = ServerError
        case _ if 300 <= status < 400:
            return UnreachableError(
                0, "Redirect", f"answered {status}: something else stands for the API server"
            )
        case _:
            kind = InvalidError
    return kind(status, reason, message, wait)


def trouble(error: ApiError, settings: Settings) -> Trouble:
    """What an ApiError means to a user."""
    match error:
        case ForbiddenError():
            return Trouble(
                "rbac", str(error), "give the Pod's ServiceAccount the verbs of deploy/, see `check`"
            )
        case UnauthorizedError():
            return Trouble(
                "token",
                str(error),
                "mount a valid ServiceAccount token, or name it in SPARK_UI_AGENT_TOKEN_FILE",
            )
        case UnreachableError():
            return Trouble("api", f"{settings.api_url}: {error}", "none needed if it passes: tried again")
        case ConflictError():
            return Trouble(
                "conflict",
                str(error),
                "find who else writes to the Service: kubectl get --show-managed-fields",
            )
        case ApiError() if error.reason == OVERRULED:
            return Trouble(
                "conflict",
                error.message,
                "find the admission webhook or controller that rewrites the Service",
            )
        case ApiError() if error.reason == SEVERAL:
            return Trouble("service", error.message, "let the labels match one Service")
        case _:
            return Trouble("api", str(error), "see the message; tried again")
