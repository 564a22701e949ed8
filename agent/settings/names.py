"""The names of the Service where the user gives none."""

from __future__ import annotations

import hashlib

LONGEST = 63  # of a Service's name: kube-apiserver, RFC 1035 label
_HASH = 8
_SUFFIX = "-ui"
_OPERATORS_SUFFIX = "-ui-svc"


def service_name(pod: str) -> str:
    """The default Service name for a Pod: `-driver` cut, `-ui` added, made a valid name of at most 63.

    Pod names may have dots and a leading digit and up to 253 characters, Service names none of that
    (kube-apiserver: RFC 1035 label); over-long ones keep a hash, so two long names never meet.
    """
    name = pod.removesuffix("-driver").replace(".", "-") + _SUFFIX
    if not name[:1].isalpha():
        name = f"ui-{name}"
    if len(name) > LONGEST:
        digest = hashlib.sha256(pod.encode()).hexdigest()[:_HASH]
        name = f"{name[: LONGEST - len(_SUFFIX) - 1 - _HASH]}-{digest}{_SUFFIX}"
    return name


def operators_service_name(app: str) -> str:
    """The UI Service that kubeflow/spark-operator makes for the SparkApplication `app`.

    An over-long name is cut and gets a hash, so that names do not meet (`generateName` in the operator's
    pkg/util/sparkapplication.go at 05763c1).
    """
    name = app + _OPERATORS_SUFFIX
    if len(name) > LONGEST:
        digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:_HASH]
        name = f"{app[: LONGEST - len(_OPERATORS_SUFFIX) - 1 - _HASH]}-{digest}{_OPERATORS_SUFFIX}"
    return name
