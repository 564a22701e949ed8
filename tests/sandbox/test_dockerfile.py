"""The sandbox's reader of the Dockerfile: nothing that an engine would do is passed over."""

from __future__ import annotations

import re

import pytest

from sandbox.image.dockerfile import KNOWN, DockerfileError, parse
from sandbox.launch import REPOSITORY

# an instruction begins in the first column; what goes on from the line before is indented
WRITTEN = re.compile(r"^([A-Z]+) (.*?)(?: \\)?$", re.MULTILINE)
BASE = "python:3.13-slim"


def test_the_steps_are_those_of_the_file_in_its_order() -> None:
    text = (REPOSITORY / "Dockerfile").read_text()

    stages = parse(text, {})

    taken = [
        step
        for stage in stages
        for step in (("FROM", stage.name), *((one.word, one.rest) for one in stage.instructions))
    ]
    written = [step for step in WRITTEN.findall(text) if step[0] != "ARG"]
    assert [word for word, _ in taken] == [word for word, _ in written]
    assert {word for word, _ in written} | {"ARG"} == set(KNOWN), "no more is known than is needed"
    for (word, rest), (_, line) in zip(taken, written, strict=True):
        assert rest.startswith(line.partition(" AS ")[2] if word == "FROM" else line)
    assert [(stage.name, stage.base) for stage in stages] == [("build", BASE), ("", BASE)]


def test_an_argument_wins_over_what_the_file_declares() -> None:
    stages = parse((REPOSITORY / "Dockerfile").read_text(), {"BASE": "debian:13"})

    assert [stage.base for stage in stages] == ["debian:13", "debian:13"]


def test_lines_that_go_on_are_joined_and_comments_left_out() -> None:
    text = 'FROM scratch\nENV ONE=1 \\\n    # in between\n    TWO=\'2 3\'\nENTRYPOINT ["a", "b c"]\n'

    (stage,) = parse(text, {})

    env, entrypoint = stage.instructions
    assert env.pairs() == {"ONE": "1", "TWO": "2 3"}
    assert entrypoint.argv() == ["a", "b c"]


@pytest.mark.parametrize("word", ["HEALTHCHECK", "volume"])
def test_an_instruction_that_is_not_known_is_an_error_that_names_it(word: str) -> None:
    with pytest.raises(DockerfileError, match=f"^{word.upper()}: only ARG, FROM, "):
        parse(f"FROM scratch\n{word} /data\n", {})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("USER 185:0\nFROM scratch", "USER stands before the first FROM"),
        # a RUN would see it
        ("FROM scratch\nARG LEVEL=3", "ARG LEVEL=3 stands after the first FROM"),
    ],
)
def test_what_would_be_passed_over_in_its_place_is_an_error(text: str, complaint: str) -> None:
    with pytest.raises(DockerfileError, match=f"^{complaint}"):
        parse(text, {})


def test_arguments_in_another_form_are_errors() -> None:
    (stage,) = parse("FROM scratch\nENV ONE 1\nENTRYPOINT a b\n", {})

    env, entrypoint = stage.instructions
    with pytest.raises(DockerfileError, match="ENV ONE 1: expected name=value"):
        env.pairs()
    with pytest.raises(DockerfileError, match="ENTRYPOINT a b: expected a JSON array"):
        entrypoint.argv()
