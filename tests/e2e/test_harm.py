"""Whatever breaks, the job's own result is the same as without the agent."""

from __future__ import annotations

import pytest

from tests.e2e.harm import Beside, Harmed, outcome
from tests.e2e.lives import Alone

# what the agent says of what is wrong with it
COMPLAINTS = {"settings": "SPARK_UI_AGENT_EXPOSE", "rights": "403", "server": "Cannot connect"}
# how long the Pod may go on for its sake, in seconds; the time for an API server that is away is bounded, and small
# where nothing was ever published
LINGERS = {"settings": 3, "rights": 3, "server": 6}


def test_a_job_that_breaks_breaks_as_without_the_agent(broken_job: Beside) -> None:
    assert broken_job.alone.phase == "Failed"
    assert outcome(broken_job.harmed.ending) == outcome(broken_job.alone)


def test_each_job_broke_as_it_should(broken_job: Beside, request: pytest.FixtureRequest) -> None:
    told = broken_job.alone.exit_code, broken_job.alone.reason
    expected = {"oom": (137, "OOMKilled"), "image": (2, "Error"), "early": (3, "Error")}
    assert told == expected[request.node.callspec.params["broken_job"]]


def test_an_agent_that_cannot_work_changes_nothing(broken_agent: Harmed, alone: Alone) -> None:
    assert outcome(broken_agent.ending) == outcome(alone.ending)
    assert broken_agent.agent_status == 0, "it ended by itself, within the Pod's grace period"


def test_the_agent_says_what_is_wrong(broken_agent: Harmed, request: pytest.FixtureRequest) -> None:
    complaint = COMPLAINTS[request.node.callspec.params["broken_agent"]]
    assert any(complaint in line for line in broken_agent.log), broken_agent.log


def test_the_pod_ends_soon_all_the_same(broken_agent: Harmed, request: pytest.FixtureRequest) -> None:
    assert 0 <= broken_agent.lingered <= LINGERS[request.node.callspec.params["broken_agent"]]
