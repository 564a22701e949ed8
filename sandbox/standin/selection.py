"""Label and field selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sandbox.standin.resources import EVENTS, PODS, Object, Resource
from sandbox.standin.status import bad_request

_FIELDS: Mapping[str, tuple[str, ...]] = {
    PODS.plural: ("spec.nodeName", "status.phase", "status.podIP"),
    EVENTS.plural: (
        *(
            f"involvedObject.{name}"
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
        ),
        "reason",
        "type",
    ),
}
_SET = re.compile(r"(?P<key>\S+)\s+(?P<word>in|notin)\s+\((?P<values>[^)]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s!=]+)\s*(?P<sign>==|=|!=)\s*(?P<value>\S*)")

Requirement = Callable[[Mapping[str, str]], bool]


@dataclass(frozen=True)
class Selection:
    """What a list or a watch is narrowed to. ``name`` is that of ``metadata.name=NAME``, if it is asked for."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[tuple[str, bool, str], ...] = ()

    @classmethod
    def parse(cls, resource: Resource, query: Mapping[str, str]) -> Selection:
        """Read ``labelSelector`` and ``fieldSelector``; raise `StatusError` 400 for what is not understood."""
        return cls(
            _parse_labels(query.get("labelSelector", "")),
            _parse_fields(resource, query.get("fieldSelector", "")),
        )

    @property
    def name(self) -> str:
        """The one name that can match, empty when others can too: RBAC lists by name look at it."""
        return next((value for field, equal, value in self.fields if field == "metadata.name" and equal), "")

    def matches(self, value: Object) -> bool:
        """Return whether an object is among those selected."""
        labels = value["metadata"].get("labels", {})
        return all(holds(labels) for holds in self.labels) and all(
            (_field(value, field) == wanted) is equal for field, equal, wanted in self.fields
        )


def matches_labels(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Return whether every pair of a Service's selector is among ``labels``."""
    return all(labels.get(key) == value for key, value in selector.items())


def _field(value: Object, path: str) -> str:
    found: object = value
    for part in path.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return str(found)


def _parse_fields(resource: Resource, text: str) -> tuple[tuple[str, bool, str], ...]:
    allowed = ("metadata.name", "metadata.namespace", *_FIELDS.get(resource.plural, ()))
    found = []
    for term in filter(None, text.split(",")):
        match = _EQUAL.fullmatch(term.strip())
        if match is None:
            raise bad_request(f"invalid field selector: {term!r}; can't understand {term!r}")
        if match["key"] not in allowed:
            raise bad_request(f"field label not supported: {match['key']}")
        found.append((match["key"], match["sign"] != "!=", match["value"]))
    return tuple(found)


def _parse_labels(text: str) -> tuple[Requirement, ...]:
    terms = re.findall(r"(?:[^,(]|\([^)]*\))+", text)
    return tuple(_requirement(term.strip()) for term in terms if term.strip())


def _requirement(term: str) -> Requirement:
    if match := _SET.fullmatch(term):
        values = {value.strip() for value in match["values"].split(",")}
        return _is_in(match["key"], values, wanted=match["word"] == "in")
    if match := _EQUAL.fullmatch(term):
        return _is_in(match["key"], {match["value"]}, wanted=match["sign"] != "!=")
    if re.fullmatch(r"!?\S+", term):
        return _exists(term.removeprefix("!"), wanted=not term.startswith("!"))
    raise bad_request(f"unable to parse requirement: {term!r}, expected: in, notin, =, ==, !=, gt, lt")


def _is_in(key: str, values: set[str], *, wanted: bool) -> Requirement:
    return lambda labels: (labels.get(key) in values) is wanted


def _exists(key: str, *, wanted: bool) -> Requirement:
    return lambda labels: (key in labels) is wanted
