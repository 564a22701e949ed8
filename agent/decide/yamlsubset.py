"""The plain part of YAML that log4j2 files are written in: nested mappings, lists of mappings, scalars on one line."""

from __future__ import annotations

import re

Node = str | list["Node"] | dict[str, "Node"]

_PAIR = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'#:][^#:]*?)\s*:(?:\s+(.*))?""")
_BLOCK = re.compile(r"[|>][-+0-9]*")


def read_yaml(content: str) -> Node:
    """The document as nested dicts and lists; every scalar is its text, and flow values stay text.

    Raises:
        ValueError: for tabs, block scalars, anchors, several documents and whatever else is not plain.
    """
    lines: list[tuple[int, str]] = []
    for raw in content.splitlines():
        line = _uncommented(raw)
        if line.strip() and line.strip() != "---":
            body = line.lstrip(" ")
            lines.append((len(line) - len(body), body.rstrip()))
    if not lines:
        raise ValueError("no content")
    node, rest = _block(lines, 0, lines[0][0])
    if rest != len(lines):
        raise ValueError(f"not plain: {lines[rest][1]!r}")
    return node


def _uncommented(line: str) -> str:
    """The line without its comment: a # at its beginning or after a space, outside quotes."""
    quote = ""
    for index, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "#" and (index == 0 or line[index - 1] in " \t"):
            return line[:index]
    return line


def _block(lines: list[tuple[int, str]], at: int, indent: int) -> tuple[Node, int]:
    """The list or mapping that begins on line `at` with this indent, and the line after it."""
    if lines[at][1].startswith("- ") or lines[at][1] == "-":
        return _sequence(lines, at, indent)
    return _mapping(lines, at, indent)


def _sequence(lines: list[tuple[int, str]], at: int, indent: int) -> tuple[Node, int]:
    result: list[Node] = []
    while at < len(lines) and lines[at][0] == indent and lines[at][1][:2] in ("-", "- "):
        inner = lines[at][1][1:].lstrip(" ")
        if not inner:
            if at + 1 >= len(lines) or lines[at + 1][0] <= indent:
                raise ValueError("an empty item")
            node, at = _block(lines, at + 1, lines[at + 1][0])
        elif _PAIR.fullmatch(inner):
            # The item's first pair stands on the dash's line: read it as if it stood on its own.
            column = indent + len(lines[at][1]) - len(inner)
            lines[at] = (column, inner)
            node, at = _mapping(lines, at, column)
        else:
            node, at = _scalar(inner), at + 1
        result.append(node)
    return result, at


def _mapping(lines: list[tuple[int, str]], at: int, indent: int) -> tuple[Node, int]:
    result: dict[str, Node] = {}
    while at < len(lines) and lines[at][0] == indent:
        pair = _PAIR.fullmatch(lines[at][1])
        if pair is None:
            raise ValueError(f"not plain: {lines[at][1]!r}")
        key, value = _scalar(pair[1]), pair[2] or ""
        at += 1
        deeper = at < len(lines) and (
            lines[at][0] > indent or (lines[at][0] == indent and lines[at][1][:2] in ("-", "- "))
        )
        if value:
            result[key] = _scalar(value)
        elif deeper:
            result[key], at = _block(lines, at, lines[at][0])
        else:
            result[key] = ""
    return result, at


def _scalar(text: str) -> str:
    if _BLOCK.fullmatch(text) or text[:1] in "&*!?%@`":
        raise ValueError(f"not plain: {text!r}")
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
