"""Credentials: pinned to origins, cached briefly, rotation noticed; the operations behind `credential ...`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from keyring.errors import KeyringLocked, NoKeyringError

from pollcore.adapters.credential_ops import (
    change_mode,
    check_kind,
    list_credentials,
    remove_credential,
    set_credential,
)
from pollcore.adapters.credentials import CACHE_MS, KeyringCredentials, MemoryMeta, entry_name
from pollcore.adapters.keyring_store import MemoryBackend, Vault, way_out
from pollcore.adapters.pinned import PinnedSecret
from pollcore.facts import (
    BootMs,
    CredentialMode,
    CredentialUnavailable,
    Instant,
    Moment,
    NotFound,
    Refused,
    Secret,
    Stale,
    StopDetail,
)
from pollcore.ports import Credentials
from tests.adapters.keyrings import Counting, Failing, Hanging

VALUE = "sk-canary-cred-1"
LIMIT_S = 30
ORIGIN = "https://api.acme.com"


class Hand:
    """A clock that moves by hand."""

    def __init__(self) -> None:
        self.ms = 1_000

    def now(self) -> Moment:
        return Moment(Instant(10**12 + self.ms), BootMs(self.ms), "boot")

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        self.ms += ms


class Stage:
    """A vault, its metadata and the credentials over them."""

    def __init__(self, home: Path, backend: Any) -> None:
        self.clock = Hand()
        self.backend = backend
        self.vault = Vault(home, backend=backend, limit_s=10)
        self.meta = MemoryMeta()
        self.credentials = KeyringCredentials(self.vault, self.meta, self.clock)

    async def set(self, **changed: Any) -> Any:
        given: dict[str, Any] = {"name": "acme", "kind": "bearer", "origins": [ORIGIN], "secret": Secret(VALUE)}
        return await set_credential(self.vault, self.meta, now=self.clock.now().wall, **{**given, **changed})


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.server("keyring"))])
async def stage(request: pytest.FixtureRequest, home: Path) -> AsyncIterator[Stage]:
    made = Stage(home, MemoryBackend() if request.param == "memory" else None)
    yield made
    for info in await made.meta.list():
        made.vault.delete(entry_name(info))
    made.vault.delete("digest-key")


@pytest.fixture
def counting(home: Path) -> Stage:
    return Stage(home, Counting())


@pytest.mark.rule("K1", "K3", "K5")
async def test_what_was_set_is_read_with_its_pins_and_a_digest(stage: Stage) -> None:
    port: Credentials = stage.credentials
    info = await stage.set(origins=["https://API.acme.com/", "https://eu.acme.com:8443"])
    read = await port.read("acme")
    assert isinstance(read.secret, PinnedSecret)
    assert read.secret.reveal() == VALUE
    assert read.secret.origins == info.origins == ("https://api.acme.com:443", "https://eu.acme.com:8443")
    assert read.digest == await port.digest("acme")
    assert VALUE not in repr(read) + repr(info) + read.digest
    assert [known.name for known in await port.known()] == ["acme"]
    assert (await list_credentials(stage.meta))[0].last_used_at == stage.clock.now().wall


@pytest.mark.rule("K5")
async def test_a_rotated_secret_has_another_digest_and_the_same_one_has_the_same(stage: Stage) -> None:
    await stage.set()
    first = await stage.credentials.digest("acme")
    stage.clock.ms += 1
    await stage.set()
    assert await stage.credentials.digest("acme") == first
    stage.clock.ms += 1
    await stage.set(secret=Secret("sk-canary-cred-2"))
    assert (await stage.credentials.read("acme")).secret.reveal() == "sk-canary-cred-2"
    assert await stage.credentials.digest("acme") != first
    again = KeyringCredentials(stage.vault, stage.meta, stage.clock)
    assert await again.digest("acme") == await stage.credentials.digest("acme")


@pytest.mark.rule("K5")
async def test_digests_of_two_homes_cannot_be_compared(tmp_path: Path) -> None:
    digests = set()
    for name in ("a", "b"):
        stage = Stage(tmp_path / name, MemoryBackend())
        await stage.set()
        digests.add(await stage.credentials.digest("acme"))
    assert len(digests) == 2


@pytest.mark.rule("K3")
async def test_a_secret_is_not_found_under_other_origins_whatever_the_metadata_says(stage: Stage) -> None:
    info = await stage.set()
    await stage.credentials.read("acme")
    for change in ({"origins": ("https://evil.example:443",)}, {"kind": "query", "names": ("k",)}):
        await stage.meta.put(msgspec.structs.replace(info, **change), await stage.meta.get("acme"))
        with pytest.raises(CredentialUnavailable) as caught:
            await stage.credentials.read("acme")
        assert caught.value.detail == "credential_missing"
    await stage.meta.put(info, await stage.meta.get("acme"))


@pytest.mark.rule("K3")
async def test_changing_an_origin_demands_the_secret_again_and_drops_the_former_entry(stage: Stage) -> None:
    former = await stage.set()
    with pytest.raises(Refused, match="enter the secret again"):
        await stage.set(origins=["https://new.acme.com"], secret=None)
    with pytest.raises(Refused, match="enter the secret again"):
        await stage.set(secret=None)
    assert (await stage.credentials.read("acme")).info.origins == former.origins
    await stage.set(origins=["https://new.acme.com"], secret=Secret("sk-canary-new-1"))
    assert stage.vault.get(entry_name(former)) == (None,)
    assert (await stage.credentials.read("acme")).secret.reveal() == "sk-canary-new-1"


@pytest.mark.rule("K2")
async def test_a_removed_credential_is_missing_and_its_entry_gone(stage: Stage) -> None:
    info = await stage.set()
    await remove_credential(stage.vault, stage.meta, "acme")
    assert stage.vault.get(entry_name(info)) == (None,)
    with pytest.raises(CredentialUnavailable, match="pollconsole credential set acme") as caught:
        await stage.credentials.read("acme")
    assert caught.value.detail == "credential_missing"
    with pytest.raises(NotFound):
        await remove_credential(stage.vault, stage.meta, "acme")


@pytest.mark.rule("K2")
async def test_where_no_keyring_is_that_is_named_before_the_credential_that_nobody_stored(home: Path) -> None:
    stage = Stage(home, Failing(NoKeyringError()))
    for ask in (stage.credentials.info, stage.credentials.read, stage.credentials.digest):
        with pytest.raises(CredentialUnavailable) as caught:
            await ask("acme")
        assert caught.value.detail == "keyring_absent"
        assert str(caught.value).startswith("the keyring failed")
        assert way_out(StopDetail.KEYRING_ABSENT) in str(caught.value)
        assert str(caught.value).endswith("pollconsole credential set acme --origin URL --kind KIND")
    for error in (None, KeyringLocked()):
        stage.backend.error = error
        with pytest.raises(CredentialUnavailable, match=r"^no credential acme") as caught:
            await stage.credentials.info("acme")
        assert caught.value.detail == "credential_missing"


@pytest.mark.rule("K2")
async def test_a_locked_keyring_removes_nothing(home: Path) -> None:
    stage = Stage(home, Failing(None))
    await stage.set()
    stage.backend.error = OSError()
    with pytest.raises(CredentialUnavailable):
        await remove_credential(stage.vault, stage.meta, "acme")
    assert len(await stage.meta.list()) == 1


async def test_an_unknown_name_is_told_with_its_neighbours(stage: Stage) -> None:
    await stage.set()
    with pytest.raises(NotFound, match="near: acme"):
        await change_mode(stage.meta, "acm", CredentialMode.PER_CALL)


@pytest.mark.rule("K1")
async def test_a_read_secret_is_kept_for_a_minute_at_most(counting: Stage) -> None:
    await counting.set()
    await counting.credentials.read("acme")
    once = counting.backend.reads
    for _ in range(50):
        await counting.credentials.read("acme")
    assert counting.backend.reads == once
    counting.clock.ms += CACHE_MS
    await counting.credentials.read("acme")
    assert counting.backend.reads > once


@pytest.mark.rule("K1", "H3")
async def test_a_forgotten_secret_and_a_digest_are_read_afresh(counting: Stage) -> None:
    info = await counting.set()
    before = (await counting.credentials.read("acme")).digest
    counting.backend.set_password(counting.vault.service, entry_name(info), "changed-by-hand")
    assert (await counting.credentials.read("acme")).digest == before
    assert await counting.credentials.digest("acme") != before
    assert (await counting.credentials.read("acme")).secret.reveal() == "changed-by-hand"
    reads = counting.backend.reads
    counting.credentials.forget("acme")
    await counting.credentials.read("acme")
    assert counting.backend.reads > reads


@pytest.mark.rule("K2")
async def test_many_who_ask_at_once_cost_one_read(counting: Stage) -> None:
    await counting.set()
    await counting.credentials.digest("acme")
    counting.credentials.forget()
    before = counting.backend.reads
    values = await asyncio.gather(*(counting.credentials.read("acme") for _ in range(300)))
    assert {value.secret.reveal() for value in values} == {VALUE}
    assert counting.backend.reads - before == 2


@pytest.mark.rule("K2")
async def test_one_who_stops_waiting_does_not_end_the_others_read(home: Path) -> None:
    backend = Hanging()
    backend.go_on.set()
    stage = Stage(home, backend)
    await stage.set()
    backend.go_on.clear()
    backend.asked.clear()
    first, second = (asyncio.create_task(stage.credentials.read("acme")) for _ in range(2))
    assert await asyncio.to_thread(backend.asked.wait, LIMIT_S), "one of them reads"
    first.cancel()
    backend.go_on.set()
    assert (await asyncio.wait_for(second, LIMIT_S)).secret.reveal() == VALUE
    assert first.cancelled() or first.cancelling()


@pytest.mark.rule("G6", "K2")
async def test_mode_and_use_are_fresh_although_the_secret_is_kept(counting: Stage) -> None:
    await counting.set()
    assert (await counting.credentials.read("acme")).info.mode is CredentialMode.STANDING
    await change_mode(counting.meta, "acme", CredentialMode.PER_CALL)
    assert (await counting.credentials.read("acme")).info.mode is CredentialMode.PER_CALL


@pytest.mark.rule("G2", "G6")
@pytest.mark.parametrize(
    ("now", "then", "is_free"),
    [
        ("standing", "per_session", True),
        ("standing", "per_call", True),
        ("per_session", "per_call", True),
        ("per_call", "per_call", True),
        ("per_call", "per_session", False),
        ("per_call", "standing", False),
        ("per_session", "standing", False),
    ],
)
async def test_a_mode_is_free_towards_per_call_only(now: str, then: str, is_free: bool, home: Path) -> None:
    stage = Stage(home, MemoryBackend())
    await stage.set()
    await change_mode(stage.meta, "acme", CredentialMode(now))
    if is_free:
        assert (await change_mode(stage.meta, "acme", CredentialMode(then))).mode == then
        return
    with pytest.raises(Refused) as caught:
        await change_mode(stage.meta, "acme", CredentialMode(then))
    assert caught.value.code == "mode_needs_grant"
    assert (await stage.credentials.read("acme")).info.mode == now


@pytest.mark.rule("G2")
async def test_setting_a_credential_anew_keeps_its_mode(stage: Stage) -> None:
    await stage.set()
    await change_mode(stage.meta, "acme", CredentialMode.PER_CALL)
    assert (await stage.set(origins=["https://new.acme.com"])).mode is CredentialMode.PER_CALL
    assert (await stage.set(kind="basic", secret=Secret("me:" + VALUE))).mode is CredentialMode.PER_CALL


@pytest.mark.rule("G2")
async def test_removing_a_credential_and_setting_it_anew_is_no_way_around_its_mode(stage: Stage) -> None:
    await stage.set()
    await change_mode(stage.meta, "acme", CredentialMode.PER_CALL)
    for _ in range(2):
        await remove_credential(stage.vault, stage.meta, "acme")
        assert (await stage.set(origins=["https://new.acme.com"])).mode is CredentialMode.PER_CALL
    assert (await stage.set(name="other")).mode is CredentialMode.STANDING


@pytest.mark.rule("G2")
async def test_a_secret_that_is_being_set_does_not_write_over_a_stricter_mode(stage: Stage) -> None:
    await stage.set()
    read = stage.meta.get

    async def get(name: str) -> Any:
        found = await read(name)
        stage.meta.get = read
        await change_mode(stage.meta, "acme", CredentialMode.PER_CALL)
        return found

    stage.meta.get = get
    with pytest.raises(Stale):
        await stage.set()
    assert (await stage.credentials.read("acme")).info.mode is CredentialMode.PER_CALL


@pytest.mark.rule("K5")
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("bearer", ()),
        ("basic", ()),
        ("header", ("X-Api-Key",)),
        ("header", ("X-Id", "X-Key")),
        ("query", ("api_key",)),
    ],
)
def test_kinds_that_a_request_can_carry_are_taken(kind: str, names: tuple[str, ...]) -> None:
    check_kind(kind, names)
    with pytest.raises(Refused):
        check_kind(kind, (*names, "a", "b", "c"))


@pytest.mark.rule("K5")
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        *(("", ()), ("none", ()), ("Bearer", ()), ("bearer", ("x",)), ("header", ()), ("header", ("",))),
        *(("header", ("a b",)), ("header", ("A", "B", "C")), ("header", ("A", "a")), ("header", ("Host",))),
        *(("query", ()), ("query", ("a", "b")), ("query", ("a=b",)), ("header", ("X\r\nY",))),
        ("header", ("Content-Length",)),
    ],
)
def test_kinds_that_cannot_be_sent_are_refused(kind: str, names: tuple[str, ...]) -> None:
    with pytest.raises(Refused):
        check_kind(kind, names)


@pytest.mark.rule("K1", "K3")
@pytest.mark.parametrize(
    "changed",
    [
        {"name": "\u0430cme"},
        {"name": "../x"},
        {"name": ""},
        {"origins": []},
        {"origins": ["https://api.acme.com/v1"]},
        {"origins": ["https://user@api.acme.com"]},
        {"origins": ["https://api.acme.com?x"]},
        {"origins": ["ftp://api.acme.com"]},
        {"origins": ["https://h.example:" + str(port) for port in range(1, 30)]},
        {"secret": Secret("")},
        {"secret": Secret(" sk-canary-x")},
        {"secret": Secret("sk-canary\nx")},
        {"secret": Secret("sk-canary\u00fc")},
        {"secret": Secret("sk-canary-" + "x" * 1_000)},
        {"kind": "basic", "secret": Secret("sk-canary-nocolon")},
        {"kind": "header", "names": ("A", "B"), "secret": Secret("sk-canary-one-line")},
        {"kind": "header", "names": ("A",), "secret": Secret("sk-canary\ntwo")},
    ],
)
async def test_what_cannot_be_used_is_refused_stored_nowhere_and_not_quoted(
    changed: dict[str, Any], home: Path
) -> None:
    stage = Stage(home, MemoryBackend())
    with pytest.raises(Refused) as caught:
        await stage.set(**changed)
    assert "canary" not in str(caught.value)
    assert await stage.meta.list() == []
    assert repr(stage.backend) == "MemoryBackend(0 entries)"
