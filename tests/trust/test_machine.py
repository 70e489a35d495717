"""What holds for a process before it holds a secret: no core file, no talkative logger, no key of the environment, and
a keyring of the machine's own, whichever system it is."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pollconsole import crash
from pollcore.adapters import keyring_store, quiet
from pollcore.adapters.keyring_store import ALLOWED, MemoryBackend, Vault, choose_backend, way_out
from pollcore.facts import CredentialUnavailable, StopDetail
from tests.console.ptylib import Terminal

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
PATHS = os.pathsep.join((str(ROOT / "core"), str(ROOT / "console"), str(ROOT)))
MACHINES = {
    "a Linux desktop": ({ALLOWED[0]: 5.0, ALLOWED[1]: 4.8}, ALLOWED[0]),
    "Linux with KDE": ({ALLOWED[0]: 5.0, ALLOWED[2]: 5.1}, ALLOWED[2]),
    "macOS": ({ALLOWED[3]: 5.0}, ALLOWED[3]),
    "Windows": ({ALLOWED[4]: 5.0}, ALLOWED[4]),
}
NEVER = (
    "keyring.backends.chainer.ChainerBackend",
    "keyring.backends.null.Keyring",
    "keyring.backends.fail.Keyring",
    "keyrings.alt.file.PlaintextKeyring",
    "keyrings.alt.file.EncryptedKeyring",
    "keyrings.cryptfile.cryptfile.CryptFileKeyring",
    "planted.Subclass",
)


def environment(**more: str) -> dict[str, str]:
    dropped = ("TEXTUAL", "DBUS", "PYTHON", "POLLCONSOLE")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "PYTHONPATH": PATHS, "TERM": "xterm-256color", **more}


def plant(monkeypatch: pytest.MonkeyPatch, usable: dict[str, float]) -> None:
    """Every class of ALLOWED and NEVER is there; those of *usable* have a priority, the others raise."""

    def unusable(_: object) -> float:
        raise RuntimeError("not on this machine")

    modules: dict[str, types.ModuleType] = {}
    for name in (*ALLOWED, *NEVER):
        module_name, _, kind_name = name.rpartition(".")
        meta: Any = type
        attributes: dict[str, Any] = {"__module__": module_name}
        if name in usable:
            attributes["priority"] = usable[name]
        else:
            meta = type("Meta", (type,), {"priority": property(unusable)})
        module = modules.setdefault(module_name, types.ModuleType(module_name))
        setattr(module, kind_name, meta(kind_name, (MemoryBackend,), attributes))
        monkeypatch.setitem(sys.modules, module_name, module)


@pytest.mark.rule("K2")
@pytest.mark.parametrize("machine", MACHINES)
def test_each_system_gives_its_own_keyring_whatever_else_offers_itself(
    machine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usable, wanted = MACHINES[machine]
    plant(monkeypatch, {**usable, **dict.fromkeys(NEVER, 100.0)})
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", NEVER[3])
    assert keyring_store.class_name(type(choose_backend())) == wanted
    assert Vault(tmp_path).describe() == wanted


@pytest.mark.rule("K2")
@pytest.mark.parametrize("offered", NEVER)
def test_what_keeps_nothing_chains_or_writes_plain_text_is_never_taken_by_itself(
    offered: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch, {offered: 100.0})
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", offered)
    with pytest.raises(CredentialUnavailable, match="no usable keyring") as refused:
        Vault(tmp_path).describe()
    assert refused.value.detail is StopDetail.KEYRING_ABSENT
    # a class that only derives from an allowed one has another name
    assert keyring_store.class_name(type(choose_backend(offered))) == offered


@pytest.mark.rule("K2")
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32", "freebsd14"])
@pytest.mark.parametrize("detail", [StopDetail.KEYRING_LOCKED, StopDetail.KEYRING_ABSENT, StopDetail.KEYRING_TIMEOUT])
def test_the_way_out_is_one_of_the_system_that_it_is_read_on(platform: str, detail: StopDetail) -> None:
    text = way_out(detail, platform)
    assert text
    of_linux = ("Secret Service", "gnome-keyring")
    assert not (platform in ("darwin", "win32") and any(word in text for word in of_linux)), text
    words = {"darwin": "keychain", "win32": "user"}
    if platform in words and detail is not StopDetail.KEYRING_TIMEOUT:
        assert words[platform] in text


@pytest.mark.rule("K2")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a machine without D-Bus is made of Linux's variables")
def test_doctor_on_a_headless_linux_names_the_way_out(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(
        '[providers.lab]\ncontract = "example-jobs"\nbase_url = "http://127.0.0.1:9"\ncredential = "lab-key"\n'
    )
    env = environment(XDG_RUNTIME_DIR=str(tmp_path), HOME=str(tmp_path))
    env.pop("DISPLAY", None)
    done = subprocess.run(
        [sys.executable, "-m", "pollconsole", "doctor", "--json", "--home", str(home)],
        capture_output=True, timeout=LIMIT_S, env=env,
    )  # fmt: skip
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert found["keyring"]["state"] == "wrong"
    assert "start a Secret Service (gnome-keyring, KeePassXC, KWallet)" in found["keyring"]["text"]
    assert "lab-key" in found["keyring"]["text"]
    assert "another OS user" in found["gate"]["mend"]


# --- the process ------------------------------------------------------------------------------------------------------

LOOK = """
import logging, resource, sys, threading
from pathlib import Path
from pollconsole import bridge

def told(*_, **__):
    hooks = {hook.__module__ for hook in (sys.excepthook, threading.excepthook, sys.unraisablehook)}
    loud = [name for name in %r if logging.getLogger(name).propagate or logging.getLogger(name).isEnabledFor(20)]
    print("LOOKED", resource.getrlimit(resource.RLIMIT_CORE), sorted(hooks), loud, flush=True)
    raise SystemExit(0)

bridge.with_core = told
bridge.missing_home = lambda home: None
# a store is there: a try without one is refused before it needs a core
bridge.store_path = lambda home: Path(sys.executable)
from pollconsole.__main__ import main
main()
"""
COMMANDS = (
    ["run"],
    ["list"],
    ["submit", "--provider", "x", "--job-id", "1"],
    ["fetch", "op-1", "--to", "never"],
    ["result", "op-1"],
    ["provider", "try", "example-jobs", "--job-id", "1"],
    ["credential", "set", "k", "--kind", "bearer", "--origin", "https://a.example"],
    ["credential", "list"],
    ["audit", "show"],
    ["audit", "export", "never"],
    ["report"],
    ["--plain", "--once"],
)


@pytest.mark.rule("K1")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are Unix's")
@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: " ".join(argv[:2]))
def test_every_command_is_hardened_before_it_reaches_a_core(argv: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK % (quiet.LOGGERS,), *argv],
        input=b"a-secret-of-the-test\n", capture_output=True, timeout=LIMIT_S, cwd=tmp_path,
        env=environment(POLLCONSOLE_HOME=str(tmp_path / "home")),
    )  # fmt: skip
    assert b"LOOKED (0, 0) ['pollcore.adapters.quiet'] []" in done.stdout, done.stdout + done.stderr


@pytest.mark.rule("K1")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits are read in /proc")
def test_a_process_that_waits_for_a_secret_can_leave_no_core_file(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        "-m",
        "pollconsole",
        "credential",
        "set",
        "k",
        "--kind",
        "bearer",
        "--origin",
        "https://a.example",
    ]
    with Terminal(argv, env=environment(POLLCONSOLE_HOME=str(tmp_path / "home"))) as terminal:
        terminal.until_text("Secret")
        limits = Path(f"/proc/{terminal.pid}/limits").read_text()
        (line,) = [each for each in limits.splitlines() if each.startswith("Max core file size")]
        assert line.split()[4:6] == ["0", "0"]


@pytest.mark.rule("K1")
def test_loggers_of_everything_that_sees_an_address_or_a_secret_are_hushed() -> None:
    wanted = {"httpx", "httpcore", "h11", "keyring", "secretstorage", "jeepney", "urllib3", "botocore", "asyncio"}
    assert wanted <= set(quiet.LOGGERS)


@pytest.mark.slow
@pytest.mark.rule("K1")
def test_asyncios_debug_mode_tells_nothing_of_what_a_callback_was_given() -> None:
    code = """
import asyncio, logging, sys, time
from pollcore.adapters import quiet
if sys.argv[1] == "hushed":
    quiet.hush_loggers()
logging.basicConfig(level=logging.DEBUG)
async def main():
    loop = asyncio.get_running_loop()
    loop.slow_callback_duration = 0.01
    loop.call_soon(lambda secret: time.sleep(0.05), "cn-secret-of-a-callback")
    await asyncio.sleep(0.1)
asyncio.run(main(), debug=True)
"""
    loud, hushed = (
        subprocess.run(
            [sys.executable, "-c", code, how], capture_output=True, timeout=LIMIT_S, env=environment(), check=True
        ).stderr
        for how in ("loud", "hushed")
    )
    assert b"Executing" in loud, "the control: asyncio tells of it otherwise"
    assert hushed == b""


@pytest.mark.rule("G3", "K1")
@pytest.mark.slow
def test_a_console_obeys_no_variable_of_textual(tmp_path: Path) -> None:
    home, log, picture = tmp_path / "home", tmp_path / "log", tmp_path / "pictures"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[audit]\nkey_file = "reading.key"\n')
    asked = {
        "TEXTUAL_PRESS": "q,Q",
        "TEXTUAL_LOG": str(log),
        "TEXTUAL_SCREENSHOT": "1",
        "TEXTUAL_SCREENSHOT_LOCATION": str(picture),
        "TEXTUAL_DRIVER": "no.such:Driver",
        "TEXTUAL": "debug,devtools",
        "TEXTUAL_DEVTOOLS_HOST": "127.0.0.1",
    }
    argv = [sys.executable, "-m", "pollconsole", "--home", str(home)]
    with Terminal(argv, env=environment(**asked)) as terminal:
        terminal.until_text("? help")
        terminal.run_for(1.5)
        assert terminal.exit_code is None, "a key of the environment was pressed"
        assert "asked to quit" not in terminal.text
    assert not log.exists()
    assert not picture.exists()


# --- what is told of a crash ------------------------------------------------------------------------------------------


@pytest.mark.rule("K1")
@pytest.mark.parametrize("tell", [crash.scrubbed, quiet.trace_text], ids=["the screen's", "the core's"])
def test_no_trace_shows_a_local_variable(tell: Callable[[BaseException], str]) -> None:
    def inner(token: str) -> None:
        header = f"Authorization of {token}"
        raise RuntimeError(header[:0] or "no luck")

    with pytest.raises(RuntimeError) as caught:
        inner("-".join(("cn", "local")))  # not in the source line, which a trace may show
    text = tell(caught.value)
    assert "inner" in text
    assert "cn-local" not in text


@pytest.mark.rule("K1")
def test_hushing_holds_although_a_program_sets_the_root_to_debug_later(caplog: pytest.LogCaptureFixture) -> None:
    quiet.hush_loggers()
    with caplog.at_level(logging.DEBUG):
        for name in quiet.LOGGERS:
            logging.getLogger(f"{name}.inner").error("https://h.example/p?sig=cn-signature")
    assert caplog.records == []
