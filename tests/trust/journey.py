"""What a home goes through in real processes, twice: with secrets, and (the control) with the same words as no secrets.

Job: the steps. Must not know: where a secret may be seen.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pollcore.adapters import audit_read
from pollcore.assembly import open_core
from pollcore.facts import SealedUnreadable
from tests.serving import serving
from tests.trust import file_keyring
from tests.trust.canary import Search
from tests.trust.echo import MODES, Provider
from tests.trust.life import LIMIT_S, PROGRAM, Life
from tests.trust.looking import console, screens
from tests.trust.planted import ASKED, ASKS, CONTRACTS, OPEN, SHORT, WHOLE, Planted
from tests.trust.watching import Watch

#: What sealed values of the store are bound to.
SEALED: Final = (
    *("operation.memory", "operation.result", "operation.status_url", "operation.idempotency_key"),
    *("observation.envelope", "operation.last_body"),
)


def with_secrets(folder: Path, search: Search, watch: Watch) -> tuple[Life, Provider]:
    """The whole journey with every kind of credential. Ends with everything collected in `Life.places`."""
    planted = Planted(search)
    with serving(Provider(search, planted.echoed, planted.bought)) as provider, watch:
        life = Life(folder, search.texts.values())
        life.write_contracts(provider.url, CONTRACTS)
        for kind in CONTRACTS:
            options = ["--origin", provider.url, *planted.options(kind, provider.url)]
            life.call("credential set", "credential", "set", kind, *options, stdin=planted.entered[kind])
        life.call("credential mode", "credential", "mode", "calls", "per_call")
        life.call("credential mode", "credential", "mode", "calls", "standing", "--because", "the night")
        jobs = {kind: MODES if kind in WHOLE else ASKED if kind in ASKS else SHORT for kind in CONTRACTS}
        _submit_and_run(life, jobs, planted.entered)
        _refused_by_the_keyring(life, planted.entered["bearer"], provider.url)
        _look(life, approve=True)
    return life, provider


def without_secrets(folder: Path, word: str, search: Search, watch: Watch) -> tuple[Life, Provider]:
    """The control: *word* is no secret, only what a provider says and a caller calls a job. It may be seen anywhere."""
    with serving(Provider(search, {OPEN: [word]}, {})) as provider, watch:
        life = Life(folder, [word], control=True)
        life.write_contracts(provider.url, {OPEN: ('kind = "none"', "")})
        _submit_and_run(life, {OPEN: list(MODES)}, {}, label=word)
        _look(life)
    return life, provider


def _submit_and_run(
    life: Life, jobs: Mapping[str, Sequence[str]], credentials: Mapping[str, str], label: str = "nightly"
) -> None:
    for kind, modes in jobs.items():
        for mode in modes:
            more = ["--credential", kind] if kind in credentials else []
            more += ["--param", "region=eu-1"] if kind == "sigv4" else []
            more += ["--max-requests", "2"] if mode == "slow" else []
            given = ("--provider", kind, "--job-id", f"{kind}-{mode}", "--id", f"op-{kind}-{mode}", "--label", label)
            life.call("submit", "submit", *given, *more)
    with life.wal():
        life.call("run", "run", "--until-idle", "--for", "110s", developer=True)


def _refused_by_the_keyring(life: Life, secret: str, url: str) -> None:
    """The keyring is locked: entering, polling and looking fail, each with its text."""
    life.call("submit", "submit", "--provider", "bearer", "--job-id", "bearer-late", "--id", "op-late",
              "--credential", "bearer")  # fmt: skip
    life.lock_keyring(True)
    options = ("--origin", url, "--kind", "bearer")
    life.call("refused keyring", "credential", "set", "bearer", *options, stdin=secret, codes=(1, 2))
    life.call("refused keyring", "run", "--for", "2s", developer=True)
    life.call("refused keyring", "doctor", codes=(0, 1))
    life.lock_keyring(False)
    for wrong in (f" {secret}", f"{secret}\n{secret}", f"{secret}\x07", "x" * 1_001 + secret):
        life.call("refused secret", "credential", "set", "bearer", *options, stdin=wrong, codes=(2,))
    # as an argument or a variable there is no way to enter one; what is tried is not repeated
    life.call("refused secret", "credential", "set", "bearer", *options, "--secret", "x", codes=(2,))


def _look(life: Life, approve: bool = False) -> None:
    _commands(life)
    screens(life, approve)
    _crashes(life)
    life.keep_rows()
    life.keep_files()
    asyncio.run(_opened(life))
    _archive(life)


def _commands(life: Life) -> None:
    told = json.loads(life.call("list", "list", "--json").stdout)
    for operation in told["operations"]:
        one = operation["id"] if "id" in operation else operation["operation_id"]
        if one.startswith(("op-bearer", "op-open", "op-refresh", "op-refused")):
            life.call("show --json", "show", one, "--json")
            life.call("result", "result", one, codes=(0, 2))
        if operation["status"] == "succeeded":
            life.call("fetch", "fetch", one, "--to", str(life.work / f"{one}.result"), codes=(0, 1, 2, 10))
    for place, argv in {
        "list": ["list"],
        "show": ["show", told["operations"][0].get("id") or told["operations"][0]["operation_id"]],
        "escalations": ["escalations", "--json"],
        "audit show": ["audit", "show"],
        "audit show --json": ["audit", "show", "--json"],
        "report": ["report"],
        "report --json": ["report", "--json", "--chart"],
        "credential list": ["credential", "list", "--json"],
        "provider list": ["provider", "list", "--json"],
        "doctor": ["doctor", "--json"],
        "audit verify": ["audit", "verify", "--with-key"],
        "plain": ["--plain", "--once"],
    }.items():
        life.call(place, *argv, codes=(0, 1, 25))
    life.call("audit export", "audit", "export", str(life.outside / "evidence.jsonl"))
    life.keep("export", (life.outside / "evidence.jsonl").read_bytes())


def _crashes(life: Life) -> None:
    """What fails holds every secret: a widget, a command, a task, a thread, a finaliser, the process itself."""
    with console(life, "widget") as terminal:
        # it draws anew once, then leaves the core alone, and that ends as any run does
        terminal.until(lambda: b"goes on without a screen" in terminal.raw, what="the end of a broken screen")
        terminal.send("\x03")
        terminal.until(lambda: terminal.exit_code is not None, what="the end of its core")
        life.keep("crash of a widget", bytes(terminal.raw))
    life.call("crash of a command", "list", how="command", codes=(1,), developer=True)
    life.call("crash of a command", "list", "--json", how="command", codes=(1,))
    life.call("crash aside", "list", how="later", developer=True)
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(PROGRAM), "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=life.work,
        env=life.environment("abort"),
    )
    out, err = process.communicate(timeout=LIMIT_S)
    life.keep("abort", out + err)
    assert process.returncode == -signal.SIGABRT, err[-2000:]
    assert b"Fatal Python error: Aborted" in err


def _archive(life: Life) -> None:
    life.call("audit new-keys", "audit", "new-keys")
    target = life.outside / "old.jsonl"
    life.call("archive", "archive", "--before", "2h", "--to", str(target), how="late")
    life.keep("archive file", target.read_bytes())
    life.call("archive", "audit", "verify", "--archive", str(target), codes=(0, 25))


async def _opened(life: Life) -> None:
    """What is sealed, opened with the keys: the audit's links, answers, results."""
    os.environ[file_keyring.VARIABLE] = str(life.keyring)
    try:
        async with open_core(life.home, kind="cli", backend=file_keyring.Keyring()) as core:
            room = core.audit.room
            async for link in audit_read.opened(core.store, room):
                if link.plain is not None:
                    life.keep("audit plaintext", link.plain)
            rows = core.store._writer.call(_sealed_blobs)
            for blob in await asyncio.wrap_future(rows):
                for purpose in SEALED:
                    try:
                        life.keep("sealed values", core._sealer.open(purpose, blob))
                    except (SealedUnreadable, ValueError):
                        continue
    finally:
        del os.environ[file_keyring.VARIABLE]


def _sealed_blobs(session: object) -> list[bytes]:
    conn = session.conn  # type: ignore[attr-defined]
    found: list[bytes] = []
    for (table,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if table in ("audit", "document"):
            continue
        for row in conn.execute(f'SELECT * FROM "{table}"').fetchall():
            found += [bytes(each) for each in row if isinstance(each, bytes | memoryview)]
    return found
