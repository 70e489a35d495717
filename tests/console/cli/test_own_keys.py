"""`doctor` names what is wrong with the operator's own keys, and says nothing where there are none."""

from __future__ import annotations

import json
from pathlib import Path

from tests.console.cli.test_process import imported, run

from pollconsole.cli.doctor import OK, WRONG, own_keys


def test_without_a_file_nothing_is_said(tmp_path: Path) -> None:
    assert own_keys(tmp_path) == []


def test_each_entry_that_is_skipped_is_a_finding_and_the_others_are_counted(tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text('[keys]\nfilter = "ctrl+f"\nfiltr = "x"\nmark = "h"\n', "utf-8")
    findings = own_keys(tmp_path)
    assert [finding.state for finding in findings] == [WRONG, WRONG, OK]
    assert "line 3: keys.filtr" in findings[0].text
    assert "did you mean filter?" in findings[0].text
    assert "line 4: keys.mark: h is a key of cards" in findings[1].text
    assert str(tmp_path / "keys.toml") in findings[0].mend
    assert findings[2].text == "keys.toml gives 1 action other keys"


def test_the_command_ends_with_one_and_needs_no_screen_to_read_the_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "keys.toml").write_text('[keys]\nhelp = "Escape"\n', "utf-8")
    done = run("doctor", "--json", "--home", str(home))
    found = [each for each in json.loads(done.stdout)["findings"] if each["name"] == "keys"]
    assert done.returncode == 1
    assert "always leads back" in found[0]["text"]
    assert "textual" not in imported("doctor", "--home", str(home))
