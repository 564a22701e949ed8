"""The settings table of the documentation and the code's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.settings import PREFIX, TABLE
from scripts.settings_doc import BEGIN, DOCUMENT, END, main, renewed, table


def test_the_document_holds_the_codes_table() -> None:
    assert renewed(DOCUMENT.read_text(encoding="utf-8")) == DOCUMENT.read_text(encoding="utf-8")


def test_one_line_for_each_setting() -> None:
    lines = table().splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == [PREFIX + row.name for row in TABLE]
    assert {line.replace("\\|", "").count("|") for line in lines} == {4}


def test_check_fails_where_they_differ_and_writing_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "settings.md"
    document.write_text(f"# Head\n{BEGIN}\nold\n{END}\ntail\n", encoding="utf-8")
    assert main(["--check"], document) == 1
    assert "remedy: python -m scripts.settings_doc" in capsys.readouterr().err
    assert main([], document) == 0
    assert document.read_text(encoding="utf-8") == f"# Head\n{BEGIN}\n{table()}\n{END}\ntail\n"
    assert main(["--check"], document) == 0


@pytest.mark.parametrize("text", ["", BEGIN, END + BEGIN, f"{BEGIN}{END}{BEGIN}{END}"])
def test_markers_must_stand_once(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = tmp_path / "settings.md"
    document.write_text(text, encoding="utf-8")
    assert main([], document) == 1
    assert "allowed: one" in capsys.readouterr().err
    assert document.read_text(encoding="utf-8") == text
