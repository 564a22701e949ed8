"""The client's package is loaded slim: its models and APIs cost 33 MiB and nobody needs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNT = """
import sys
from agent.act.kubeclient import load_client
{before}
configuration, api_client = load_client()
assert api_client.ApiClient and configuration.Configuration
names = [name for name in sys.modules if name.split(".")[0] == "kubernetes_asyncio"]
print(len(names), hasattr(sys.modules["kubernetes_asyncio"], "__version__"))
"""
# As if another release had moved what the slim way leans on.
OTHER_LAYOUT = """
import importlib
found = importlib.import_module
def moved(name, package=None):
    if "kubernetes_asyncio" in name and not hasattr(sys.modules.get("kubernetes_asyncio"), "__version__"):
        if "kubernetes_asyncio" in sys.modules:
            raise ImportError(name)
    return found(name, package)
importlib.import_module = moved
"""


def count(before: str) -> tuple[int, bool]:
    argv = [sys.executable, "-W", "error", "-c", COUNT.format(before=before)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    number, whole = done.stdout.split()
    return int(number), whole == "True"


def test_fewer_than_thirty_modules_are_loaded() -> None:
    number, whole = count("")

    assert number < 30
    assert not whole


def test_another_layout_loads_the_whole_package_and_works() -> None:
    number, whole = count(OTHER_LAYOUT)

    assert number > 300
    assert whole


def test_a_package_that_is_loaded_whole_already_is_used_as_it_is() -> None:
    number, whole = count("import kubernetes_asyncio")

    assert number > 300
    assert whole
