"""Entries of a keyring: one suite over the in-memory backend and a real Secret Service; choice of backend; failures."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from pollcore.adapters import keyring_store
from pollcore.adapters.keyring_store import ALLOWED, MAX_VALUE, MemoryBackend, Vault, choose_backend, service_name
from pollcore.facts import CredentialUnavailable, Refused
from tests.adapters.keyrings import FAILURES, Failing, Forgetful, Hanging

ENTRIES = ("one", "two", "probe")


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.server("keyring"))])
def vault(request: pytest.FixtureRequest, home: Path) -> Iterator[Vault]:
    made = Vault(home, backend=MemoryBackend()) if request.param == "memory" else Vault(home, limit_s=10)
    yield made
    for entry in ENTRIES:
        made.delete(entry)


@pytest.mark.rule("K1")
async def test_entries_are_written_read_replaced_and_deleted(vault: Vault) -> None:
    assert vault.get("one", "two") == (None, None)
    vault.set("one", "first")
    await vault.aset("two", "second")
    assert await vault.aget("two", "one") == ("second", "first")
    vault.set("one", "third")
    assert vault.get("one") == ("third",)
    vault.delete("one")
    await vault.adelete("one")
    assert vault.get("one", "two") == (None, "second")


@pytest.mark.rule("K1")
def test_a_value_of_full_length_with_every_printable_character_comes_back(vault: Vault) -> None:
    value = ("".join(chr(code) for code in range(0x20, 0x7F)) * 11)[: MAX_VALUE - 1] + "\n"
    vault.set("one", value)
    assert vault.get("one") == (value,)


@pytest.mark.rule("K2")
def test_a_probe_writes_reads_deletes_and_names_the_backend(vault: Vault) -> None:
    assert vault.probe() == vault.describe()
    assert vault.get("probe") == (None,)


@pytest.mark.rule("K1")
def test_homes_do_not_see_each_other(vault: Vault, home: Path, tmp_path: Path) -> None:
    vault.set("one", "mine")
    other = Vault(tmp_path, backend=vault._backend)
    assert other.service != vault.service
    assert other.get("one") == (None,)
    assert service_name(home / ".." / home.name) == vault.service
    assert vault.service.startswith("pollconsole:")


@pytest.mark.rule("K1")
@pytest.mark.parametrize("value", ["", "x" * (MAX_VALUE + 1)])
def test_values_that_do_not_fit_every_keyring_are_refused(home: Path, value: str) -> None:
    with pytest.raises(Refused, match="1-1000"):
        Vault(home, backend=MemoryBackend()).set("one", value)


@pytest.mark.rule("K2")
@pytest.mark.parametrize(
    ("detail", "error"), [(detail, error) for detail, errors in FAILURES.items() for error in errors]
)
async def test_a_failure_names_the_way_out_and_nothing_of_the_backends_text(
    detail: str, error: Exception, home: Path
) -> None:
    backend = Failing(error)
    vault = Vault(home, backend=backend)
    for call in (vault.probe, lambda: vault.set("one", "x"), lambda: vault.get("one")):
        with pytest.raises(CredentialUnavailable) as caught:
            call()
        assert caught.value.detail == detail
        assert "canary" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    with pytest.raises(CredentialUnavailable):
        await vault.aget("one")
    backend.error = None
    assert vault.get("one") == (None,)


@pytest.mark.rule("K2")
async def test_a_keyring_that_hangs_is_left_after_its_limit(home: Path) -> None:
    backend = Hanging()
    vault = Vault(home, backend=backend, limit_s=0.05)
    with pytest.raises(CredentialUnavailable) as caught:
        await vault.aget("one")
    assert caught.value.detail == "keyring_timeout"
    with pytest.raises(CredentialUnavailable):
        vault.get("one")
    backend.go_on.set()


@pytest.mark.rule("K2")
def test_a_keyring_that_keeps_nothing_is_noticed_when_writing(home: Path) -> None:
    vault = Vault(home, backend=Forgetful())
    for call in (vault.probe, lambda: vault.set("one", "x")):
        with pytest.raises(CredentialUnavailable, match="does not keep") as caught:
            call()
        assert caught.value.detail == "keyring_absent"


def plant(monkeypatch: pytest.MonkeyPatch, name: str, priority: float | None) -> None:
    """Put a backend class under the dotted *name*; without a priority it is not usable."""

    class Planted(MemoryBackend):
        @property
        def label(self) -> str:
            return name

    def unusable(_: object) -> float:
        raise RuntimeError

    module_name, _, kind_name = name.rpartition(".")
    module = types.ModuleType(module_name)
    kind = type(kind_name, (Planted,), {"priority": priority, "__module__": module_name})
    if priority is None:
        kind = type("Meta", (type,), {"priority": property(unusable)})(kind_name, (Planted,), {})
    setattr(module, kind_name, kind)
    monkeypatch.setitem(sys.modules, module_name, module)


@pytest.mark.rule("K2")
def test_the_best_usable_backend_of_the_allow_list_is_used_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in enumerate(ALLOWED):
        plant(monkeypatch, name, {1: 4.8, 2: 5.1}.get(place))
    plant(monkeypatch, "keyring.backends.chainer.ChainerBackend", 10)
    plant(monkeypatch, "keyrings.alt.file.PlaintextKeyring", 20)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyrings.alt.file.PlaintextKeyring")
    assert keyring_store.class_name(type(choose_backend())) == ALLOWED[2]


@pytest.mark.rule("K2")
@pytest.mark.parametrize("env", ["keyring.backends.null.Keyring", "keyring.backends.chainer.ChainerBackend"])
def test_without_a_usable_backend_nothing_else_is_taken(monkeypatch: pytest.MonkeyPatch, env: str, home: Path) -> None:
    for name in ALLOWED:
        plant(monkeypatch, name, None)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", env)
    with pytest.raises(CredentialUnavailable, match="no usable keyring") as caught:
        Vault(home).describe()
    assert caught.value.detail == "keyring_absent"


@pytest.mark.rule("K2")
def test_a_backend_off_the_list_is_used_only_when_the_operator_names_it(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    plant(monkeypatch, "keyrings.alt.file.PlaintextKeyring", 0.5)
    named = Vault(home, named="keyrings.alt.file.PlaintextKeyring")
    assert named.describe() == "keyrings.alt.file.PlaintextKeyring"
    with pytest.raises(CredentialUnavailable, match=r"no\.such\.Backend"):
        Vault(home, named="no.such.Backend").describe()


@pytest.mark.rule("K2")
def test_the_environment_sets_no_property_of_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYRING_PROPERTY_APPID", "planted")
    monkeypatch.setenv("KEYRING_PROPERTY_SCHEME", "KeePassXC")
    backend = choose_backend("keyring.backends.null.Keyring")
    assert vars(backend) == {}


@pytest.mark.rule("K2")
@pytest.mark.skipif(sys.platform != "linux", reason="D-Bus")
def test_a_machine_without_d_bus_is_told_clearly(home: Path) -> None:
    code = f"""
import pathlib
from pollcore.adapters.keyring_store import Vault
from pollcore.facts import CredentialUnavailable
try:
    print(Vault(pathlib.Path({str(home)!r}), limit_s=20).describe())
except CredentialUnavailable as error:
    print(error.detail, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "HOME": str(home), "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"},
    )
    assert done.stdout.startswith("keyring_absent no usable keyring on this machine: start a Secret Service")


def test_keyring_is_imported_only_when_a_backend_is_chosen() -> None:
    code = (
        "import sys, pollcore.adapters.keyring_store, pollcore.adapters.credentials, pollcore.adapters.credential_ops;"
        "print('keyring' in sys.modules, 'httpx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False False\n"
