"""Planted secrets of every kind of credential go through real processes, and are found nowhere; a word that is no
secret goes the same way, and is found wherever people and files show it: so the search looks there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trust import canary, journey
from tests.trust.canary import ECHOES, Search
from tests.trust.echo import Provider
from tests.trust.life import Life
from tests.trust.planted import CONTRACTS
from tests.trust.watching import PROC, Watch

pytestmark = [
    pytest.mark.rule("K1", "K4"),
    pytest.mark.slow,
    pytest.mark.skipif(not PROC.exists(), reason="arguments and environments of processes are read in Linux's /proc"),
]

#: Places that may hold a pre-signed link or a cookie of the provider: sealed, for the one who is allowed to fetch (K4).
SEALED = frozenset({"sealed values"})
OF_THE_PROVIDER = frozenset({"cookie", "signed link"})
#: Places that show what a provider said or a caller wrote, so that the control must be found there.
SHOWN = (
    *("submit", "list", "show", "show --json", "escalations", "audit show", "audit show --json", "plain"),
    *("terminal", "svg", "clipboard.txt", "exports", "database", "wal", "database rows", "audit plaintext", "crashes"),
    "sealed values",
)
#: Places that show nothing of it; that they are searched is shown by planting.
QUIET = (
    *("run", "result", "fetch", "working folder", "report", "report --json", "credential list", "provider list"),
    *("doctor", "audit verify", "audit export", "export", "audit new-keys", "archive", "archive file"),
    *("crash of a widget", "crash of a command", "crash aside", "abort", "config.toml", "ui.json", "shm"),
)
LIMIT_S = 60
OF_SECRETS = ("credential set", "credential mode", "refused keyring", "refused secret")


@pytest.fixture(scope="module")
def with_secrets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Life, Provider, Search, Watch]:
    """The life with every kind of credential."""
    search, watch = Search(), Watch()
    life, provider = journey.with_secrets(tmp_path_factory.mktemp("secrets"), search, watch)
    return life, provider, search, watch


def test_no_secret_is_found_in_any_place(with_secrets: tuple[Life, Provider, Search, Watch]) -> None:
    life, _, search, watch = with_secrets
    found = {}
    for place, data in life.places.items():
        hits = search.found(bytes(data))
        if place in SEALED:
            hits = [hit for hit in hits if hit.partition(" (")[0] not in OF_THE_PROVIDER]
        if hits:
            found[place] = hits
    for place, seen in (("arguments", watch.argv), ("environments", watch.environ)):
        if hits := search.found(b"\n".join(seen)):
            found[place] = hits
    assert found == {}
    assert {*SHOWN, *QUIET, *OF_SECRETS} <= set(life.places)


def test_every_secret_really_was_on_its_way_and_came_back(
    with_secrets: tuple[Life, Provider, Search, Watch],
) -> None:
    life, provider, search, watch = with_secrets
    asked = {job.partition("-")[0] for job in provider.seen}
    # `refused` buys no token, `session` was never approved
    assert asked == set(CONTRACTS) - {"refused", "session"}
    assert {"oauth2 seller", "refresh seller", "google seller", "app seller", "refused seller"} <= set(
        provider.credentials
    )
    for kind, texts in provider.echoed.items():
        if kind in asked and kind != "sigv4":
            sent = provider.credentials[kind].encode()
            needles = [needle for text in texts for form in canary.forms(text).values() for needle in form]
            assert any(needle in sent for needle in needles), kind
    assert "AWS4-HMAC-SHA256" in provider.credentials["sigv4"]
    # what came back is there, masked
    shown = bytes(life.places["audit show --json"]) + bytes(life.places["escalations"])
    assert shown.count(b"******") > len(CONTRACTS)
    assert len(search.texts) > 30
    assert len(watch.looked_at) > 20


def test_no_process_left_a_core_file_and_traces_hold_frames_alone(
    with_secrets: tuple[Life, Provider, Search, Watch],
) -> None:
    life, *_ = with_secrets
    assert [path.name for path in life.work.rglob("*") if "core" in path.name.split(".")] == []
    told = bytes(life.places["abort"])
    assert b"Fatal Python error: Aborted" in told
    assert b"Current thread" in told
    for place in ("crash of a widget", "crash of a command"):
        assert b"reference" in life.places[place]
    # a task that nobody awaited, a thread and a finaliser were told, masked
    assert bytes(life.places["crash aside"]).count(b"RuntimeError") >= 3
    assert b"******" in life.places["crash aside"]


def test_a_word_that_is_no_secret_is_found_in_every_place_that_shows_something(tmp_path: Path) -> None:
    search, watch = Search(), Watch()
    word = search.add("word", canary.value("control"))
    life, _ = journey.without_secrets(tmp_path, word, search, watch)
    missed = [place for place in SHOWN if not any("word" in hit for hit in search.found(bytes(life.places[place])))]
    assert missed == []
    assert search.found(b"\n".join(watch.argv)), "it was the label of a submission"
    for place in QUIET:
        data = bytes(life.places[place])
        middle = len(data) // 2
        assert search.found(data[:middle] + word.encode() + data[middle:]), place


# --- the search itself ------------------------------------------------------------------------------------------------


@given(
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
    odd=st.text("+/=&%\"'<>\\ ~;:@", max_size=6),
    form=st.sampled_from(sorted(ECHOES)),
)
def test_the_search_finds_every_form_that_a_provider_sends(before: bytes, after: bytes, odd: str, form: str) -> None:
    search = Search()
    text = search.add("it", canary.value("search", odd))
    assert search.found(before + ECHOES[form](text).encode() + after)
    assert search.found(before + json.dumps({"x": ECHOES[form](text)}).encode() + after)
    assert search.found(before + after) == []


def test_the_watch_finds_a_secret_in_arguments_and_in_the_environment_of_a_grandchild(tmp_path: Path) -> None:
    search = Search()
    told = search.add("argument", canary.value("argument", "")), search.add("variable", canary.value("variable", ""))
    # the script itself comes on standard input, so that only the grandchild's own line holds the words
    lives = "import pathlib, time\nwhile not pathlib.Path('seen').exists(): time.sleep(0.05)"
    script = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {lives!r}, {told[0]!r}], env={{"A": {told[1]!r}}}, check=True)
"""
    watch = Watch()

    def seen() -> list[str]:
        kept = b"\n".join([*watch.argv, *watch.environ])  # copies: the watch goes on
        return [hit.partition(" (")[0] for hit in search.found(kept)]

    with watch, subprocess.Popen([sys.executable, "-"], stdin=subprocess.PIPE, cwd=tmp_path) as child:
        try:
            assert child.stdin is not None
            child.stdin.write(script.encode())
            child.stdin.close()
            end = time.monotonic() + LIMIT_S
            while set(seen()) != {"argument", "variable"}:
                assert time.monotonic() < end, seen()
                time.sleep(0.05)
        finally:
            (tmp_path / "seen").touch()
            child.wait(LIMIT_S)
    assert child.returncode == 0


def test_each_wall_that_is_taken_away_lets_a_secret_be_found(tmp_path: Path) -> None:
    """The masks of what comes back, of traces and of loggers: without each of them the search has a find."""
    search = Search()
    secret = search.add("it", canary.value("wall"))
    code = f"""
import asyncio, logging, sys
from pathlib import Path
from pollcore.adapters import quiet, scrub
from pollcore.adapters.pinned import PinnedSecret
secret = PinnedSecret({secret!r}, ())
held = secret.scrubber
if sys.argv[1] == "scrubber":
    scrub.Scrubber.text = lambda self, text: text
    scrub.Scrubber.bytes = lambda self, data: data
body = held.bytes(b'{{"echo": "' + secret.reveal().encode() + b'"}}')
sys.stdout.buffer.write(body)
if sys.argv[1] != "hooks":
    quiet.install_hooks()
if sys.argv[1] != "loggers":
    quiet.hush_loggers()
logging.basicConfig(level=logging.DEBUG)
logging.getLogger("httpx").info("GET https://h.example/p?key=" + secret.reveal())
raise RuntimeError("no luck with " + secret.reveal())
"""
    found = {}
    for wall in ("none", "scrubber", "hooks", "loggers"):
        done = subprocess.run([sys.executable, "-", wall], input=code.encode(), capture_output=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})  # fmt: skip
        found[wall] = bool(search.found(done.stdout + done.stderr))
    assert found == {"none": False, "scrubber": True, "hooks": True, "loggers": True}
