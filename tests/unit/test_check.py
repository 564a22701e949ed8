"""`check` against the stand-in API: what is right, what is wrong, and what is lost by each missing right."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agent.commands import main
from agent.commands.check import findings
from agent.commands.findings import Finding, Level
from agent.commands.local_checks import local_findings
from agent.settings import PREFIX, load
from agent.tell import logs
from agent.tell.control import Control
from sandbox.objects import Rule, create_namespace, create_pod, create_service
from sandbox.standin.standin import StandIn
from tests.unit.telling import ENV, running, turns

LABELS = {"spark-app-selector": "spark-aaa", "spark-role": "driver"}
ROLE = (
    Rule(["services"], ["get", "create", "patch", "delete"]),
    Rule(["endpointslices"], ["list"], "discovery.k8s.io"),
    Rule(["pods"], ["get"]),
    Rule(["events"], ["create"]),
)


@dataclass(frozen=True)
class Place:
    """A stand-in with our Pod in it, and the environment of an agent there."""

    api: StandIn
    env: dict[str, str]

    def grant(self, *rules: Rule) -> None:
        """From now on the agent's token has these rights alone."""
        token = self.api.grant("team", f"account-{len(rules)}", [rule.body() for rule in rules])
        Path(self.env[PREFIX + "TOKEN_FILE"]).write_text(token)

    async def findings(self, **changes: str) -> list[Finding]:
        async with asyncio.timeout(30):
            settings = load({**self.env, **{PREFIX + name: value for name, value in changes.items()}})
            return [finding async for finding in findings(settings)]


@asynccontextmanager
async def place(folder: Path, *, trusted: bool = True) -> AsyncIterator[Place]:
    async with StandIn.start(tls=True, trusted=trusted) as api:
        env = {**ENV}
        if trusted:
            await create_namespace(api.admin, "team")
            pod = await create_pod(api.admin, "team", "etl-driver", labels=LABELS)
            env["POD_UID"] = str(pod["metadata"]["uid"])
        (folder / "token").write_text(api.token_file.read_text())
        where = urlsplit(api.url)
        yield Place(
            api,
            {
                **env,
                "KUBERNETES_SERVICE_HOST": str(where.hostname),
                "KUBERNETES_SERVICE_PORT": str(where.port),
                PREFIX + "CA_FILE": str(api.ca_file),
                PREFIX + "TOKEN_FILE": str(folder / "token"),
                PREFIX + "DIR": str(folder),
                PREFIX + "HOOK": "off",
            },
        )


def said(found: Sequence[Finding], subject: str) -> Finding:
    """The one finding about `subject`."""
    (one,) = [finding for finding in found if finding.subject == subject]
    return one


def problems(found: Sequence[Finding]) -> list[str]:
    return [finding.subject for finding in found if finding.level is Level.PROBLEM]


async def test_with_the_documented_role_all_is_well_and_nothing_is_written(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        here.grant(*ROLE)
        before = len(here.api.requests)
        found = await here.findings()
        assert problems(found) == []
        rights = {finding.subject: finding.found for finding in found if finding.subject.startswith("right")}
        assert set(rights.values()) == {"granted"}
        assert len(rights) == 7
        assert said(found, "Service etl-ui").found == "does not exist, would be created (dry run accepted)"
        writes = [
            one for one in here.api.requests[before:] if one.method != "GET" and "reviews" not in one.path
        ]
        assert [(one.method, one.query.get("dryRun")) for one in writes] == [("POST", "All")]


async def test_the_exit_code_and_the_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with place(tmp_path) as here:
        here.grant(*ROLE)
        assert await asyncio.to_thread(main, ["check"], here.env) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "ok       settings: Service etl-ui, mode native, log hook off"
        here.grant(*ROLE[1:])
        assert await asyncio.to_thread(main, ["check"], here.env) == 1
        lines = capsys.readouterr().out.splitlines()
        assert (
            "problem  right to get services: missing: no Service can be kept; "
            "add the verb to the Role of the Pod's ServiceAccount"
        ) in lines


@pytest.mark.parametrize(
    ("without", "subject", "level", "lost"),
    [
        ("get services", "right to get services", Level.PROBLEM, "no Service can be kept"),
        ("patch services", "right to patch services", Level.PROBLEM, "no Service can be kept"),
        ("create services", "right to create services", Level.NOTE, "a missing Service is not created"),
        ("delete services", "right to delete services", Level.NOTE, "stays until its Pod is deleted"),
        ("list endpointslices", "right to list endpointslices", Level.NOTE, "100 ms after the write"),
        ("get pods", "right to get pods", Level.NOTE, "no Service is created"),
        ("create events", "right to create events", Level.NOTE, "no Events on the Pod"),
    ],
)
async def test_each_missing_right_says_what_is_lost(
    without: str, subject: str, level: Level, lost: str, tmp_path: Path
) -> None:
    verb, resource = without.split()
    rules = [
        Rule(
            rule.resources,
            [one for one in rule.verbs if [one, *rule.resources] != [verb, resource]],
            rule.api_group,
        )
        for rule in ROLE
    ]
    async with place(tmp_path) as here:
        here.grant(*(rule for rule in rules if rule.verbs))
        finding = said(await here.findings(), subject)
        assert finding.level is level
        assert lost in finding.found


async def test_list_is_needed_for_labels_alone(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        here.grant(*ROLE)
        found = await here.findings(SERVICE_LABELS="app=etl")
        assert "right to list services" in problems(found)
        assert "right to create services" not in {finding.subject for finding in found}


async def test_an_existing_service_that_selects_us_would_be_patched(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await create_service(here.api.admin, "team", "etl-ui", selector=LABELS)
        found = await here.findings()
        assert (
            said(found, "Service etl-ui").found == "exists, would be patched to lead here (dry run accepted)"
        )


async def test_anothers_service_is_a_problem(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await create_service(here.api.admin, "team", "etl-ui", selector={"app": "other"})
        finding = said(await here.findings(), "Service etl-ui")
        assert finding.level is Level.PROBLEM
        assert finding.remedy


@pytest.mark.parametrize(("uid", "level"), [("the uid of before", Level.OK), ("", Level.PROBLEM)])
async def test_a_service_that_another_pod_holds(uid: str, level: Level, tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        other = await create_pod(here.api.admin, "team", "other-driver", ip="10.1.0.2")
        mark = f"other-driver/{uid or other['metadata']['uid']}"
        metadata = {"annotations": {"spark-ui-agent/holder": mark, "spark-ui-agent/application": "spark-aaa"}}
        await create_service(here.api.admin, "team", "etl-ui", selector=LABELS, metadata=metadata)
        assert said(await here.findings(), "Service etl-ui").level is level


async def test_a_service_that_goes_with_a_pod_that_is_over_would_be_made_anew(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        other = await create_pod(here.api.admin, "team", "other-driver", ip="10.1.0.2", phase="Failed")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "other-driver", "uid": other["metadata"]["uid"]}
        metadata = {"ownerReferences": [owner]}
        await create_service(here.api.admin, "team", "etl-ui", selector=LABELS, metadata=metadata)
        finding = said(await here.findings(), "Service etl-ui")
        assert (finding.level, finding.found) == (
            Level.OK,
            "a Pod that is over owns it: would be deleted and made anew",
        )


async def test_labels_that_match_several_services(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        for name in ("one", "two"):
            await create_service(
                here.api.admin, "team", name, selector=LABELS, metadata={"labels": {"app": "etl"}}
            )
        finding = said(await here.findings(SERVICE_LABELS="app=etl"), "Service etl-ui")
        assert finding.level is Level.PROBLEM
        assert "match several Services: one, two" in finding.found


async def test_an_operators_service_comes_first(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        patch = {"metadata": {"labels": {"sparkoperator.k8s.io/app-name": "etl"}}}
        pod = "/api/v1/namespaces/team/pods/etl-driver"
        (await here.api.admin.request("PATCH", pod, patch)).ok()
        await create_service(here.api.admin, "team", "etl-ui-svc", selector=LABELS)
        assert "would be patched" in said(await here.findings(), "Service etl-ui-svc").found


async def test_a_certificate_of_another_ca_is_said_as_such(tmp_path: Path) -> None:
    async with place(tmp_path, trusted=False) as here:
        found = await here.findings()
        finding = said(found, "API server")
        assert finding.level is Level.PROBLEM
        assert "BadCertificate" in finding.found
        assert "SPARK_UI_AGENT_CA_FILE" in finding.remedy
        assert found[-1] is finding


async def test_nobody_listens_there(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        settings = load({**here.env, "KUBERNETES_SERVICE_PORT": "1"})
        assert problems([finding async for finding in findings(settings)]) == ["API server"]


async def test_a_token_that_is_not_known(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        (tmp_path / "token").write_text("nobody")
        finding = said(await here.findings(), "API server")
        assert (finding.level, finding.remedy) == (Level.PROBLEM, "give a valid ServiceAccount token")


# --- what needs no API server ---------------------------------------------------------------------------


def local(tmp_path: Path, changes: Mapping[str, str]) -> dict[str, Finding]:
    """The last finding for each subject."""
    (tmp_path / "token").write_text("x")
    (tmp_path / "ca").write_text("x")
    env = {
        **ENV,
        PREFIX + "DIR": str(tmp_path),
        PREFIX + "TOKEN_FILE": str(tmp_path / "token"),
        PREFIX + "CA_FILE": str(tmp_path / "ca"),
        **changes,
    }
    return {finding.subject: finding for finding in local_findings(load(env))}


@pytest.mark.parametrize(
    ("changes", "subject", "level", "found"),
    [
        ({}, "token", Level.OK, "is readable"),
        ({}, "folder", Level.OK, "can be written"),
        ({}, "agent", Level.NOTE, "none is running"),
        ({}, "log hook", Level.NOTE, "SPARK_UI_AGENT_DRIVER_CONF_DIR is unset"),
        ({PREFIX + "HOOK": "off"}, "log hook", Level.OK, "off by"),
        ({PREFIX + "HOOK": "on"}, "log hook", Level.NOTE, "its files do not stand"),
        ({PREFIX + "SCHEM": "x"}, "settings", Level.NOTE, "did you mean SPARK_UI_AGENT_SCHEME?"),
        ({PREFIX + "TOKEN_FILE": "/none"}, "token", Level.PROBLEM, "No such file"),
        ({PREFIX + "CA_FILE": "/dev/null"}, "CA", Level.PROBLEM, "is empty"),
        ({PREFIX + "DIR": "/none"}, "folder", Level.PROBLEM, "does not exist"),
        ({"HOST_IP": ""}, "downward API", Level.OK, "application spark-aaa"),
        ({"POD_IP": "192.0.2.1", "SPARK_APPLICATION_ID": ""}, "downward API", Level.PROBLEM, "is empty"),
        ({PREFIX + "HOOK": "on", "SPARK_APPLICATION_ID": ""}, "downward API", Level.NOTE, "is empty"),
    ],
)
def test_local(changes: dict[str, str], subject: str, level: Level, found: str, tmp_path: Path) -> None:
    finding = local(tmp_path, changes)[subject]
    assert finding.level is level
    assert found in finding.found
    assert finding.remedy or level is not Level.PROBLEM


def test_the_hooks_files_stand_after_install_hook(tmp_path: Path) -> None:
    changes = {PREFIX + "HOOK": "on"}
    assert main(["install-hook"], {**ENV, **changes, PREFIX + "DIR": str(tmp_path)}) == 0
    finding = local(tmp_path, changes)["log hook"]
    assert (finding.level, finding.found) == (Level.OK, f"log4j2.xml and hook.xml stand in {tmp_path}")


def test_a_conf_folder_that_is_not_there(tmp_path: Path) -> None:
    env = {**ENV, PREFIX + "DIR": str(tmp_path), PREFIX + "DRIVER_CONF_DIR": "/none"}
    hook = [finding for finding in local_findings(load(env)) if finding.subject == "log hook"]
    assert [finding.level for finding in hook] == [Level.PROBLEM, Level.NOTE]


async def test_a_running_agent_and_one_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.times.CONTROL_REQUEST", 0.5)

    async def status(request: Mapping[str, object]) -> Mapping[str, object]:
        return {"state": "published", "hook": "connected"}

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    log = logs.configure("info", "json", io.StringIO())
    async with running(Control(tmp_path / "agent.sock", {"status": status}, log).run()):
        await turns(5)
        finding = (await asyncio.to_thread(local, tmp_path, {}))["agent"]
        assert (finding.level, finding.found) == (Level.OK, "running, state published, log hook connected")
    async with await asyncio.start_unix_server(silent, str(tmp_path / "agent.sock")):
        finding = (await asyncio.to_thread(local, tmp_path, {}))["agent"]
        assert (finding.level, finding.found) == (Level.PROBLEM, "gave no answer within 0.5 s")


def test_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    finding = local(tmp_path, {PREFIX + "DIR": str(folder)})["folder"]
    assert finding.level is Level.PROBLEM
    assert "a Unix socket's has at most 107" in finding.found
