"""SECURITY.md: every promise names a test, and every test that it names exists and proves a rule."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def promises() -> list[tuple[str, str]]:
    """(promise, what it names) of each row of the tables that have proofs."""
    rows = []
    for table in PAGE.split("| promise | proved by |\n|---|---|\n")[1:]:
        for line in table.splitlines():
            if not line.startswith("|"):
                break
            promise, _, named = line.strip("| ").rpartition(" | ")
            rows.append((promise, named))
    return rows


def marks_of(path: Path) -> dict[str, str]:
    """Name -> the text of its marks, of every test of a file."""
    text = path.read_text("utf-8")
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found[node.name] = " ".join(ast.unparse(mark) for mark in node.decorator_list)
    return found


def wrong(named: str) -> list[str]:
    """What is not true of the tests that *named* names; nothing named is wrong, too."""
    found = NAMED.findall(named)
    faults = [] if found else [f"no test: {named}"]
    for file, name in found:
        path = ROOT / file
        if not path.is_file():
            faults.append(f"{file}: no such file")
            continue
        marks = marks_of(path)
        if name and name not in marks:
            faults.append(f"{file}: no test {name}")
        elif "mark.rule" not in marks.get(name, "") and "pytestmark" not in path.read_text("utf-8"):
            faults.append(f"{file}::{name}: proves no rule")
    return faults


def test_every_promise_names_a_test_that_exists_and_proves_a_rule() -> None:
    rows = promises()
    assert len(rows) > 25
    assert [fault for _, named in rows for fault in wrong(named)] == []
    assert sum(len(NAMED.findall(named)) for _, named in rows) == len(NAMED.findall(PAGE))


@pytest.mark.parametrize(
    "named", ["", "a test", "`tests/trust/test_nothing.py::test_x`", "`tests/trust/test_canary.py::test_nothing`"]
)
def test_a_proof_that_is_missing_is_noticed(named: str) -> None:
    assert wrong(named)


def test_it_can_be_read_in_five_minutes() -> None:
    words = re.findall(r"[A-Za-z]+", NAMED.sub("", PAGE))
    assert len(words) < 1_750, "at 350 words a minute"


def test_the_numbers_that_it_tells_are_those_of_the_tests() -> None:
    from tests.trust.authority import ROWS
    from tests.trust.canary import ECHOES
    from tests.trust.test_xterm import QUESTIONS

    numbers = {22: "twenty-two ways", 15: "fifteen kinds of query", 13: "thirteen encodings"}
    assert numbers[len(ROWS)] in PAGE
    assert numbers[len(QUESTIONS)] in PAGE
    assert numbers[len(ECHOES)] in PAGE
