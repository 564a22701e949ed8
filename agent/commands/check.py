"""`check`: one line for each thing that has to be right, with the remedy where it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from ..act.kube import Kube
from ..settings import Settings, load
from . import DONE, FAILED
from .api_checks import api_findings
from .findings import Finding, Level
from .local_checks import local_findings


def check(env: Mapping[str, str]) -> int:
    """Prints all findings as they come; 1 when something needed is wrong. Raises SettingsError."""
    return asyncio.run(_check(load(env)))


async def _check(settings: Settings) -> int:
    code = DONE
    async for finding in findings(settings):
        print(finding, flush=True)
        if finding.level is Level.PROBLEM:
            code = FAILED
    return code


async def findings(settings: Settings) -> AsyncIterator[Finding]:
    """All of them, in the order in which a user would mend them."""
    for finding in local_findings(settings):
        yield finding
    async with Kube.open(settings) as kube:
        async for finding in api_findings(kube, settings):
            yield finding
