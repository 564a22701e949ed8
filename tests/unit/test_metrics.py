"""The text exposition of the metrics."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tell.metrics import FAMILIES, PREFIX, Family, Metrics

SAMPLE = re.compile(
    r'^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?[0-9.e+-]+|inf|nan|-inf)$'
)


def test_counters_and_gauges() -> None:
    metrics = Metrics()
    metrics.count("probes_total", verdict="ours")
    metrics.count("probes_total", 2, verdict="foreign")
    metrics.count("probes_total", verdict="ours")
    metrics.gauge("info", 1, version="0.1.0")
    metrics.gauge("last_change_timestamp_seconds", 1764601200.25)
    assert metrics.text() == (
        "# HELP spark_ui_agent_info Always 1; the agent's version is its label.\n"
        "# TYPE spark_ui_agent_info gauge\n"
        'spark_ui_agent_info{version="0.1.0"} 1\n'
        "# HELP spark_ui_agent_last_change_timestamp_seconds "
        "When the state last changed, in seconds since the epoch.\n"
        "# TYPE spark_ui_agent_last_change_timestamp_seconds gauge\n"
        "spark_ui_agent_last_change_timestamp_seconds 1764601200.25\n"
        "# HELP spark_ui_agent_publishes_total Times that the Service was made to lead to this driver's UI.\n"
        "# TYPE spark_ui_agent_publishes_total counter\n"
        "spark_ui_agent_publishes_total 0\n"
        "# HELP spark_ui_agent_parks_total Times that the Service was made to lead nowhere.\n"
        "# TYPE spark_ui_agent_parks_total counter\n"
        "spark_ui_agent_parks_total 0\n"
        "# HELP spark_ui_agent_probes_total Questions to possible UIs, by what the answer was taken for.\n"
        "# TYPE spark_ui_agent_probes_total counter\n"
        'spark_ui_agent_probes_total{verdict="foreign"} 2\n'
        'spark_ui_agent_probes_total{verdict="ours"} 2\n'
    )


def test_only_leaves_one_series_or_none() -> None:
    metrics = Metrics()
    metrics.only("blocked", reason="rbac")
    metrics.only("blocked", reason="settings")
    assert [line for line in metrics.text().splitlines() if line.startswith(PREFIX + "blocked")] == [
        'spark_ui_agent_blocked{reason="settings"} 1'
    ]
    metrics.only("blocked")
    assert "blocked" not in metrics.text()


@given(st.text(), st.floats(allow_nan=False))
def test_any_label_and_value_is_one_well_formed_line(label: str, value: float) -> None:
    metrics = Metrics([Family("x", "gauge", 'a "help"\nwith \\', ("label",))])
    metrics.gauge("x", value, label=label)
    help_line, type_line, sample, rest = metrics.text().split("\n")
    assert help_line == r'# HELP spark_ui_agent_x a "help"\nwith \\'
    assert type_line == "# TYPE spark_ui_agent_x gauge"
    assert rest == ""
    match = SAMPLE.match(sample)
    assert match is not None
    written = re.sub(r'\\(["\\n])', lambda found: {"n": "\n"}.get(found[1], found[1]), match[2][7:-1])
    assert written == label
    assert float(match[3]) == value


@pytest.mark.parametrize(
    ("name", "labels"), [("probes_total", {}), ("probes_total", {"state": "x"}), ("state", {"state": "x"})]
)
def test_wrong_labels_or_kind(name: str, labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="not a counter with"):
        Metrics().count(name, **labels)


def test_unknown_family() -> None:
    with pytest.raises(KeyError, match="nothing"):
        Metrics().gauge("nothing", 1)


def test_names_keep_to_the_conventions() -> None:
    for family in FAMILIES:
        assert re.fullmatch("[a-z_]+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        assert family.kind in ("counter", "gauge")
        assert family.help.endswith(".")
