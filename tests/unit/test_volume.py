"""The files shared with the driver: exactly one logging, then the hook; the same however often and by whomever."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent.act import hookkey, volume
from agent.act.volume import Installed, install
from agent.decide.hookpost import CONTEXT, HEADER, UTILS
from agent.decide.log4j import LOGGING_FILES, base
from agent.settings import Settings

from .senses import settings

WARN_XML = "<Configuration><Loggers><Root level='warn'/></Loggers></Configuration>"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "conf"
    path.mkdir()
    return path


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return tmp_path / "shared"


def wanted(shared: Path, conf: Path | None, **more: str) -> Settings:
    seen = {"driver_conf_dir": str(conf)} if conf is not None else {}
    return settings(dir=str(shared), **seen, **more)


def names(shared: Path) -> list[str]:
    return sorted(path.name for path in shared.iterdir())


def logging(shared: Path) -> list[str]:
    return [name for name in names(shared) if name in LOGGING_FILES]


def levels(shared: Path) -> dict[str | None, str | None]:
    tree = ElementTree.fromstring((shared / "hook.xml").read_text())
    return {one.get("name"): one.get("level") for one in tree.iter("Logger")}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_no_file_of_the_users_gives_the_default_and_the_hook(shared: Path, conf: Path) -> None:
    installed = install(wanted(shared, conf))
    assert installed.hook
    assert names(shared) == ["hook.json", "hook.xml", "installed", "log4j2.xml"]
    assert (shared / "log4j2.xml").read_text() == base(structured=False)
    assert levels(shared) == {UTILS: None, CONTEXT: None}
    hook = (shared / "hook.xml").read_text()
    assert f"http://127.0.0.1:{installed.port}/" in hook
    assert f'name="{HEADER}" value="{installed.secret}"' in hook


def test_the_driver_of_another_uid_can_read_all_but_the_key(shared: Path, conf: Path) -> None:
    before = os.umask(0o077)
    try:
        install(wanted(shared, conf))
    finally:
        os.umask(before)
    assert mode(shared / "log4j2.xml") == mode(shared / "hook.xml") == 0o644
    assert mode(shared / "hook.json") == 0o600


@pytest.mark.parametrize(
    ("name", "copied", "content"),
    [
        ("log4j2.properties", "log4j2.properties", "rootLogger.level = warn"),
        ("log4j2.yml", "log4j2.yaml", "Configuration:\n  Loggers:\n    Root:\n      level: warn\n"),
        ("log4j2-test.jsn", "log4j2.json", '{"configuration": {"loggers": {"root": {"level": "warn"}}}}'),
        ("log4j2.xml", "log4j2.xml", WARN_XML),
    ],
)
def test_the_users_file_is_copied_as_it_is(
    shared: Path, conf: Path, name: str, copied: str, content: str
) -> None:
    # As kubelet mounts a ConfigMap: a link to a link.
    (conf / "..data").mkdir()
    (conf / "..data" / name).write_text(content)
    (conf / name).symlink_to(f"..data/{name}")
    assert install(wanted(shared, conf)).hook
    assert logging(shared) == [copied]
    assert (shared / copied).read_text() == content
    assert levels(shared) == {UTILS: "info", CONTEXT: "info"}


def test_only_one_of_several_files_counts(shared: Path, conf: Path) -> None:
    (conf / "log4j2.properties").write_text("rootLogger.level = info")
    (conf / "log4j2.xml").write_text(WARN_XML)
    install(wanted(shared, conf))
    assert logging(shared) == ["log4j2.properties"]
    assert levels(shared) == {UTILS: None, CONTEXT: None}


def test_another_choice_takes_the_former_away(shared: Path, conf: Path) -> None:
    (conf / "log4j2.yaml").write_text("Configuration:\n")
    install(wanted(shared, conf))
    (conf / "log4j2.yaml").unlink()
    install(wanted(shared, conf))
    assert logging(shared) == ["log4j2.xml"]


@pytest.mark.parametrize("hook", ["auto", "off"])
def test_a_file_with_a_status_of_its_own_leaves_no_gap_after_it(shared: Path, conf: Path, hook: str) -> None:
    (conf / "log4j2.properties").write_text("status = warn\nrootLogger.level = info")
    install(wanted(shared, conf, hook=hook))
    assert logging(shared) == ["log4j2.json", "log4j2.properties", "log4j2.xml", "log4j2.yaml"]
    assert len(ElementTree.fromstring((shared / "log4j2.xml").read_text())) == 0
    assert len(ElementTree.fromstring((shared / "hook.xml").read_text())) == (2 if hook == "auto" else 0)
    (conf / "log4j2.properties").write_text("rootLogger.level = info")
    install(wanted(shared, conf, hook=hook))
    assert logging(shared) == ["log4j2.properties"]
    assert (shared / "hook.xml").exists() == (hook == "auto")


def test_files_that_the_users_file_takes_in_come_along(shared: Path, conf: Path) -> None:
    (conf / "log4j2.xml").write_text('<C><xi:include href="parts.xml"/><xi:include href="hook.json"/></C>')
    (conf / "parts.xml").write_text("<Appenders/>")
    (conf / "hook.json").write_text("not the key")
    assert install(wanted(shared, conf)).hook
    assert (shared / "parts.xml").read_text() == "<Appenders/>"
    assert "secret" in json.loads((shared / "hook.json").read_text())


@pytest.mark.parametrize(
    ("files", "structured"),
    [
        ({"spark.properties": "a=b\nspark.log.structuredLogging.enabled=true\n"}, True),
        ({"spark.properties": "spark.log.structuredLogging.enabled = false"}, False),
        ({"spark-defaults.conf": "spark.log.structuredLogging.enabled   true"}, True),
        (
            {"spark.properties": "", "spark-defaults.conf": "spark.log.structuredLogging.enabled true"},
            False,
        ),
        ({}, False),
    ],
)
def test_a_driver_that_logs_json_goes_on_doing_so(
    shared: Path, conf: Path, files: dict[str, str], structured: bool
) -> None:
    for name, content in files.items():
        (conf / name).write_text(content)
    install(wanted(shared, conf))
    assert (shared / "log4j2.xml").read_text() == base(structured=structured)


@pytest.mark.parametrize("hook", ["off", "auto"])
def test_without_a_hook_the_logging_still_stands(shared: Path, conf: Path, hook: str) -> None:
    install(wanted(shared, conf))
    assert (shared / "hook.xml").exists()
    (conf / "log4j2.xml").write_text(WARN_XML)
    installed = install(wanted(shared, conf if hook == "off" else None, hook=hook))
    assert not installed.hook
    assert installed.secret == ""
    assert not (shared / "hook.xml").exists()
    assert logging(shared) == ["log4j2.xml"]
    assert ((shared / "log4j2.xml").read_text() == WARN_XML) == (hook == "off")


def test_hook_on_needs_no_conf_directory(shared: Path) -> None:
    assert install(wanted(shared, None, hook="on")).hook
    assert (shared / "log4j2.xml").read_text() == base(structured=False)


def test_an_unread_conf_directory_means_no_hook_unless_asked_for(shared: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    installed = install(wanted(shared, absent))
    assert not installed.hook
    assert any(str(absent) in line for line in installed.said)
    assert install(wanted(shared, absent, hook="on")).hook


def test_a_fifo_in_place_of_the_users_file_holds_nobody_up(shared: Path, conf: Path) -> None:
    os.mkfifo(conf / "log4j2.properties")
    assert not install(wanted(shared, conf)).hook
    assert logging(shared) == ["log4j2.xml"]


def test_too_big_to_understand_is_copied_and_too_big_to_copy_is_not(shared: Path, conf: Path) -> None:
    big = b"#" * (volume.MOST_READ + 1)
    (conf / "log4j2.properties").write_bytes(big)
    assert not install(wanted(shared, conf)).hook
    assert (shared / "log4j2.properties").read_bytes() == big
    (conf / "log4j2.properties").write_bytes(b"#" * (volume.MOST_COPIED + 1))
    assert not install(wanted(shared, conf)).hook
    assert logging(shared) == ["log4j2.xml"]


def test_a_second_time_changes_nothing(shared: Path, conf: Path) -> None:
    first = install(wanted(shared, conf))
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in shared.iterdir()}
    assert install(wanted(shared, conf)) == first
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in shared.iterdir()} == before


def test_many_at_once_agree(shared: Path, conf: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        results: list[Installed] = list(pool.map(lambda _: install(wanted(shared, conf)), range(64)))
    assert len(set(results)) == 1
    assert names(shared) == ["hook.json", "hook.xml", "installed", "log4j2.xml"]
    assert results[0].secret in (shared / "hook.xml").read_text()


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"[]", b'{"port": 0, "secret": "' + b"0" * 32 + b'"}', b'{"port": 20000, "secret": "x"}'],
)
def test_a_broken_key_is_made_anew(shared: Path, conf: Path, broken: bytes) -> None:
    shared.mkdir()
    (shared / "hook.json").write_bytes(broken)
    installed = install(wanted(shared, conf))
    assert json.loads((shared / "hook.json").read_text()) == {
        "port": installed.port,
        "secret": installed.secret,
    }


def test_links_in_the_volume_lead_nowhere(shared: Path, conf: Path, tmp_path: Path) -> None:
    shared.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in ("log4j2.xml", "hook.xml", "hook.json"):
        (shared / name).symlink_to(victim)
    assert install(wanted(shared, conf)).hook
    assert victim.read_text() == "mine"
    assert not any(path.is_symlink() for path in shared.iterdir())


def test_a_volume_that_cannot_be_written_is_said(tmp_path: Path, conf: Path) -> None:
    (tmp_path / "file").write_text("")
    installed = install(wanted(tmp_path / "file" / "shared", conf))
    assert not installed.hook
    assert "SPARK_UI_AGENT_DIR" in installed.said[0]


def test_the_port_is_free_and_no_outgoing_connection_takes_it(shared: Path, conf: Path) -> None:
    port = install(wanted(shared, conf)).port
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    outside = [one for one in hookkey.PORTS if not low <= one <= high]
    assert port in outside or not outside
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_hook_needs_the_standard_library_alone() -> None:
    code = "import sys, agent.act.volume; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = set(done.stdout.split())
    assert "agent" in loaded
    assert loaded.isdisjoint({"asyncio", "aiohttp", "h11", "structlog", "tenacity", "kubernetes_asyncio"})


@pytest.mark.parametrize("own_file", [True, False])
def test_spark_log_level_is_a_level_of_the_users_too(shared: Path, conf: Path, own_file: bool) -> None:
    if own_file:
        (conf / "log4j2.properties").write_text("rootLogger.level = info")
    (conf / "spark.properties").write_text("spark.log.level=warn\n")
    install(wanted(shared, conf, hook="auto"))
    text = (shared / "hook.xml").read_text()
    assert 'level="INFO"' in text.replace("info", "INFO")
    assert "WARN" in text
    (conf / "spark.properties").write_text("spark.log.level=DEBUG\n")
    install(wanted(shared, conf, hook="auto"))
    assert "WARN" not in (shared / "hook.xml").read_text()
