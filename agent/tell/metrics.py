"""The agent's own few metrics in the Prometheus text format 0.0.4, with names that OpenMetrics takes as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "spark_ui_agent_"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name after the prefix, `counter` or `gauge`, its help, the names of its labels."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


FAMILIES: tuple[Family, ...] = (
    Family("info", "gauge", "Always 1; the agent's version is its label.", ("version",)),
    Family("state", "gauge", "1 for the state that the agent is in, 0 for the others.", ("state",)),
    Family(
        "blocked",
        "gauge",
        "1 for the reason that the agent is blocked by; absent when it is not.",
        ("reason",),
    ),
    Family(
        "last_change_timestamp_seconds", "gauge", "When the state last changed, in seconds since the epoch."
    ),
    Family("publishes_total", "counter", "Times that the Service was made to lead to this driver's UI."),
    Family("parks_total", "counter", "Times that the Service was made to lead nowhere."),
    Family(
        "api_requests_total",
        "counter",
        "Requests to the Kubernetes API by method and by class of the answer's status (none: no answer).",
        ("verb", "code"),
    ),
    Family(
        "probes_total",
        "counter",
        "Questions to possible UIs, by what the answer was taken for.",
        ("verdict",),
    ),
    Family("hook_posts_total", "counter", "Posts of the log hook, by outcome.", ("outcome",)),
)


class Metrics:
    """Counters and gauges by family and labels; `text` renders them. Not for several threads."""

    def __init__(self, families: Iterable[Family] = FAMILIES) -> None:
        self._families = {family.name: family for family in families}
        self._values: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in self._families}
        for family in self._families.values():
            if family.kind == "counter" and not family.labels:
                self._values[family.name][()] = (
                    0.0  # a counter that is 0 is shown: rate() needs the first step
                )

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Adds to a counter.

        Raises:
            KeyError: no such family.
            ValueError: its labels are others, or it is no counter.
        """
        key = self._key(name, "counter", labels)
        values = self._values[name]
        values[key] = values.get(key, 0.0) + float(amount)

    def gauge(self, name: str, value: float, /, **labels: str) -> None:
        """Sets a gauge. Raises as `count` does."""
        self._values[name][self._key(name, "gauge", labels)] = float(value)

    def only(self, name: str, /, **labels: str) -> None:
        """Makes this the gauge's one series, with the value 1; without labels it has none. Raises as `count` does."""
        key = self._key(name, "gauge", labels) if labels else None
        self._values[name] = {} if key is None else {key: 1.0}

    def text(self) -> str:
        """All families that have a value, in the order of the table."""
        return "".join(f"{line}\n" for family in self._families.values() for line in self._lines(family))

    def _key(self, name: str, kind: str, labels: Mapping[str, str]) -> tuple[str, ...]:
        family = self._families[name]
        if family.kind != kind or set(labels) != set(family.labels):
            raise ValueError(
                f"{name} is a {family.kind} with labels {list(family.labels)}, not a {kind} with {sorted(labels)}"
            )
        return tuple(str(labels[label]) for label in family.labels)

    def _lines(self, family: Family) -> list[str]:
        values = self._values[family.name]
        if not values:
            return []
        name = PREFIX + family.name
        lines = [f"# HELP {name} {_escaped(family.help)}", f"# TYPE {name} {family.kind}"]
        for key, value in sorted(values.items()):
            pairs = ",".join(
                f'{label}="{_quoted(text)}"' for label, text in zip(family.labels, key, strict=True)
            )
            lines.append(f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}")
        return lines


def _escaped(text: str) -> str:
    """As the text format wants it in a help line."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    """As the text format wants it in a label's value."""
    return _escaped(text).replace('"', '\\"')


def _number(value: float) -> str:
    """Whole numbers without a fraction, others as Python's shortest exact form, which the format takes."""
    return str(int(value)) if value.is_integer() else repr(value)
