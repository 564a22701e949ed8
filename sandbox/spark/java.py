"""The machine's Java, which Spark needs and PyPI does not have."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST = 17
_REMEDY = (
    f"Spark needs Java {OLDEST} or newer: install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; "
    "Fedora: dnf install java-21-openjdk-headless; macOS: brew install openjdk@21) or point JAVA_HOME at it."
)


class JavaError(Exception):
    """No Java that Spark can use. The message says what was found and how to get one."""


def find_java() -> Path:
    """Return the ``java`` of JAVA_HOME, else of PATH. Raises `JavaError` when it is missing or older than 17."""
    home = os.environ.get("JAVA_HOME")
    name = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(name)
    if found is None:
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "No java on PATH"
        raise JavaError(f"{where}. {_REMEDY}")
    answer = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False)
    # 'openjdk version "17.0.15" 2025-04-15'; up to Java 8 it was "1.8.0_392"
    version = re.search(r'version "(\d+)', answer.stderr)
    if version is None or int(version[1]) < OLDEST:
        said = answer.stderr.strip().partition("\n")[0] or "nothing"
        raise JavaError(f"{found} says: {said}. {_REMEDY}")
    return Path(found)


def java_home() -> Path:
    """Return the JAVA_HOME of `find_java`, links resolved. Raises `JavaError`."""
    return find_java().resolve().parent.parent
