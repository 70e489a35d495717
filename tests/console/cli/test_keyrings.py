"""The command line where a keyring is, and where none is: what is said first, and when a home's audit begins."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.console.cli.conftest import Outcome

from pollconsole.bridge.chain_views import chain_state
from pollcore.adapters import keyring_store
from pollcore.adapters.keyring_store import MemoryBackend, way_out
from pollcore.assembly import open_core
from pollcore.facts import CredentialUnavailable, StopDetail

Call = Callable[..., Outcome]
STORE = ("credential", "set", "kex", "--origin", "https://api.acme.example", "--kind", "bearer")


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> MemoryBackend:
    """One keyring for every command of the test."""
    backend = MemoryBackend()
    monkeypatch.setattr(keyring_store, "choose_backend", lambda named=None: backend)
    return backend


@pytest.fixture
def none(monkeypatch: pytest.MonkeyPatch) -> str:
    """No keyring on this machine; the way out that is told."""
    told = way_out(StopDetail.KEYRING_ABSENT)

    def choose(named: str | None = None) -> Any:
        raise CredentialUnavailable(f"no usable keyring on this machine: {told}", StopDetail.KEYRING_ABSENT)

    monkeypatch.setattr(keyring_store, "choose_backend", choose)
    return told


def stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"sk-canary\n")))


def chain(home: Path) -> Any:
    async def body() -> Any:
        async with open_core(home) as core:
            await core.audit.load(core.store)
            return await chain_state(core), len(await core.store.events())

    return asyncio.run(body())


# --- no keyring -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("K2")
@pytest.mark.parametrize("begun", [False, True])
def test_where_no_keyring_is_a_credential_that_nobody_stored_names_that_first(
    begun: bool, none: str, real_home: Path, call: Call
) -> None:
    home = ("--home", str(real_home))
    if begun:
        assert call("submit", *home, "--provider", "lab", "--job-id", "first").code == 0
    asked = ["provider", "try", "lab", "--job-id", "j", "--credential", "nope", *home]
    for argv in (asked, ["submit", "--provider", *asked[2:]]):
        done = call(*argv, "--json")
        assert (done.code, done.json["error"]["code"]) == (2, "credential")
        said = done.json["error"]["message"]
        assert said.startswith("--credential nope: no usable keyring on this machine: ")
        assert none in said
        assert said.endswith("pollconsole credential set nope --origin URL --kind KIND")


@pytest.mark.rule("K2", "A4")
def test_where_no_keyring_is_a_refused_secret_begins_no_home_with_keys_in_files(
    none: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    home = tmp_path / "home"
    stdin(monkeypatch)
    done = call(*STORE, "--home", str(home))
    assert (done.code, none in done.err) == (1, True)
    assert list(home.glob("reading.key*")) == []
    assert not chain(home)[0].begun


# --- a keyring --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("S7", "K3")
def test_with_a_keyring_a_credential_that_nobody_stored_is_said_to_be_none(
    keyring: MemoryBackend, real_home: Path, call: Call
) -> None:
    home = ("--home", str(real_home))
    done = call("submit", *home, "--provider", "lab", "--job-id", "j", "--credential", "nope", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "credential")
    assert "no credential of that name is stored" in done.err
    assert call("list", *home, "--json").json["operations"] == []


@pytest.mark.rule("A3", "A4")
def test_the_first_secret_of_a_new_home_begins_its_audit_before_anything_is_recorded(
    keyring: MemoryBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    home = tmp_path / "home"
    stdin(monkeypatch)
    done = call(*STORE, "--home", str(home))
    assert done.code == 0, done.err
    found, events = chain(home)
    assert (found.begun, found.events_before) == (True, 0)
    assert events > 0
    assert list(home.glob("reading.key*")) == []


@pytest.mark.rule("A4")
def test_a_secret_that_is_refused_makes_no_keys(
    keyring: MemoryBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    home = tmp_path / "home"
    stdin(monkeypatch)
    done = call(*STORE[:-1], "basic", "--home", str(home))
    assert (done.code, "user:password" in done.err) == (2, True)
    assert not chain(home)[0].begun
