"""The path of a contract's author: new, check, explain, try, impact; what is asked on a terminal, what without one."""

from __future__ import annotations

import json
import os
import pty
import select
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.console.cli.conftest import HOSTILE, Outcome
from tests.console.real import Provider
from tests.serving import serving

from pollconsole.safe import safe
from pollcore.contract import placeholders

Call = Callable[..., Outcome]
LIMIT_S = 60
SAVED = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"id": "job-7", "status": "compiling"}'


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Job states by id, on loopback."""
    with serving(Provider()) as server:
        yield server


def begun(call: Call, home: Path, *more: str) -> Outcome:
    return call("provider", "new", "acme", "--home", str(home), *more)


def tried_contract(call: Call, home: Path, url: str) -> Path:
    """A file of `new` that somebody has finished: it asks the provider of these tests."""
    states = ("--waiting", "running", "--succeeded", "done", "--failed", "failed")
    assert begun(call, home, "--base-url", url, "--credential", "none", "--path", "/jobs/{job_id}", *states).code == 0
    file = home / "providers" / "acme.toml"
    text = file.read_text().replace('tested_live = "no"', 'tested_live = "the tests"')
    text = text.replace("# observation =", "observation =").replace("# evidence =", "evidence =")
    assert placeholders.EVIDENCE in text
    file.write_text(text.replace(placeholders.EVIDENCE, "these tests"))
    return file


@pytest.mark.rule("B1")
def test_a_new_file_is_private_accepted_by_check_and_never_overwritten(call: Call, tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = begun(call, home)
    file = home / "providers" / "acme.toml"
    assert (made.code, made.err) == (0, "")
    assert str(file) in made.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    checked = call("provider", "check", str(file), "--json")
    assert checked.code == 0
    assert checked.json["warnings"] == sum(one["level"] == "warning" for one in checked.json["found"]) > 0
    assert call("provider", "check", str(file), "--strict").code == 3
    before = file.read_bytes()
    again = begun(call, home, "--json")
    assert (again.code, again.json["error"]["code"]) == (2, "file")
    assert file.read_bytes() == before


@pytest.mark.rule("B1")
def test_a_new_file_goes_where_it_is_wanted_and_names_are_checked(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    made = call("provider", "new", "--file", str(file), "--json")
    assert (made.code, made.json["name"], made.json["proposed"]) == (0, "lab", None)
    assert 'name = "lab"' in file.read_text()
    assert call("provider", "new", "Not A Name").code == 2
    assert call("provider", "new").code == 2
    assert call("provider", "new", "x", "--file", str(tmp_path / "none" / "x.toml")).code == 2
    (tmp_path / "link.toml").symlink_to(tmp_path / "elsewhere.toml")
    assert call("provider", "new", "--file", str(tmp_path / "link.toml")).code == 2
    assert not (tmp_path / "elsewhere.toml").exists()
    wrong = call("provider", "new", "y", "--state", "body.[", "--file", str(tmp_path / "y.toml"))
    assert wrong.code == 2
    assert not (tmp_path / "y.toml").exists()


@pytest.mark.rule("S2")
def test_saved_answers_propose_paths_and_states_and_put_none_into_a_list(call: Call, tmp_path: Path) -> None:
    saved, other = tmp_path / "a.txt", tmp_path / "b.txt"
    saved.write_bytes(SAVED)
    other.write_bytes(SAVED.replace(b"compiling", b"linking"))
    file = tmp_path / "acme.toml"
    argv = ("provider", "new", "--file", str(file), "--from-response", str(saved), "--from-response", str(other))
    made = call(*argv, "--job-id", "job-7", "--waiting", "linking")
    assert made.code == 0
    assert "states seen: compiling, linking" in made.out
    at = ("--home", str(tmp_path / "none"))
    told = call("provider", "explain", str(file), "--response", str(saved), "--job-id", "job-7", *at, "--json").json
    assert (told["observation"]["state"], told["decision"]["reason"]) == ("compiling", "unknown_state")
    told = call("provider", "explain", str(file), "--response", str(other), "--job-id", "job-7", *at, "--json").json
    assert told["decision"]["decision"] == "wait"
    told = call("provider", "explain", str(file), "--response", str(other), "--job-id", "job-8", *at, "--json").json
    assert told["decision"]["detail"] == "wrong_job"
    assert 'seen in a saved answer: "compiling"' in file.read_text()
    assert "would stop as unknown: compiling\n" in made.out


@pytest.mark.rule("S2")
def test_states_are_named_where_the_author_says_and_nothing_is_left_open_that_is_listed(
    call: Call, tmp_path: Path
) -> None:
    saved = tmp_path / "a.txt"
    saved.write_bytes(SAVED.replace(b'"status": "compiling"', b'"code": 7'))
    argv = ("provider", "new", "--from-response", str(saved), "--file")
    made = call(*argv, str(tmp_path / "a.toml"), "--state", "body.code", "--waiting", "7", "--credential", "header")
    assert "states seen: 7\n" in made.out
    assert "stop as unknown:" not in made.out
    assert "waiting     = [7]" in (tmp_path / "a.toml").read_text()
    bare = call(*argv, str(tmp_path / "b.toml"))
    assert "no field looks like a state (HTTP 200)" in bare.out
    assert "[[rules]] with status" in call(*argv, str(tmp_path / "c.toml"), "--state", "http.status").out


@pytest.mark.rule("T1")
def test_spans_are_words_in_text_and_ms_in_json(call: Call, tmp_path: Path) -> None:
    file, saved = tmp_path / "acme.toml", tmp_path / "a.txt"
    call("provider", "new", "--file", str(file), "--waiting", "compiling")
    saved.write_bytes(SAVED.replace(b"\r\n\r\n", b"\r\nRetry-After: 9\r\n\r\n"))
    argv = ("provider", "explain", str(file), "--response", str(saved), "--home", str(tmp_path / "none"))
    shown = call(*argv).out
    assert "\n  delay: 9 s\n" in shown
    assert "\n  guidance: Retry-After: 9 s\n" in shown
    assert " ms" not in shown
    assert 9_000 <= call(*argv, "--json").json["decision"]["delay_ms"] < 10_000
    lines = call("provider", "check", str(file)).out.splitlines()
    assert any(line.startswith(f"  {file}: note: account: ") for line in lines)


@pytest.mark.rule("G4", "S2")
def test_a_hostile_saved_answer_reaches_neither_terminal_nor_file_raw(call: Call, tmp_path: Path) -> None:
    saved, file = tmp_path / "a.txt", tmp_path / "acme.toml"
    body = json.dumps({"status": "a b", "state": HOSTILE, "id": HOSTILE, HOSTILE: {"status": "x"}}).encode()
    saved.write_bytes(b"HTTP/1.1 200 OK\r\n\r\n" + body)
    made = call("provider", "new", "--file", str(file), "--from-response", str(saved), "--job-id", HOSTILE[:1])
    assert made.code == 0
    for text in (made.out, made.err, file.read_text()):
        assert all(line == safe(line, 100_000) for line in text.split("\n"))


def test_an_answer_that_is_no_json_proposes_nothing_and_says_so(call: Call, tmp_path: Path) -> None:
    saved = tmp_path / "a.txt"
    saved.write_bytes(b"HTTP/1.1 200 OK\r\n\r\n<a/>")
    made = call("provider", "new", "--file", str(tmp_path / "acme.toml"), "--from-response", str(saved))
    assert (made.code, "are no JSON" in made.out) == (0, True)


@pytest.mark.rule("T3")
def test_the_age_of_a_saved_answer_is_no_difference_of_clocks(call: Call, tmp_path: Path) -> None:
    file, saved = tmp_path / "acme.toml", tmp_path / "a.txt"
    call("provider", "new", "--file", str(file), "--waiting", "compiling", "--succeeded", "done")
    dated = b"200 OK\r\nDate: Mon, 02 Mar 2026 10:00:00 GMT\r\nRetry-After: Mon, 02 Mar 2026 10:00:40 GMT"
    saved.write_bytes(SAVED.replace(b"200 OK", dated))
    argv = ("provider", "explain", str(file), "--response", str(saved), "--job-id", "job-7")
    told = call(*argv, "--home", str(tmp_path / "none"), "--json").json
    assert not [note for note in told["observation"]["notes"] if "clock_skew" in note or "hint_invalid" in note]
    assert told["decision"]["source"] == "provider_retry_after"
    ahead = dated.replace(b"2026", b"2095")
    saved.write_bytes(SAVED.replace(b"200 OK", ahead))
    told = call(*argv, "--home", str(tmp_path / "none"), "--json").json
    assert [note for note in told["observation"]["notes"] if note.startswith("clock_skew ")]


@pytest.mark.rule("X7", "G5")
def test_a_placeholder_of_a_new_file_is_no_evidence_so_the_first_use_is_asked_about(
    call: Call, tmp_path: Path, provider: Provider
) -> None:
    home = tmp_path / "home"
    file = tried_contract(call, home, provider.url)
    assert (
        call("provider", "list", "--json", "--home", str(home)).json["providers"][0]["marks"]["first_use"]
        == "not_asked"
    )
    file.write_text(file.read_text().replace("these tests", placeholders.EVIDENCE))
    found = call("provider", "check", str(file), "--json").json["found"]
    assert [one["level"] for one in found if one["key"] == "status.evidence"] == ["warning"]
    (listed,) = [
        one
        for one in call("provider", "list", "--json", "--home", str(home)).json["providers"]
        if one["name"] == "acme"
    ]
    assert listed["marks"]["first_use"] != "not_asked"
    tried = call("provider", "try", "acme", "--job-id", "job-1", "--home", str(home), "--json")
    assert (tried.code, tried.json["error"]["reason"]) == (2, "first_use")


@pytest.mark.rule("E3", "E4", "S2")
def test_explain_shows_the_card_where_a_wait_would_stop_and_none_where_it_goes_on(call: Call, tmp_path: Path) -> None:
    file, saved = tmp_path / "acme.toml", tmp_path / "a.txt"
    call("provider", "new", "--file", str(file), "--waiting", "compiled", "--succeeded", "done")
    saved.write_bytes(SAVED)
    argv = ("provider", "explain", str(file), "--response", str(saved), "--home", str(tmp_path / "none"))
    told = call(*argv)
    assert "An operator would be asked:" in told.out
    assert "  Stopped because: unknown_state\n" in told.out
    card = call(*argv, "--json").json["card"]
    assert card[0] == "External job needs a decision"
    assert any(line.startswith("[1] check once") for line in card)
    saved.write_bytes(SAVED.replace(b"compiling", b"compiled"))
    assert call(*argv, "--json").json["card"] is None
    assert not (tmp_path / "none").exists()


@pytest.mark.rule("B2", "G5", "K4")
def test_a_try_shows_and_explains_one_counted_request(call: Call, tmp_path: Path, provider: Provider) -> None:
    home = tmp_path / "home"
    tried_contract(call, home, provider.url)
    provider.states["job-7"] = "compiling"
    told = call("provider", "try", "acme", "--job-id", "job-7", "--home", str(home), "--json").json
    assert len(provider.asked) == 1
    assert (told["status_requests_used"], told["answer"]["status"], told["fault"]) == (1, 200, None)
    assert (told["rule"], told["decision"]["reason"]) == ("not listed", "unknown_state")
    assert told["card"][0] == "External job needs a decision"
    shown = call("show", told["operation_id"], "--home", str(home), "--json").json
    assert (shown["status"], shown["stop_detail"], shown["status_requests_used"]) == ("closed", "provider_try", 1)
    again = call("provider", "try", "acme", "--job-id", "job-7", "--home", str(home), "--json")
    assert (again.code, again.json["error"]["code"]) == (2, "job_known")
    later = call("submit", "--provider", "acme", "--job-id", "job-7", "--home", str(home), "--json").json
    assert (later["status"], later["status_requests_used"]) == ("waiting", 1)
    provider.states["job-8"] = "succeeded"
    text = call("provider", "try", "acme", "--job-id", "job-8", "--home", str(home)).out
    assert "?..." in text
    assert "presigned" not in text
    assert len(provider.asked) == 2


@pytest.mark.rule("X7", "G5")
def test_a_try_under_a_contract_that_nobody_vouched_for_sends_nothing(
    call: Call, tmp_path: Path, provider: Provider
) -> None:
    home = tmp_path / "home"
    begun(call, home, "--base-url", provider.url, "--credential", "none")
    refused = call("provider", "try", "acme", "--job-id", "job-7", "--home", str(home), "--json")
    assert (refused.code, refused.json["error"]["code"], refused.json["error"]["reason"]) == (
        2, "not_tried", "first_use",
    )  # fmt: skip
    assert provider.asked == []
    assert [path.name for path in home.iterdir() if path.is_file()] == []


@pytest.mark.rule("G5")
@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--credential", "nobodys"), "credential"),
        (("--status-url", "https://elsewhere.example.test/x"), "status_url"),
        (("--param", "size=9"), "bad_parameter"),
    ],
)
def test_a_try_that_is_refused_makes_nothing_in_a_new_home(
    more: tuple[str, str], code: str, call: Call, tmp_path: Path, provider: Provider
) -> None:
    home = tmp_path / "home"
    tried_contract(call, home, provider.url)
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    refused = call("provider", "try", "acme", "--job-id", "job-7", *more, "--home", str(home), "--json")
    assert (refused.code, refused.json["error"]["code"]) == (2, code)
    assert provider.asked == []
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == before


@pytest.mark.rule("S8")
def test_impact_lists_decisions_that_would_differ_and_ends_with_0_unless_asked(
    call: Call, tmp_path: Path, provider: Provider
) -> None:
    home = tmp_path / "home"
    file = tried_contract(call, home, provider.url)
    changed = tmp_path / "acme.toml"
    changed.write_text(file.read_text().replace('["running"]', '["running", "compiling"]'))
    none = call("provider", "impact", str(changed), "--home", str(home))
    assert (none.code, "nothing to compare with" in none.out) == (0, True)
    for job, state in (("job-1", "compiling"), ("job-2", "running")):
        provider.states[job] = state
        call("provider", "try", "acme", "--job-id", job, "--home", str(home))
    found = call("provider", "impact", str(changed), "--home", str(home), "--since", "1h", "--json")
    assert (found.code, found.json["answers"], found.json["differences"]) == (0, 2, 1)
    (one,) = found.json["listed"]
    assert (one["was"], one["would_be"], one["rule"]) == ("unknown_state", "wait", "states.waiting")
    text = call("provider", "impact", str(changed), "--home", str(home))
    assert "1 of 2 stored answers of 2 operations would be decided otherwise" in text.out
    assert call("provider", "impact", str(changed), "--home", str(home), "--fail-on-difference").code == 3
    assert call("provider", "impact", str(file), "--home", str(home), "--fail-on-difference").code == 0


@pytest.mark.slow
def test_on_a_terminal_it_asks_a_few_questions_and_takes_defaults(tmp_path: Path) -> None:
    home = tmp_path / "home"
    main, side = pty.openpty()
    root = Path(__file__).resolve().parents[3]
    env = {
        **os.environ,
        "PYTHONPATH": f"{root / 'core'}:{root / 'console'}",
        "TERM": "xterm",
        "POLLCONSOLE_HOME": str(home),
    }
    argv = [sys.executable, "-m", "pollconsole", "provider", "new"]
    process = subprocess.Popen(argv, stdin=side, stdout=side, stderr=side, env=env, cwd=tmp_path)
    os.close(side)
    for question, answer in (
        ("Name of the contract", "acme"),
        ("The provider's server", "https://api.acme.test"),
        ("Path of the status request", ""),
        ("Credential", "none"),
        ("Where an answer says the state", "body.job.state"),
        ("Documentation", ""),
        ("waiting", "queued, running"),
        ("succeeded", "done"),
        ("failed", ""),
        ("cancelled", ""),
    ):
        _until(main, question)
        os.write(main, f"{answer}\n".encode())
    assert process.wait(LIMIT_S) == 0
    os.close(main)
    text = (home / "providers" / "acme.toml").read_text()
    assert 'waiting     = ["queued", "running"]' in text
    assert 'value = "body.job.state"' in text
    assert 'url = "{base_url}/v1/jobs/{job_id}"' in text


def _until(handle: int, words: str) -> str:
    """What the terminal shows, until *words* came and nothing followed for a moment."""
    shown, end = "", time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        ready, _, _ = select.select([handle], [], [], 0.2)
        if ready:
            shown += os.read(handle, 4_096).decode("utf-8", "replace")
        elif words in shown:
            return shown
    raise AssertionError(f"{words!r} was not asked: {shown[-500:]}")
