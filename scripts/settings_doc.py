"""Keeps the table in docs/settings.md equal to the code's own.

`python -m scripts.settings_doc` writes it, `--check` only compares and exits 1 where they differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agent.settings import PREFIX, TABLE

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
BEGIN = "<!-- settings: written by scripts/settings_doc.py -->"
END = "<!-- /settings -->"


def table() -> str:
    """All settings as a Markdown table."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    for row in TABLE:
        default = f"`{row.default}`" if row.default else ""
        lines.append(f"| `{PREFIX}{row.name}` | {default} | {row.meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def renewed(document: str) -> str:
    """The document with the table of today between its markers.

    Raises:
        ValueError: the markers are not there, once each and in order.
    """
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in tail or END in tail:
        raise ValueError(f"no table to renew; allowed: one {BEGIN} and, after it, one {END}")
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def main(argv: Sequence[str], document: Path = DOCUMENT) -> int:
    """Writes the table, or compares it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.settings_doc", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    args = parser.parse_args(argv)
    found = document.read_text(encoding="utf-8")
    try:
        wanted = renewed(found)
    except ValueError as error:
        print(f"{document.name}: {error}", file=sys.stderr)
        return 1
    if found == wanted:
        return 0
    if args.check:
        print(
            f"{document.name} differs from agent/settings/table.py; remedy: python -m scripts.settings_doc",
            file=sys.stderr,
        )
        return 1
    document.write_text(wanted, encoding="utf-8")
    print(f"{document.name} renewed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
