"""`submit --file operations.jsonl`: each line by itself, refusals by number, nothing stored by a dry run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.console.real import LIMIT_S, PROGRAM, environment, make_home

from pollconsole.cli import bulk


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home", "http://127.0.0.1:9")


def submit(home: Path, text: str, *flags: str, code: int, name: str = "jobs.jsonl") -> tuple[Any, str]:
    """(the document, standard error) of a run that must end with *code*."""
    file = home.parent / name
    file.write_text(text)
    done = subprocess.run(
        [*PROGRAM, "--home", str(home), "submit", "--file", str(file), "--json", *flags],
        capture_output=True,
        timeout=LIMIT_S,
        env=environment(),
    )
    assert done.returncode == code, done
    return json.loads(done.stdout), done.stderr.decode()


def known(home: Path) -> set[str]:
    done = subprocess.run(
        [*PROGRAM, "--home", str(home), "list", "--json"], capture_output=True, timeout=LIMIT_S, env=environment()
    )
    return {view["operation_id"] for view in json.loads(done.stdout)["operations"]}


LINES = "\n".join(
    [
        '{"provider": "lab", "job_id": "j-1", "id": "op-1", "max_requests": 5}',
        "",
        '{"provider": "lab", "job_id": "j-2", "id": "op-2", "max_requests": 99999}',
        "{no json",
        '{"provider": "lab", "job_id": "j-1", "id": "op-1b"}',
        '{"provider": "lab", "job_id": "j-4", "id": "op-1"}',
        '{"provider": "lab", "job_id": "j-5", "id": "op-5"}',
        '{"job_id": "j-6"}',
    ]
)


@pytest.mark.slow
@pytest.mark.rule("B1", "S7")
def test_a_refused_line_is_told_by_its_number_and_leaves_the_others_alone(home: Path) -> None:
    found, said = submit(home, LINES, code=2)
    assert [(view["line"], view["operation_id"]) for view in found["operations"]] == [(1, "op-1"), (7, "op-5")]
    assert [(one["line"], one["code"]) for one in found["refused"]] == [
        (3, "limit"),
        (4, "file"),
        (5, "duplicate_job"),
        (6, "id_taken"),
        (8, "usage"),
    ]
    assert (found["accepted"], found["not_tried"], found["dry_run"]) == (2, 0, False)
    assert "line 4: refused: --file" in said
    assert "2 accepted, 5 refused, 0 not tried" in said
    assert known(home) == {"op-1", "op-5"}
    again, _ = submit(home, LINES.split("\n")[0], code=0)
    assert again["operations"][0]["existed"] is True


@pytest.mark.slow
@pytest.mark.rule("S7")
def test_a_dry_run_answers_the_same_and_stores_nothing(home: Path) -> None:
    submit(home, '{"provider": "lab", "job_id": "first", "id": "first"}', code=0)
    dry, said = submit(home, LINES, "--dry-run", code=2)
    assert known(home) == {"first"}
    assert "2 would be accepted, 5 refused" in said
    wet, _ = submit(home, LINES, code=2)
    strip = [{k: v for k, v in view.items() if k != "next"} for view in dry["operations"]]
    assert strip == [{k: v for k, v in view.items() if k != "next"} for view in wet["operations"]]
    assert dry["refused"] == wet["refused"]
    one, said = submit(home, '{"provider": "lab", "job_id": "second"}', "--dry-run", code=0, name="one.json")
    assert (one["dry_run"], one["status"]) == (True, "waiting")
    assert "nothing was stored" in said
    assert known(home) == {"first", "op-1", "op-5"}


@pytest.mark.slow
def test_flags_hold_for_every_line_and_none_may_name_one_job(home: Path) -> None:
    found, _ = submit(home, '{"job_id": "j-1"}\n{"job_id": "j-2"}', "--provider", "lab", "--lines", code=0, name="x")
    assert [view["provider"] for view in found["operations"]] == ["lab", "lab"]
    both, _ = submit(home, '{"provider": "lab", "job_id": "j-3"}', "--provider", "lab", code=2)
    assert "keep one of them" in both["refused"][0]["message"]
    refused, _ = submit(home, "{}", "--id", "mine", code=2)
    assert "--id names one job" in refused["error"]["message"]


def test_the_number_of_lines_is_limited() -> None:
    with pytest.raises(bulk.Refused, match=str(bulk.MAX_LINES)):
        bulk.split(b"{}\n" * (bulk.MAX_LINES + 1), "f")
    assert len(bulk.split(b"{}\n" * bulk.MAX_LINES + b"\n\n", "f")) == bulk.MAX_LINES
    with pytest.raises(bulk.Refused, match="no line"):
        bulk.split(b"\n \n", "f")
