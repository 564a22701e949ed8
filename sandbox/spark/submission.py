"""How a driver is put on the road: command line, environment and files, as spark-submit or a notebook does."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sandbox import launch
from sandbox.spark import life
from sandbox.spark.install import spark_home
from sandbox.spark.java import java_home
from sandbox.spark.master import LocalMaster, Master

# no files in /tmp/hsperfdata_*, and no WARN of Netty's that a namespace has no hardware address
_QUIET_JVM = "-XX:-UsePerfData -Dio.netty.machineId=02:00:00:ff:fe:00:00:01"
# a driver of seconds gains nothing from the optimising compiler: 9 s of CPU instead of 15 (4.1.4)
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

Launcher = Literal["spark-submit", "python"]


@dataclass(frozen=True)
class Submission:
    """A driver to start.

    ``launcher``: ``spark-submit`` starts the JVM, which starts Python (as in a driver container); ``python``
    starts Python, which starts the JVM (as in a notebook). ``app_id`` becomes spark.app.id and
    SPARK_APPLICATION_ID. ``conf_dir`` is the user's SPARK_CONF_DIR, by default an empty one. ``conf`` and
    ``env`` win over what the harness sets by itself; spark.ui.port is 0 unless given. ``uid`` None: our own; with
    another one, ``reads`` are further paths that the driver has to reach (see `sandbox.launch.start`).
    """

    version: str
    master: Master = field(default_factory=LocalMaster)
    launcher: Launcher = "spark-submit"
    app_id: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    conf_dir: Path | None = None
    uid: int | None = None
    gid: int | None = None
    reads: Sequence[Path] = ()


@dataclass(frozen=True)
class Prepared:
    """Everything that `sandbox.launch.start` needs for a `Submission`."""

    argv: Sequence[str]
    env: Mapping[str, str]
    binds: Mapping[str, str]
    reads: Sequence[Path]


def prepare(submission: Submission, folder: Path, address: str | None, control: Path) -> Prepared:
    """Write the driver's files into ``folder``, which it owns from then on, and say how to start it.

    ``address`` is the Pod address in the driver's namespace. Installs Spark if need be. Raises what `spark_home`
    and `java_home` raise.
    """
    home, java = spark_home(submission.version), java_home()
    script = folder / "life.py"
    shutil.copyfile(life.__file__, script)
    (folder / "tmp").mkdir()
    (folder / "conf").mkdir()
    conf = _conf(submission, folder, address)
    options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    env = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(home),
        # for the JVM that only assembles the command line
        "SPARK_LAUNCHER_OPTS": _QUIET_JVM,
        "SPARK_LOCAL_DIRS": str(folder / "tmp"),
        "TMPDIR": str(folder / "tmp"),
        "SPARK_CONF_DIR": str(submission.conf_dir or folder / "conf"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        life.CONTROL: str(control),
    }
    if submission.app_id is not None:
        env["SPARK_APPLICATION_ID"] = submission.app_id
    if address is not None:
        # the machine's own name does not resolve to anything inside
        env["SPARK_LOCAL_HOSTNAME"] = address
    if submission.launcher == "python":
        argv = [sys.executable, str(script)]
        env["PYTHONPATH"] = str(home / "python")
        env["PYSPARK_SUBMIT_ARGS"] = shlex.join([*options, "pyspark-shell"])
    else:
        argv = [str(home / "bin" / "spark-submit"), *options, str(script)]
    binds: dict[str, str] = {}
    if submission.uid is not None:
        gid = submission.uid if submission.gid is None else submission.gid
        passwd = folder / "passwd"
        passwd.write_text(launch.passwd_with(submission.uid, gid, folder))
        binds["/etc/passwd"] = str(passwd)
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, submission.uid, gid)
    reads = [home, java, folder, *submission.reads]
    if submission.conf_dir is not None:
        reads.append(submission.conf_dir)
    return Prepared(argv, {**env, **submission.env}, binds, reads)


def _conf(submission: Submission, folder: Path, address: str | None) -> dict[str, str]:
    conf = {
        "spark.app.name": "sandbox",
        "spark.ui.port": "0",
        "spark.driver.memory": "512m",
        "spark.sql.warehouse.dir": str(folder / "tmp" / "warehouse"),
        **submission.master.conf(folder),
    }
    if submission.app_id is not None:
        # local mode takes its id from the second (4.1, 4.3); cluster mode with a local master sets it so too
        conf |= {"spark.app.id": submission.app_id, "spark.test.appId": submission.app_id}
    if address is not None:
        conf |= {"spark.driver.host": address, "spark.driver.bindAddress": address}
    conf |= submission.conf
    java = f"{_QUIET_JVM} {_QUICK_JVM} -Djava.io.tmpdir={folder / 'tmp'}"
    conf["spark.driver.extraJavaOptions"] = f"{java} {conf.get('spark.driver.extraJavaOptions', '')}".strip()
    return conf
