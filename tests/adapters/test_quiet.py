"""A process tells no secret by accident: loggers, crash printers, loop errors, core files."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from pollcore.adapters import quiet
from pollcore.adapters.pinned import PinnedSecret

CANARY = "sk-canary-quiet-99"


@pytest.fixture
def told() -> Iterator[list[str]]:
    texts: list[str] = []
    restore = quiet.install_hooks(texts.append)
    yield texts
    restore()


def crash(secret: PinnedSecret) -> None:
    token, beside = secret.reveal(), "a-local-that-is-no-secret"
    assert beside
    raise RuntimeError(f"no luck with {token} at https://h.example/p?sig={token} \x1b[2J")


@pytest.mark.rule("K1")
def test_a_crash_shows_frames_but_no_locals_no_secret_no_escape(told: list[str]) -> None:
    secret = PinnedSecret(CANARY, ())
    assert secret.scrubber
    try:
        crash(secret)
    except RuntimeError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    (text,) = told
    assert "in crash" in text
    assert "RuntimeError: no luck with ******** at https://h.example/p?..." in text
    assert CANARY not in text
    assert "beside = " not in text
    assert "\x1b" not in text


@pytest.mark.rule("K1")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_a_finaliser_and_a_lost_task_report_in_the_same_manner() -> None:
    code = f"""
import asyncio, gc, sys, threading
from pollcore.adapters import quiet
from pollcore.adapters.pinned import PinnedSecret
secret = PinnedSecret({CANARY!r}, ()); secret.scrubber
told = []
quiet.install_hooks(told.append)
def crash(): raise RuntimeError("thread " + secret.reveal())
t = threading.Thread(target=crash); t.start(); t.join()
class Loud:
    def __repr__(self): return secret.reveal()
    def __del__(self): raise RuntimeError("finaliser " + secret.reveal())
Loud(); gc.collect()
async def lost(): raise RuntimeError("task " + secret.reveal())
async def main():
    quiet.watch_loop(asyncio.get_running_loop(), told.append)
    task = asyncio.create_task(lost()); await asyncio.sleep(0); await asyncio.sleep(0)
    del task; gc.collect()
asyncio.run(main())
print("\\n".join(told))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    for what in ("thread ********", "finaliser ********", "task ********"):
        assert f"RuntimeError: {what}" in done.stdout
    assert CANARY not in done.stdout + done.stderr


@pytest.mark.rule("K1")
def test_an_interrupt_prints_one_word(told: list[str]) -> None:
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert told == ["interrupted\n"]


@pytest.mark.rule("K1")
def test_a_writer_that_fails_does_not_raise_and_hooks_can_be_put_back() -> None:
    former = sys.excepthook, threading.excepthook, sys.unraisablehook
    restore = quiet.install_hooks(lambda text: 1 // 0)  # type: ignore[arg-type]
    sys.excepthook(ValueError, ValueError("x"), None)
    restore()
    assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == former


@pytest.mark.rule("K1")
def test_a_very_long_trace_is_cut_at_its_front() -> None:
    text = quiet.trace_text(ValueError("x" * 200_000 + "END"))
    assert len(text) < quiet.MAX_TRACE + 100
    assert text.rstrip().endswith("END")


@pytest.mark.rule("K1")
@pytest.mark.parametrize("name", [*quiet.LOGGERS, "httpcore.http11", "keyring.backend"])
def test_no_record_of_a_library_reaches_the_root(name: str, caplog: pytest.LogCaptureFixture) -> None:
    quiet.hush_loggers()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger(name).debug("secret")
        logging.getLogger(name).error("secret")
    assert caplog.records == []
    assert not logging.getLogger(name).isEnabledFor(logging.INFO)


@pytest.mark.rule("K1", "H7")
@pytest.mark.skipif(sys.platform != "linux", reason="prctl")
def test_a_hardened_process_leaves_no_core_and_obeys_no_key_log() -> None:
    code = """
import ctypes, os, resource
from pollcore.adapters import quiet
print(quiet.harden_process(), resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0),
      "SSLKEYLOGFILE" in os.environ)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "SSLKEYLOGFILE": "/dev/null"},
    )
    assert done.stdout == "() (0, 0) 0 False\n"


async def test_the_loop_reports_messages_without_an_exception(told: list[str]) -> None:
    loop = asyncio.get_running_loop()
    former = loop.get_exception_handler()
    quiet.watch_loop(loop, told.append)
    loop.call_exception_handler({"message": "Bearer abcdefghijkl", "task": object()})
    loop.set_exception_handler(former)
    gc.collect()
    assert told == ["Bearer ********\n"]
