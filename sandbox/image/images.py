"""The images that the node has: a released Spark, the agent, and what holds a Pod."""

from __future__ import annotations

from pathlib import Path

from sandbox.image import debian
from sandbox.image.build import Build
from sandbox.image.spark import pause_image, spark_image
from sandbox.image.store import content_key, kept
from sandbox.launch import REPOSITORY

SPARK_VERSION = "4.1.4"
AGENT = "localhost/spark-ui-agent:sandbox"


def agent_image() -> Path:
    """Return a docker-archive of the agent, from the project's own Dockerfile on a Debian root with Python.

    Built anew, in about a minute, when anything that the Dockerfile copies has changed. Raises what `Build.image` raises.
    """
    base = debian.root(debian.PYTHON)
    copied = [
        line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    key = content_key(base.name, REPOSITORY / "Dockerfile", *(REPOSITORY / name for name in copied))

    def make(place: Path) -> None:
        Build(REPOSITORY, place.parent, base).image({"BASE": base.name}, AGENT, place)

    return kept("agent", key, make)


def archives() -> list[Path]:
    """Return the docker-archives of all images; makes those that are not there. Raises `CommandError`."""
    return [pause_image(), spark_image(SPARK_VERSION), agent_image()]
