"""The command line: what it prints, its exit codes, and what it imports."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import threading
import tomllib
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agent import __version__
from agent.commands import main
from agent.commands.hook import NeverFails
from agent.model import Status
from agent.settings import PREFIX
from agent.tell import logs
from agent.tell.control import Control
from agent.tell.report import document
from sandbox.die_with_parent import die_with_parent
from tests.unit.telling import BLOCKED, ENV, PARKED, PUBLISHED, WAITING, running, turns

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("aiohttp", "structlog", "tenacity", "kubernetes_asyncio", "h11", "asyncio", "ssl")


@dataclass
class Agent:
    """What a running agent would answer: one status after the other, the last one for ever."""

    statuses: list[Status] = field(default_factory=lambda: [PUBLISHED])
    gone: bool = True
    asked: list[Mapping[str, object]] = field(default_factory=list)

    async def status(self, request: Mapping[str, object]) -> Mapping[str, object]:
        self.asked.append(request)
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return document(status, "2026-01-01T00:00:00Z")

    async def drain(self, request: Mapping[str, object]) -> Mapping[str, object]:
        self.asked.append(request)
        return {"gone": self.gone}

    async def discover(self, request: Mapping[str, object]) -> Mapping[str, object]:
        return {
            "degraded": True,
            "listeners": [
                {"port": 40123, "address": "::", "uid": 185, "backlog": None, "taken": "ours", "why": "a, b"},
                {
                    "port": 80,
                    "address": "10.1.0.1",
                    "uid": 0,
                    "backlog": 128,
                    "taken": "passed-over",
                    "why": "c",
                },
            ],
            "publish": {"port": 40123, "scheme": "http", "application": "spark-aaa", "proof": "rest"},
        }


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {**ENV, PREFIX + "DIR": str(tmp_path)}


@asynccontextmanager
async def agent(env: Mapping[str, str], *statuses: Status, gone: bool = True) -> AsyncIterator[Agent]:
    """An agent's socket in the folder of `env`."""
    found = Agent(list(statuses) or [PUBLISHED], gone)
    handlers = {"status": found.status, "drain": found.drain, "discover": found.discover}
    socket = Path(env[PREFIX + "DIR"]) / "agent.sock"
    control = Control(socket, handlers, logs.configure("info", "json", io.StringIO()))
    async with running(control.run()), asyncio.timeout(20):
        await turns(5)
        yield found


@asynccontextmanager
async def stranger(env: Mapping[str, str], answer: bytes | None) -> AsyncIterator[None]:
    """Something else at the agent's socket, which gives this answer to anything, or none at all."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is None:
            await reader.read()
        else:
            await reader.readline()
            writer.write(answer)
        writer.close()

    async with await asyncio.start_unix_server(serve, env[PREFIX + "DIR"] + "/agent.sock"):
        yield


async def command(env: Mapping[str, str], *argv: str) -> int:
    """Runs one command beside the loop."""
    return await asyncio.to_thread(main, argv, env)


# --- status ---------------------------------------------------------------------------------------------


async def test_status_for_people(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    async with agent(env, BLOCKED):
        assert await command(env, "status") == 0
    assert capsys.readouterr().out.splitlines() == [
        "state        blocked",
        "reason       rbac",
        "found        403 Forbidden: patch services",
        "remedy       add the verb patch",
        "application  spark-aaa",
        "hook         waiting",
        "service      etl-ui",
        "since        2026-01-01T00:00:00Z",
    ]


async def test_status_as_json(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    async with agent(env):
        assert await command(env, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out) == document(PUBLISHED, "2026-01-01T00:00:00Z")


@pytest.mark.parametrize("argv", [("status",), ("drain",), ("status", "--json")])
def test_without_an_agent(
    argv: Sequence[str], env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv, env) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"no running agent at {env[PREFIX + 'DIR']}/agent.sock" in err
    assert "run this inside the agent's container" in err


async def test_a_silent_agent_is_a_time_out(
    env: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.times.CONTROL_REQUEST", 0.05)
    monkeypatch.setattr("agent.times.CONTROL_SPARE", 0.0)
    monkeypatch.setattr("agent.times.DISCOVER", 0.05)
    async with stranger(env, None):
        assert await command(env, "status") == 3
        assert await command(env, "drain", "--timeout", "0.1") == 3
        assert await command(env, "discover") == 3
        assert await command(env, "wait", "--timeout", "0.2") == 3
    assert capsys.readouterr().err.count("gave no answer within") == 4


# --- wait -----------------------------------------------------------------------------------------------


async def test_wait_until_published(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    async with agent(env, WAITING, BLOCKED, PUBLISHED) as found:
        assert await command(env, "wait", "--timeout", "20") == 0
        assert len(found.asked) == 3
    assert capsys.readouterr().out == "published; http port 40123\n"


async def test_wait_until_parked(env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    async with agent(env, PUBLISHED, PARKED):
        assert await command(env, "wait", "--for", "parked", "--timeout", "20s") == 0
    assert capsys.readouterr().out.startswith("parked; the UI of this driver has closed")


async def test_wait_for_an_agent_that_is_not_there_yet(env: dict[str, str]) -> None:
    waiting = asyncio.create_task(command(env, "wait", "--timeout", "20"))
    await turns(5)
    async with agent(env):
        assert await waiting == 0


async def test_wait_gives_up_where_it_can_not_be_reached_any_more(
    env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    between = replace(PARKED, state=PARKED.state.DRAINING)
    async with agent(env, WAITING, between, replace(between, reason="draining")):
        assert await command(env, "wait", "--timeout", "20") == 1
    assert "will not be published any more: draining" in capsys.readouterr().err


async def test_wait_times_out_with_what_was_seen_last(
    env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with agent(env, BLOCKED):
        assert await command(env, "wait", "--timeout", "500ms") == 3
    assert capsys.readouterr().err == (
        "spark-ui-agent: not published within 0.5 s: "
        "blocked(rbac); 403 Forbidden: patch services; add the verb patch\n"
    )
    assert await command(env, "wait", "--timeout", "0.1") == 3
    assert "no running agent at" in capsys.readouterr().err


async def test_wait_is_refused_by_what_is_no_agent(
    env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with stranger(env, b"hello\n"):
        assert await command(env, "wait", "--timeout", "20") == 1
        assert await command(env, "discover") == 1
    assert capsys.readouterr().err.count("is not spark-ui-agent") == 2


# --- drain ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gone", "code"), [(True, 0), (False, 3)])
async def test_drain(gone: bool, code: int, env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    async with agent(env, gone=gone) as found:
        assert await command(env, "drain", "--timeout", "7") == code
        assert found.asked == [{"command": "drain", "timeout": 7.0}]
    out, err = capsys.readouterr()
    assert ("parked: no endpoint" in out) == gone
    assert ("the agent keeps trying" in err) == (not gone)


# --- discover -------------------------------------------------------------------------------------------


async def test_discover_asks_the_running_agent(
    env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with agent(env):
        assert await command(env, "discover") == 0
        assert await command(env, "discover", "--json") == 0
    *lines, as_json = capsys.readouterr().out.splitlines()
    assert lines == [
        "port   address   uid  backlog  taken        why",
        "40123  ::        185  -        ours         a, b",
        "80     10.1.0.1  0    128      passed-over  c",
        "note: read from /proc, without listen backlogs: only Spark's usual ports are looked at",
        "",
        "to publish: http port 40123 of application spark-aaa, proven by rest",
    ]
    assert json.loads(as_json)["publish"]["port"] == 40123


# --- usage and settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [["status"], ["wait"], ["drain"], ["discover"], ["check"]])
def test_bad_settings_are_all_named(
    argv: list[str], env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv, {**env, PREFIX + "SCHEME": "gopher", PREFIX + "EXPOSE": "0"}) == 2
    assert capsys.readouterr().err.splitlines() == [
        "spark-ui-agent: SPARK_UI_AGENT_EXPOSE is '0'; allowed: a port number from 1 to 65535",
        "spark-ui-agent: SPARK_UI_AGENT_SCHEME is 'gopher'; allowed: one of auto, http, https",
    ]


def test_sidecar_taken_for_the_driver(capsys: pytest.CaptureFixture[str]) -> None:
    spark = ["driver", "--properties-file", "/opt/spark/conf/spark.properties", "--class", "org.example.Main"]
    assert main(spark, ENV) == 2
    assert "set spark.kubernetes.driver.podTemplateContainerName" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["publish"], "invalid choice: 'publish'"),
        (["wait", "--for", "running"], "choose from"),
        (["wait", "--timeout", "soon"], "'soon'; allowed: a time from 0.1s to 3600s"),
        (["drain", "--timeout", "0"], "'0'; allowed: a time from 0.1s to 3600s"),
        (["status", "--yaml"], "unrecognized arguments: --yaml"),
    ],
)
def test_wrong_usage(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(argv, ENV)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_version_is_the_projects(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"], ENV)
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"spark-ui-agent {__version__}\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("version", __version__) == __version__


# a shell starts what runs in the background deaf to SIGINT, and the tests with it
HEARING = """
import signal, sys
from agent.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main())
"""


async def test_an_interrupted_wait_ends_without_a_traceback(env: dict[str, str]) -> None:
    asked = asyncio.Event()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        writer.close()

    async with (
        asyncio.timeout(20),
        await asyncio.start_unix_server(keep, env[PREFIX + "DIR"] + "/agent.sock"),
    ):
        process = await asyncio.create_subprocess_exec(
            *die_with_parent([sys.executable, "-c", HEARING, "wait"]), cwd=ROOT, env=env, stderr=PIPE
        )
        await asked.wait()
        process.send_signal(signal.SIGINT)
        _, said = await process.communicate()
    assert (process.returncode, said) == (130, b"")


# --- install-hook ---------------------------------------------------------------------------------------


def test_install_hook_writes_the_files(
    env: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["install-hook"], {**env, PREFIX + "HOOK": "on"}) == 0
    assert (tmp_path / "hook.xml").is_file()
    assert "hook.xml, port" in capsys.readouterr().err


def test_install_hook_with_bad_settings_leaves_the_driver_its_logging(
    env: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["install-hook"], {**env, PREFIX + "HOOK": "on", PREFIX + "EXPOSE": "0"}) == 0
    assert len(list(tmp_path.glob("log4j2.*"))) == 1
    assert not (tmp_path / "hook.xml").exists()
    assert "SPARK_UI_AGENT_EXPOSE is '0'" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["/proc/none", "/dev/null"])
def test_install_hook_is_0_where_nothing_can_be_written(
    place: str, env: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install-hook"], {**env, PREFIX + "DIR": place}) == 0
    assert place in capsys.readouterr().err


def test_what_hangs_in_install_hook_is_ended_and_any_error_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.times.INSTALL", 0.05)
    with NeverFails():
        threading.Event().wait(20)
    with NeverFails():
        raise KeyError("x")
    assert capsys.readouterr().err.splitlines() == [
        "spark-ui-agent: no log hook: TooLongError: not done within 0.05 s; "
        "the UI is found by its listening socket instead",
        "spark-ui-agent: no log hook: KeyError: 'x'; the UI is found by its listening socket instead",
    ]


async def test_install_hook_of_a_restarted_agent_returns_when_the_service_is_seen_to(
    env: dict[str, str], tmp_path: Path
) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert json.loads(await reader.readline())["command"] == "settled"
        asked.set()
        await go.wait()
        writer.write(b'{"ok": true, "result": {"settled": true}}\n')
        writer.close()

    main(["install-hook"], env)
    (tmp_path / "proof.json").write_text("[]")
    argv = die_with_parent([sys.executable, "-m", "agent", "install-hook"])
    async with asyncio.timeout(20):
        process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, env=env, stderr=PIPE)
        # the agent's socket is there only some time after its start
        async with await asyncio.start_unix_server(serve, tmp_path / "agent.sock"):
            await asked.wait()
            assert process.returncode is None
            go.set()
            _, said = await process.communicate()
        assert await process.wait() == 0
    assert b"seen to" not in said


@pytest.mark.parametrize("former", [True, False])
def test_install_hook_waits_for_nobody_for_ever(
    former: bool,
    env: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("agent.times.SETTLED", 0.1)
    if former:
        (tmp_path / "proof.json").write_text("[]")
    assert main(["install-hook"], env) == 0
    assert ("has not seen to the Service within 0.1 s" in capsys.readouterr().err) is former


# --- imports --------------------------------------------------------------------------------------------


def python(code: str, env: Mapping[str, str]) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("argv", [["status"], ["drain"], ["wait", "--timeout", "0.1"], ["install-hook"]])
def test_commands_of_hooks_and_probes_import_the_standard_library_alone(
    argv: list[str], env: dict[str, str]
) -> None:
    code = f"""
import sys
before = set(sys.modules)
from agent.commands import main
main({argv!r}, {dict(env)!r})
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}))
"""
    loaded = set(python(code, {}).split())
    assert loaded.isdisjoint(HEAVY)
    assert loaded - sys.stdlib_module_names == {"agent"}


def test_the_module_is_the_program() -> None:
    assert python("import runpy, sys; sys.argv[1:] = ['--version']\n"
                  "try: runpy.run_module('agent', run_name='__main__')\n"
                  "except SystemExit as end: print(end.code)", {}) == f"spark-ui-agent {__version__}\n0\n"  # fmt: skip
