"""The way in: usage errors, JSON errors, crashes, secrets, the environment; in this process."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pollconsole import bridge
from pollconsole.cli import credential, entry, errors, out
from pollconsole.cli.root import COMMANDS, root
from pollconsole.cli.wait import EXIT, NO_CORE, STILL_WAITING
from pollcore.facts import CredentialUnavailable, NotFound, Refused, Stale, StoreUnusable

CANARY = "canary-5f2c9e-secret"


@pytest.fixture
def no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that reaches the core is told that it is not there."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise StoreUnusable("no core in this test")

    monkeypatch.setattr(bridge, "with_core", refuse)
    monkeypatch.setattr(bridge, "missing_home", lambda _home: None)


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(bridge, "with_core", fail)
    monkeypatch.setattr(bridge, "missing_home", lambda _home: None)


@pytest.mark.parametrize("place", [["--json", "show", "op-1"], ["show", "--json", "op-1"], ["show", "op-1", "--json"]])
def test_json_may_stand_before_and_after_the_command(
    place: list[str], no_core: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(place) == 1
    assert json.loads(capsys.readouterr().out) == {
        "error": {"code": "store_unusable", "message": "no core in this test"}
    }


@pytest.mark.parametrize(
    "place", [["--home", "H", "show", "op"], ["show", "op", "--home", "H"], ["audit", "--home", "H", "show"]]
)
def test_the_home_may_stand_before_and_after_the_command(place: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    homes = []

    def note(home: Path | None, *_: Any, **__: Any) -> Any:
        homes.append(home)
        raise Refused("enough")

    monkeypatch.setattr(bridge, "with_core", note)
    monkeypatch.setattr(bridge, "missing_home", lambda _home: None)
    assert entry.run(place) == 2
    assert homes == [Path("H")]


@pytest.mark.parametrize(
    ("error", "exit_code", "code"),
    [
        (Refused("over the ceiling", code="over_limit", limit=12), 2, "over_limit"),
        (NotFound("no operation"), 2, "not_found"),
        (Stale("moved"), 2, "stale"),
        (StoreUnusable("disk full"), 1, "store_unusable"),
        (CredentialUnavailable("locked", "keyring_locked"), 1, "credential_unavailable"),
    ],
)
def test_errors_of_the_core_have_their_code_and_exit(
    error: Exception, exit_code: int, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, error)
    assert entry.run(["list", "--json"]) == exit_code
    captured = capsys.readouterr()
    told = json.loads(captured.out)["error"]
    assert (told["code"], told["message"]) == (code, str(error))
    assert captured.err.startswith(f"pollconsole: {error}")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["shwo"], "Did you mean 'show'?"),
        (["audit", "shw"], "Did you mean 'show'?"),
        (["submit", "--provdier", "x"], "--provider"),
        (["show"], "missing: OP"),
        (["submit"], "--provider NAME"),
        (["submit", "--provider", "a"], "--job-id ID"),
        (["submit", "--provider", "a", "--job-id", "j", "--param", "x"], "has no '='"),
        (["submit", "--provider", "a", "--job-id", "j", "--param", "x=1", "--param", "x=2"], "twice"),
        (["submit", "--provider", "a", "--job-id", "j", "--deadline", "soon"], "--deadline"),
        (["submit", "--provider", "a", "--job-id", "j", "--max-requests", "0"], "0 is below 1"),
        (["submit", "--file", "-", "--from-response", "-"], "both want standard input"),
        (["submit", "--file", "/nonexistent/f"], "cannot be read"),
        (["pause", "--provider", "p", "--until", "-1h"], "is negative"),
        (["list", "--since", "x"], "neither a span like 40m nor a time like"),
        (["submit", "--provider", "a", "--job-id", "a", "--job-id", "b"], "--job-id is there twice"),
        (["--home", "a", "list", "--home", "b"], "--home is there twice"),
        (["wait", "op", "--timeout", "-5m"], "is negative; a span is like 40m"),
        (["list", "--status", "odd"], "'waiting'"),
        (["pause", "--provider", "p", "--until", "2020-01-01T00:00:00"], "time without a zone"),
        (["close", "op"], "--because"),
        (["credential", "set", "é", "--origin", "https://x", "--kind", "bearer"], "1-64 letters"),
        (["credential", "set", "k", "--origin", "https://x", "--kind", "token"], "header:NAME"),
        (["credential", "mode", "k", "always"], "per_call"),
        (["--json"], "no --json"),
        (["--read-only", "list"], "belongs to the console"),
        (["demo", "--home", "x"], "leave --home out"),
    ],
)
def test_wrong_input_ends_with_two_and_words_that_help(
    argv: list[str], says: str, no_core: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(argv) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert "Traceback" not in captured.err


def every_command() -> list[list[str]]:
    context = click.Context(root)
    found = []
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None
        inner = command.list_commands(context) if isinstance(command, click.Group) else [None]
        found += [[name] if sub is None else [name, sub] for sub in inner]
    return found


@pytest.mark.parametrize("argv", every_command(), ids=" ".join)
def test_every_command_has_help_with_an_example_and_the_common_options(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run([*argv, "--help"]) == 0
    text = capsys.readouterr().out
    assert ("--home DIR" in text) == (argv != ["demo"])  # the demo refuses both, with a reason
    assert ("--json" in text) == (argv != ["demo"])
    assert "Examples:" in text
    assert f"pollconsole {' '.join(argv)}" in text.partition("Examples:")[2]


@pytest.mark.parametrize("argv", every_command(), ids=" ".join)
def test_every_help_begins_with_one_sentence_and_ends_with_the_exit_codes(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run([*argv, "--help"]) == 0
    parts = capsys.readouterr().out.split("\n\n")
    first = " ".join(parts[1].split())
    assert re.fullmatch(r"[^.]*(?:\.{1,3}[^ .][^.]*)*\.", first), first
    assert parts[-1].startswith("Exit codes:")
    for code in (0, 1, 2):
        assert re.search(rf"^ +{code} +\S", parts[-1], re.MULTILINE), code
    assert "130 interrupted" in parts[-1]
    for unit in ("SPAN", "TIME"):  # an option of such a value says nowhere else how it is written
        given = re.search(rf"^  --\S+ \S*{unit}\b", "\n\n".join(parts), re.MULTILINE)
        assert given is None or re.search(rf"^ +{unit} +\S", "\n\n".join(parts), re.MULTILINE), unit


@pytest.mark.parametrize("argv", every_command(), ids=" ".join)
def test_a_command_names_all_that_it_misses_at_once(
    argv: list[str], no_core: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = click.Context(root)
    command = root.get_command(context, argv[0])
    if isinstance(command, click.Group):
        command = command.get_command(context, argv[1])
    assert command is not None
    wanted = [
        param.make_metavar(context) if isinstance(param, click.Argument) else param.opts[0]
        for param in command.get_params(context)
        if param.required
    ]
    if not wanted:
        return
    assert entry.run(argv) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in wanted), said
    assert f"see: pollconsole {' '.join(argv)} --help" in said
    assert entry.run([*argv, "--help"]) == 0  # what is missing hides no help


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["submit"], ["--provider NAME", "--job-id ID"]),
        (["submit", "--provider", "acme"], ["--job-id ID"]),
        (["audit", "forget"], ["EPOCH, or --before", "--because TEXT"]),
        (["audit"], ["a command", "accept-loss", "verify"]),
        (["credential", "--json"], ["a command", "end-session"]),
        (["close", "op-1", "--json"], ["--because TEXT"]),
    ],
)
def test_what_only_the_command_itself_knows_to_be_missing_is_named_at_once_too(
    argv: list[str], names: list[str], no_core: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(argv) == 2
    captured = capsys.readouterr()
    assert all(name in captured.err for name in names)
    if "--json" in argv:
        assert json.loads(captured.out)["error"]["code"] == "usage"


@pytest.mark.parametrize("error", [StoreUnusable("the disk is full"), KeyboardInterrupt()])
def test_behind_a_part_of_a_document_no_second_one_is_printed(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        out.json_line({"event": "polled"})
        raise error

    monkeypatch.setattr(bridge, "with_core", fail)
    monkeypatch.setattr(bridge, "missing_home", lambda _home: None)
    assert entry.run(["audit", "show", "--follow", "--json"]) == (1 if isinstance(error, StoreUnusable) else 130)
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"event": "polled"}
    assert captured.err


def test_wrong_settings_are_told_with_the_home_that_they_lie_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.toml").write_text("[providers\n")
    assert entry.run(["list", "--home", str(tmp_path), "--json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["code"] == "config"
    assert f"in the home {tmp_path}; 'pollconsole doctor'" in captured.err


@pytest.mark.rule("G5")
def test_no_command_grants_or_approves() -> None:
    granting = {
        "approve",
        "grant",
        "extend",
        "approve-once",
        "approve-session",
        "resubmit",
        "adopt-contract",
        "check-once",
    }
    assert not granting & {word for argv in every_command() for word in argv}


def test_a_crash_is_one_line_with_a_reference_and_a_private_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        token = CANARY  # a local variable that must stay out of every trace
        raise KeyError(f"message with {token}\x1b[31m")

    monkeypatch.setattr(bridge, "with_core", fail)
    assert entry.run(["--home", str(tmp_path), "list", "--json"]) == 1
    captured = capsys.readouterr()
    reference = json.loads(captured.out)["error"]["reference"]
    (trace,) = (tmp_path / "crashes").iterdir()
    assert trace.name == f"{reference}.txt"
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600
    text = trace.read_text()
    assert " fail\n" in text
    assert "KeyError" in text
    assert captured.err.count("\n") == 1
    for place in (captured.out, captured.err, text):
        assert CANARY not in place


def test_a_crash_without_a_home_to_write_to_is_still_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, RuntimeError("x"))
    assert entry.run(["--home", "/dev/null/none", "list"]) == 1
    assert "could not be written" in capsys.readouterr().err


def test_a_crash_makes_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, RuntimeError("x"))
    assert entry.run(["--home", str(tmp_path / "none"), "list"]) == 1
    assert "could not be written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_console_hardens_its_process_before_a_screen_is_drawn(
    hardened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr("pollconsole.cli.screen.in_lines", lambda *_, **__: False)

    def draw(*_: Any) -> int:
        drawn.extend(hardened)
        return 0

    monkeypatch.setattr("pollconsole.app.run_console", draw)
    monkeypatch.setattr("pollconsole.app.run_demo", draw)
    assert (entry.run([]), entry.run(["demo"])) == (0, 0)
    assert drawn == ["hardened"] * 3


def test_the_help_names_every_exit_code_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    entry.run(["--help"])
    whole = capsys.readouterr().out
    for code in (0, errors.OUR_FAULT, errors.REFUSED, errors.INTERRUPTED, errors.READER_LEFT):
        assert re.search(rf"^ +{code} +\S", whole, re.MULTILINE), code
    for code in (*range(10, 16), *range(20, 27)):
        assert re.search(rf"  {code} +[a-z]", whole), code
    entry.run(["wait", "--help"])
    waiting = capsys.readouterr().out
    for code in {*EXIT.values(), STILL_WAITING, NO_CORE}:
        assert re.search(rf"^ +{code} +\S", waiting, re.MULTILINE), code
    assert "10 s for one to start" in waiting
    assert "does not end it" in " ".join(waiting.split())


def test_the_examples_of_lowering_have_reasons_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = set()
    for name in ("close", "hold", "reject", "deny", "request-extension"):
        entry.run([name, "--help"])
        text = capsys.readouterr().out
        reasons.add(re.search(r"--because '(.+)'", text.partition("Examples:")[2])[1])  # type: ignore[index]
        assert "--caller TEXT" in text
    assert len(reasons) == 5
    assert "provider show NAME" in text


def test_variables_that_press_keys_are_named_when_taken_away(no_core: None, capsys: pytest.CaptureFixture[str]) -> None:
    entry.run(["list"], scrubbed=("TEXTUAL_PRESS",))
    assert "ignored: TEXTUAL_PRESS" in capsys.readouterr().err


@pytest.mark.rule("G4")
@example("\x7f\x1b\x9b\u2028\ud800")
@given(st.text())
def test_json_of_any_text_is_printable_ascii_and_reads_back(text: str) -> None:
    stream = io.StringIO()
    real, sys.stdout = sys.stdout, stream
    try:
        out.document({"x": text})
    finally:
        sys.stdout = real
    printed = stream.getvalue()
    assert all(" " <= c <= "~" or c == "\n" for c in printed)
    assert json.loads(printed) == {"x": text}


@pytest.mark.rule("G4")
@example("\x7f\x1b\x9b\u2028\ud800")
@given(st.text())
def test_text_and_notes_carry_no_control_character(text: str) -> None:
    streams = io.StringIO(), io.StringIO()
    real = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = streams
    try:
        out.text(text)
        out.note(text)
    finally:
        sys.stdout, sys.stderr = real
    for stream in streams:
        assert all(c.isprintable() or c == "\n" for c in stream.getvalue() if not c.isspace())
        assert not {"\x1b", "\r", "\x9b", "\x00", "\x7f", "\u202e", "\u2028"} & set(stream.getvalue())


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.rule("K1")
def test_a_secret_comes_from_stdin_without_its_line_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (CANARY.encode(), CANARY.encode() + b"\n", CANARY.encode() + b"\r\n"):
        stdin(monkeypatch, data)
        assert credential.read_secret().reveal() == CANARY
    stdin(monkeypatch, b"one\ntwo\n")
    assert credential.read_secret(2).reveal() == "one\ntwo"


@pytest.mark.rule("K1")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"a\nb\n",
        CANARY.encode() + b"\xff",
        CANARY.encode() + b"\x1b",
        b" " + CANARY.encode(),
        CANARY.encode() * 60,
    ],
)
def test_an_unusable_secret_is_refused_without_a_word_of_it(
    data: bytes, monkeypatch: pytest.MonkeyPatch, no_core: None, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(monkeypatch, data)
    argv = ["credential", "set", "k", "--origin", "https://x.example", "--kind", "bearer", "--json"]
    assert entry.run(argv) == 2
    captured = capsys.readouterr()
    assert CANARY[:8] not in captured.out + captured.err


@pytest.mark.rule("K1")
def test_no_option_takes_a_secret_and_no_variable_is_read() -> None:
    words = ("secret", "token", "password", "value")
    for argv in every_command():
        command = root.get_command(click.Context(root), argv[0])
        if len(argv) == 2:
            assert isinstance(command, click.Group)
            command = command.get_command(click.Context(command), argv[1])
        assert command is not None
        for param in command.params:
            assert not param.envvar
            # the address that sells tokens is no token
            named = set(param.opts) - {"--token-url"}
            assert not [word for word in words if any(word in opt for opt in named)]


#: Everything but what takes the terminal, the network or this machine's keyring.
_SUBMIT = root.get_command(click.Context(root), "submit")
assert _SUBMIT is not None
SUBMIT_FLAGS = tuple(option.opts[0] for option in _SUBMIT.params)
HOSTILE = st.sampled_from(
    [
        *("\x1bP$qm\x1b\\", "\x1b[c", "\x9b2J", "\u202eecnac", "done\u200b", "a" * 70_000, "\x00", "\udcff", "\r"),
        *("[@click=app.quit]x", "[/foo]", "%s %n {0} {{7*7}}", "\n" * 10_000, '"; DROP', "=cmd|", "../../x", "CON"),
        *("-", "--", "0", "-1", "1e400", "nan", "٤", "10" * 3_000),
    ]
)


@pytest.mark.rule("B1", "S7")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(flags=st.lists(st.tuples(st.sampled_from(SUBMIT_FLAGS), HOSTILE | st.text(max_size=20)), max_size=6))
def test_hostile_flags_never_break_submit(
    flags: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, Refused("reached the core"))
    stdin(monkeypatch, b"{}")
    code = entry.run(["submit", *(part for pair in flags for part in pair)])
    captured = capsys.readouterr()
    assert code in (0, 2)
    assert "Traceback" not in captured.err
    for line in (captured.out + captured.err).split("\n"):
        assert line.isprintable() or not line.isascii() or not line


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    argv=st.lists(
        st.sampled_from([w for a in every_command() for w in a if w != "demo"]) | HOSTILE | st.text(max_size=12),
        max_size=6,
    )
)
def test_any_arguments_end_with_a_known_code(
    argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, StoreUnusable("no core"))
    stdin(monkeypatch, b"")
    monkeypatch.setattr("pollconsole.cli.doctor.opened", lambda *_: [])
    code = entry.run(["--home", os.devnull + "/none", *argv])
    assert code in (0, 1, 2)
    assert "a fault of ours" not in capsys.readouterr().err
