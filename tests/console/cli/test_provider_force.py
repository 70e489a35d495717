"""`provider` and the stronger cancel: what show, check and explain say of it; no command and no tool grants it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.console.cli.test_provider_author import Call
from tests.core.contract.test_contract_force import FORCED, TEXT


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "acme.toml"
    made.write_text(TEXT)
    return made


@pytest.mark.rule("E5")
def test_check_and_show_name_it_and_a_missing_consequence_is_refused_with_its_line(call: Call, file: Path) -> None:
    sound = call("provider", "check", str(file), "--json")
    assert (sound.code, sound.json["cancel"], sound.json["force_cancel"], sound.json["warnings"]) == (0, True, True, 0)
    home = file.parent / "home"
    home.mkdir()
    shown = call("provider", "show", "github-run", "--json", "--home", str(home)).json
    assert (shown["force_cancel"], "/force-cancel" in shown["text"]) == (True, True)
    assert call("provider", "show", "openai-batch", "--json", "--home", str(home)).json["force_cancel"] is False
    file.write_text(TEXT.replace('consequences = "it is killed"\n', ""))
    broken = call("provider", "check", str(file))
    line = TEXT[: TEXT.index("[cancel.force]")].count("\n") + 1
    assert broken.code == 2
    assert f"acme.toml:{line}: cancel.force.consequences: missing; give what it does" in broken.err


@pytest.mark.rule("E5", "O5")
@pytest.mark.parametrize(("status", "outcome"), [(202, "done"), (409, "refused"), (503, "unknown")])
def test_explain_reads_a_saved_answer_as_the_force_cancels(call: Call, file: Path, status: int, outcome: str) -> None:
    saved = file.parent / "answer.txt"
    saved.write_bytes(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n\r\n{{}}".encode())
    argv = (
        "provider",
        "explain",
        str(file),
        "--response",
        str(saved),
        "--step",
        "cancel.force",
        "--json",
        "--home",
        str(file.parent),
    )
    found = call(*argv).json
    assert (found["cancel"]["outcome"], found["decision"]) == (outcome, None)
    file.write_text(TEXT.replace(FORCED, ""))
    none = call(*argv)
    assert none.code == 2
    assert "documents no force-cancel ([cancel.force])" in none.json["error"]["message"]
