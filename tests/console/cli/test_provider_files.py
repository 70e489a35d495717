"""What authors of contracts have: a schema for their editor, and answers of further steps explained."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from tests.console.cli.conftest import Outcome

Call = Callable[..., Outcome]
CONTRACT = """
schema = 1
name = "pipes"
base_url = "https://api.example.test"
[credential]
kind = "none"
[status]
url = "{base_url}/pipe/{job_id}"
[[status.then]]
when = "body.parts"
step = "part"
[[steps]]
name = "part"
url = "{base_url}/part/{each}"
format = "xml"
each = { children = "body.parts", most = 3 }
[state]
value = "body.part.state"
[states]
waiting = ["running"]
succeeded = ["done"]
failed = ["failed"]
[limits]
deadline_basis = "test"
"""


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_the_schema_is_printed_without_a_home_and_takes_a_right_file_and_no_wrong_one(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("POLLCONSOLE_HOME", str(tmp_path / "none"))
    told = call("provider", "schema", *more)
    assert (told.code, told.err) == (0, "")
    validator = jsonschema.Draft7Validator(told.json)
    assert list(validator.iter_errors(tomllib.loads(CONTRACT))) == []
    for wrong in (CONTRACT.replace("each =", "eahc ="), CONTRACT.replace('"xml"', '"xlm"')):
        assert list(validator.iter_errors(tomllib.loads(wrong))) != []
    assert not (tmp_path / "none").exists()


def test_an_answer_of_a_further_step_is_explained_and_an_unknown_step_is_refused_with_the_nearest(
    call: Call, real_home: Path, tmp_path: Path
) -> None:
    file, saved = tmp_path / "pipes.toml", tmp_path / "saved.txt"
    file.write_text(CONTRACT)
    saved.write_bytes(b"HTTP/1.1 200 OK\r\n\r\n<part><state>done</state></part>")
    argv = ("provider", "explain", str(file), "--response", str(saved), "--home", str(real_home), "--json")
    told = json.loads(call(*argv, "--step", "part").out)
    assert (told["observation"]["verdict"], told["observation"]["state"]) == ("succeeded", "done")
    assert json.loads(call(*argv).out)["observation"]["detail"] == "unreadable"
    refused = call(*argv, "--step", "prat")
    assert refused.code == 2
    assert "no step 'prat'" in refused.err
    assert "did you mean" in refused.err
