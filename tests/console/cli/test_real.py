"""The commands over a real home: store, contract, core and a provider on loopback; in processes of their own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.console.cli.conftest import HOSTILE
from tests.console.cli.test_commands import EVENT_FIELDS, SHOW_FIELDS
from tests.console.real import LIMIT_S, PROGRAM, STORY_TIME, Provider, environment, make_home
from tests.serving import serving

from pollconsole.cli import entry
from pollconsole.cli.handover import FIELDS


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """Job states by id, on loopback."""
    with serving(Provider()) as server:
        yield server


class Home:
    """One home and calls on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def call(self, *argv: str, code: int = 0) -> str:
        """Standard output of a call that must end with *code*; no stream may hold a control character."""
        done = subprocess.run(
            [*PROGRAM, "--home", str(self.folder), *argv], capture_output=True, timeout=LIMIT_S, env=environment()
        )
        assert done.returncode == code, done
        for stream in (done.stdout.decode(), done.stderr.decode()):
            assert not [c for c in stream if c != "\n" and not c.isprintable()], stream
        return done.stdout.decode()

    def json(self, *argv: str, code: int = 0) -> Any:
        return json.loads(self.call(*argv, "--json", code=code))


@pytest.fixture
def home(tmp_path: Path, provider: Provider) -> Iterator[Home]:
    """A home with a core running on it; the core ends on SIGTERM with its report."""
    folder = make_home(tmp_path / "home", provider.url)
    core = subprocess.Popen(
        [*PROGRAM, "--home", str(folder), "run", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        yield Home(folder)
        core.send_signal(signal.SIGTERM)
        out, err = core.communicate(timeout=LIMIT_S)
        assert core.returncode == 0, err
        assert json.loads(out)["run"]["sent"] >= 1
    finally:
        core.kill()
        core.wait(LIMIT_S)


@pytest.mark.rule("S4", "A2", "K4", "O5")
def test_a_job_is_handed_over_waited_for_and_its_result_fetched(home: Home, provider: Provider, tmp_path: Path) -> None:
    provider.states["job-7"] = "succeeded"
    shown = home.json("submit", "--provider", "lab", "--job-id", "job-7", "--deadline", "5m", "--id", "op-mine")
    assert SHOW_FIELDS - set(shown) == set()
    assert home.json("submit", "--provider", "lab", "--job-id", "job-7", "--deadline", "5m", "--id", "op-mine")[
        "existed"
    ]
    assert home.json("wait", "op-mine", "--timeout", "60s")["status"] == "succeeded"
    assert "sig=presigned" not in home.call("show", "op-mine") + home.call("result", "op-mine")
    assert "sig=presigned" in home.call("result", "op-mine", "--reveal")
    target = tmp_path / "result.json"
    home.call("fetch", "op-mine", "--to", str(target))
    assert json.loads(target.read_text()) == {"answer": 42}
    lines = home.call("audit", "show", "op-mine").split("\n")
    assert re.match(rf"{STORY_TIME} submitted job job-7, deadline {STORY_TIME}, budget 25", lines[0])
    events = home.json("audit", "show", "op-mine")["events"]
    assert EVENT_FIELDS - set(events[0]) == set()
    assert "result_revealed" in {event["event"] for event in events}
    report = home.json("report")
    assert (report["ended"], report["contradictions"]) == (1, [])


@pytest.mark.rule("S2", "G4", "G5", "E7")
def test_a_hostile_unknown_state_asks_a_human_and_reaches_no_output_raw(home: Home, provider: Provider) -> None:
    provider.states["job-8"] = HOSTILE
    home.call("submit", "--provider", "lab", "--job-id", "job-8", "--id", "op-odd")
    assert home.json("wait", "op-odd", "--timeout", "60s", code=10)["stop_reason"] == "unknown_state"
    assert home.json("show", "op-odd")["last_known_state"] == HOSTILE
    asked = home.json("escalations")["escalations"]
    assert [question["reason"] for question in asked] == ["unknown_state"]
    assert {"close", "hold"} <= {choice["kind"] for choice in asked[0]["choices"]}
    assert home.call("escalations").startswith("External job needs a decision\nOperation: op-odd\n")
    assert "op-odd" in home.call("list")
    assert "op-odd" in home.call("audit", "show")
    refused = home.json("request-extension", "op-odd", "--minutes", "15", "--checks", "4", "--because", "x", code=2)
    assert refused["error"]["message"]
    assert home.json("close", "op-odd", "--because", "nobody needs it")["status"] == "closed"
    assert home.json("wait", "op-odd", code=14)["status"] == "closed"


@pytest.mark.rule("B1", "S7")
def test_what_the_contract_does_not_permit_is_refused_with_the_limits_name(home: Home, provider: Provider) -> None:
    provider.states["job-9"] = "succeeded"
    over = home.json("submit", "--provider", "lab", "--job-id", "job-9", "--max-requests", "201", code=2)["error"]
    assert "200" in over["message"]
    near = home.json("submit", "--provider", "quik", "--job-id", "job-9", code=2)["error"]
    assert "quick" in near["message"]
    provider.states["job-10"] = "running"
    home.call("submit", "--provider", "lab", "--job-id", "job-10", "--id", "op-first")
    again = home.json("submit", "--provider", "lab", "--job-id", "job-10", code=2)["error"]
    assert (again["code"], again["operation_id"]) == ("duplicate_job", "op-first")
    held = home.json("hold", "op-first", "--because", "the provider asked us to")
    assert held["status"] == "held"
    home.call("submit", "--provider", "lab", "--job-id", "job-9", "--id", "op-last")
    home.call("wait", "op-last", "--timeout", "60s")


@pytest.mark.rule("H1", "S3")
def test_a_saved_response_gives_the_job_and_explain_says_how_it_is_read(tmp_path: Path, provider: Provider) -> None:
    home = Home(make_home(tmp_path / "home", provider.url))
    saved = tmp_path / "saved.txt"
    saved.write_bytes(
        b'HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\n\r\n{"id": "job-11", "status": "queued"}'
    )
    url = f"{provider.url}/v1/jobs"
    shown = home.json("submit", "--provider", "lab", "--from-response", str(saved), "--response-url", url)
    assert (shown["provider_job_id"], shown["status_requests_used"]) == ("job-11", 0)
    told = home.json("provider", "explain", "lab", "--response", str(saved), "--job-id", "job-11")
    assert (told["observation"]["state"], told["decision"]["decision"]) == ("queued", "wait")
    odd = saved.read_bytes().replace(b"queued", b"quued")
    saved.write_bytes(odd)
    told = home.json("provider", "explain", "lab", "--response", str(saved), "--job-id", "job-11")
    assert (told["decision"]["reason"], told["observation"]["near_match"]) == ("unknown_state", "queued")


@pytest.mark.rule("O8")
def test_without_a_core_wait_has_its_own_code(tmp_path: Path, provider: Provider) -> None:
    home = Home(make_home(tmp_path / "home", provider.url))
    home.call("submit", "--provider", "lab", "--job-id", "job-12", "--id", "op-1")
    assert home.json("wait", "op-1", "--timeout", "0s", code=15)["status"] == "waiting"


@pytest.mark.rule("O8")
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_a_core_that_ended_is_missed_at_once_though_its_heartbeat_is_fresh(
    tmp_path: Path, provider: Provider, signal_number: int
) -> None:
    home = Home(make_home(tmp_path / "home", provider.url))
    home.call("submit", "--provider", "lab", "--job-id", "job-13", "--id", "op-1")
    with subprocess.Popen(
        [*PROGRAM, "run", "--home", str(home.folder)], stderr=subprocess.DEVNULL, env=environment()
    ) as core:
        try:
            end = time.monotonic() + LIMIT_S
            while not home.json("handover")["handover"]["core"]["runs"]:
                assert time.monotonic() < end, "it gives no sign of life"
            assert home.json("wait", "op-1", "--timeout", "1s", code=13)["status"] == "waiting"
        finally:
            core.send_signal(signal_number)
            core.wait(LIMIT_S)
    assert home.json("wait", "op-1", "--timeout", "0s", code=15)["next"].startswith("No core is running")
    assert home.json("handover")["handover"]["core"]["runs"] is False


def test_operations_and_providers_of_the_home_are_completed(tmp_path: Path, provider: Provider) -> None:
    home = Home(make_home(tmp_path / "home", provider.url))
    home.call("submit", "--provider", "lab", "--job-id", "job-15", "--id", "op-mine")
    for words, offered in (("show op-", b"plain,op-mine\n"), ("pause --provider la", b"plain,lab\n")):
        line = f"pollconsole --home {home.folder} {words}"
        more = {"_POLLCONSOLE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        done = subprocess.run(PROGRAM, capture_output=True, timeout=LIMIT_S, env={**environment(), **more})
        assert (done.stdout, done.stderr) == (offered, b"")


def test_contracts_are_listed_checked_and_shown(tmp_path: Path, provider: Provider) -> None:
    home = Home(make_home(tmp_path / "home", provider.url))
    names = {view["name"]: view for view in home.json("provider", "list")["providers"]}
    assert names["lab"]["source"] == "config.toml"
    assert names["quick"]["source"].endswith("quick.toml")
    assert names["example-jobs"]["source"] == "shipped"
    assert home.json("provider", "show", "lab")["base_url"] == provider.url
    file = home.folder / "providers" / "quick.toml"
    assert home.json("provider", "check", str(file))["contract"] == "quick"
    file.write_text(file.read_text().replace("[schedule]", "[schedul]"))
    assert "quick.toml" in home.json("provider", "check", str(file), code=2)["error"]["message"]


def test_reading_commands_import_neither_network_nor_screen_nor_keyring(tmp_path: Path, provider: Provider) -> None:
    home = Home(make_home(tmp_path / "home", provider.url))
    home.call("submit", "--provider", "lab", "--job-id", "job-13", "--id", "op-1")
    for argv in (["show", "op-1"], ["list"], ["audit", "show"], ["submit", "--provider", "lab", "--job-id", "job-14"]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "pollconsole", "--home", str(home.folder), *argv],
            capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
        )  # fmt: skip
        assert done.returncode == 0
        names = set(re.findall(r"\| +([a-z0-9_]+)(?:\.\S+)?$", done.stderr, re.MULTILINE))
        assert names & {"sqlite3", "pysqlite3"}
        assert names & {"textual", "rich", "httpx", "httpcore", "keyring", "sqlite_utils"} == set()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.rule("B1", "S7")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    job=st.text(max_size=20),
    more=st.dictionaries(
        st.sampled_from([field for field in FIELDS if field not in ("provider", "job_id")]),
        json_values | st.sampled_from(["40m", "2999-01-01T00:00:00Z", "https://127.0.0.1/x", HOSTILE, 12, 10**9]),
        max_size=4,
    ),
)
def test_hostile_files_never_break_a_real_submission(
    job: str, more: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "home"
    if not folder.exists():
        make_home(folder, "http://127.0.0.1:9")
    file = tmp_path / "submission.json"
    file.write_text(json.dumps({"provider": "lab", "job_id": job, **more}))
    code = entry.run(["--home", str(folder), "submit", "--file", str(file), "--json"])
    captured = capsys.readouterr()
    assert code in (0, 2), captured.err
    document = json.loads(captured.out)
    assert ("error" in document) == (code == 2)
    assert captured.out.isascii()
