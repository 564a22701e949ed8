"""What `sandbox.spark` needs from outside: Java from the machine, Spark from PyPI; and what it says without them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from sandbox.progress import Progress
from sandbox.spark.install import REQUIREMENTS, VERSIONS, spark_home, unpack
from sandbox.spark.java import JavaError, find_java, java_home


def _fake_java(home: Path, says: str) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)


def test_java_of_java_home_is_taken_when_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_java(tmp_path, 'openjdk version "21.0.4" 2024-07-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == tmp_path / "bin" / "java"
    assert java_home() == tmp_path


@pytest.mark.parametrize(
    "says", ['openjdk version "1.8.0_392"', 'openjdk version "11.0.22" 2024-01-16', "no idea"]
)
def test_an_old_java_is_refused_with_what_it_said_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    _fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError) as raised:
        find_java()
    assert f"says: {says}. Spark needs Java 17 or newer: install one" in str(raised.value)


def test_a_missing_java_is_named_by_the_place_that_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=f"JAVA_HOME is {tmp_path}, where there is no bin/java"):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match=r"No java on PATH\. Spark needs Java 17"):
        find_java()


def test_an_unknown_version_is_refused_before_anything_is_downloaded() -> None:
    with pytest.raises(ValueError, match=r"Spark 2\.4\.0 is not one of 3\.5\.9, 4\.1\.4, 4\.3\.0"):
        spark_home("2.4.0")


@pytest.mark.parametrize("version", VERSIONS)
def test_requirements_pin_each_version_by_hash(version: str) -> None:
    lines = (REQUIREMENTS / f"pyspark-{version}.txt").read_text().splitlines()
    assert f"pyspark=={version} \\" in lines
    assert sum("--hash=sha256:" in line for line in lines) == 3


def test_unpacking_takes_what_a_driver_needs_to_its_place(tmp_path: Path) -> None:
    wanted = {
        "deps/bin/spark-submit": "bin/spark-submit",
        "deps/jars/a.jar": "jars/a.jar",
        "deps/jars/connect-repl/b.jar": "jars/connect-repl/b.jar",
        "lib/pyspark.zip": "python/lib/pyspark.zip",
        "pyspark/sql/session.py": "python/pyspark/sql/session.py",
    }
    unwanted = ["deps/examples/pi.py", "setup.py", "libexec/x"]
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    with tarfile.open(downloads / "pyspark-9.9.tar.gz", "w:gz") as archive:
        for name in [*wanted, *unwanted]:
            member = tarfile.TarInfo(f"pyspark-9.9/{name}")
            member.size, member.mode = len(name), 0o755
            archive.addfile(member, io.BytesIO(name.encode()))
    with zipfile.ZipFile(downloads / "py4j-1-py2.py3-none-any.whl", "w") as wheel:
        wheel.writestr("py4j/__init__.py", "py4j")

    home = unpack(downloads, tmp_path / "home", Progress("unpacking"))

    found = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
    assert found == {place: name for name, place in wanted.items()} | {"python/py4j/__init__.py": "py4j"}
    assert (home / "bin" / "spark-submit").stat().st_mode & 0o777 == 0o755
