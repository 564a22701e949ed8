"""A user's log4j2 file, in any of its four formats -> which of some loggers it surely keeps above INFO.

Best effort on the safe side: what can't be read with certainty (lookups, arbiters, includes, YAML's finer points)
counts as not known, and is then left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from xml.parsers import expat

from .yamlsubset import read_yaml

ABOVE_INFO = frozenset({"OFF", "FATAL", "ERROR", "WARN"})
_ROOTS = frozenset({"root", "asyncroot"})
_LOGGERS = frozenset({"logger", "asynclogger"})


class UnclearError(ValueError):
    """The file is not understood with certainty."""


def above_info(content: str, form: str, names: Iterable[str]) -> dict[str, str]:
    """The level (OFF, FATAL, ERROR or WARN) of each of `names` that is above INFO in `content`.

    `form` is `properties`, `xml`, `yaml` or `json`. Never raises: what is not clear is not in the answer.
    """
    try:
        levels = _READERS[form](content)
    except (ValueError, RecursionError, expat.ExpatError):
        return {}
    found = {name: _nearest(levels, name) for name in names}
    return {name: level for name, level in found.items() if level in ABOVE_INFO}


def _nearest(levels: Mapping[str, str], name: str) -> str:
    """The level of the closest configured ancestor, as log4j2 resolves a logger's; "" names the root."""
    while name:
        if name in levels:
            return levels[name]
        name = name.rpartition(".")[0]
    return levels.get("", "")


def read_properties(content: str) -> dict[str, str]:
    """The pairs of a Java properties file, with continued lines joined. Escapes are left as they are."""
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", content)
    pairs: dict[str, str] = {}
    for line in map(str.strip, joined.splitlines()):
        if line and line[0] not in "#!":
            key, value = _split(line)
            pairs[key] = value
    return pairs


def _split(line: str) -> tuple[str, str]:
    match = re.fullmatch(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", line, re.DOTALL)
    return (match[1], match[2]) if match else (line, "")


def _filled(value: str, properties: Mapping[str, str]) -> str:
    """`value` with the file's own properties put in, upper case; one with any other lookup is no level at all."""
    return re.sub(r"\$\{([\w.-]+)\}", lambda match: properties.get(match[1], "${}"), value).strip().upper()


def _from_properties(content: str) -> dict[str, str]:
    pairs = read_properties(content)
    own = {
        key.removeprefix("property."): value for key, value in pairs.items() if key.startswith("property.")
    }
    levels: dict[str, str] = {}
    short = pairs.get("rootLogger", "").partition(",")[0]  # `rootLogger = warn, console`
    levels[""] = _filled(pairs.get("rootLogger.level", short), own)
    for key, name in pairs.items():
        if (match := re.fullmatch(r"logger\.([^.]+)\.name", key)) is not None:
            short = pairs.get(f"logger.{match[1]}", "").partition(",")[0]
            level = pairs.get(f"logger.{match[1]}.level", short)
            if level:
                levels[name] = _filled(level, own)
    return levels


class _Xml:
    """Collects what counts from the elements of an XML file; log4j2 takes their names in any case."""

    def __init__(self) -> None:
        self.levels: dict[str, str] = {}
        self.properties: dict[str, str] = {}
        self._path: list[str] = []
        self._property = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.lower()
        given = {key.lower(): value for key, value in attributes.items()}
        if ":" in tag:
            raise UnclearError(f"<{tag}>")
        if self._path == ["configuration", "loggers"]:
            if tag not in _ROOTS | _LOGGERS:
                raise UnclearError(f"<{tag}> among the loggers")
            if given.get("level"):
                self.levels["" if tag in _ROOTS else given.get("name", "")] = given["level"]
        if self._path == ["configuration", "properties"]:
            self._property = given.get("name", "")
            self.properties[self._property] = given.get("value", "")
        self._path.append(tag)

    def text(self, data: str) -> None:
        if self._path == ["configuration", "properties", "property"]:
            self.properties[self._property] += data

    def end(self, _tag: str) -> None:
        self._path.pop()


def _from_xml(content: str) -> dict[str, str]:
    reader = _Xml()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.Parse(content, True)
    return {name: _filled(level, reader.properties) for name, level in reader.levels.items()}


def _from_json(content: str) -> dict[str, str]:
    strings_or_comments = r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/'
    return _from_tree(json.loads(re.sub(strings_or_comments, r"\1", content, flags=re.DOTALL)))


def _from_yaml(content: str) -> dict[str, str]:
    return _from_tree(read_yaml(content))


def _lower(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise UnclearError("no mapping where one belongs")
    return {str(key).lower(): item for key, item in value.items()}


def _from_tree(tree: object) -> dict[str, str]:
    """Levels from the nested form that JSON and YAML share."""
    levels: dict[str, str] = {}
    for kind, value in _lower(_lower(_lower(tree).get("configuration")).get("loggers")).items():
        for row in value if isinstance(value, list) else [value]:
            fields = _lower(row)
            level = fields.get("level")
            if kind not in _ROOTS | _LOGGERS or not isinstance(level, str | None):
                raise UnclearError(f"{kind} among the loggers")
            if level:
                levels["" if kind in _ROOTS else str(fields.get("name", ""))] = _filled(level, {})
    return levels


_READERS = {"properties": _from_properties, "xml": _from_xml, "json": _from_json, "yaml": _from_yaml}
