"""A whole demo: throw-away home, provider, credentials, clock, callers; made and unmade in one place.

Job: put the parts together in the right order, and take them apart whatever happened. Must not know: screens, what any
case is about.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import secrets
import tempfile
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from pollconsole import bridge
from pollconsole.demo import answers_wrong, approvals, ordinary, times_wrong
from pollconsole.demo.agents import Agents, DemoCredential
from pollconsole.demo.cases import OLD_TOKEN, ROTATED_AT_S, Case
from pollconsole.demo.clock import FACTOR, DemoClock
from pollconsole.demo.dialects import BATCH, DIALECTS, EXPORT, MAPS, RENDER, Dialect
from pollconsole.demo.jobs import Jobs, Outage, Token
from pollconsole.demo.memory import DemoChance
from pollconsole.demo.provider import Provider, digest
from pollcore.facts import CredentialMode, Instant, Secret

SEED: Final = 7
"""What is drawn repeats from run to run."""
SLOTS: Final = 16
"""Requests in flight at once: a screen shares the interpreter with them."""
OUTAGES: Final = (Outage(EXPORT.provider, 70.0, 150.0),)
ACCOUNT: Final = "studio-1"
CONFIG: Final = "config.toml"
CONTRACTS: Final = "contracts"
FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

FIRST_S: Final = 5.0
NEXT_S: Final = 4.0
"""Demo time at which the first job with wrong answers comes, and between one and the next."""
MISBEHAVING: Final[tuple[Case, ...]] = (*times_wrong.CASES, *answers_wrong.CASES, *approvals.CASES)
"""Every way to misbehave, with what is to come of it: those of time, load and authority at once, the others soon."""


PROVIDER_OF: Final = {
    OLD_TOKEN: BATCH.provider,
    approvals.SESSION_KEY: BATCH.provider,
    approvals.CALL_KEY: EXPORT.provider,
}
"""Credentials beside the one that each provider is asked with."""


class DemoSetup(msgspec.Struct, frozen=True, kw_only=True):
    """A demo under way. *overrides*: for `bridge.with_core(home, job, kind="demo", **overrides)`."""

    home: Path
    overrides: dict[str, Any]
    clock: DemoClock
    provider: Provider
    agents: Agents
    cases: tuple[Case, ...]
    """What is handed over in the first two minutes of demo time, whatever the seed."""


@contextlib.contextmanager
def start(*, seed: int = SEED, begin: Instant | None = None, factor: float = FACTOR) -> Iterator[DemoSetup]:
    """A demo, from its first waits handed over until the context ends; then nothing of it is left.

    Args:
        seed: The same seed draws the same jobs, delays and ids.
        begin: The wall time at which it starts; None: now. Time stands still until a core polls.
        factor: Demo time per real time.

    Raises what a core raises on a home that it cannot use (PollconsoleError), OSError, TimeoutError.
    """
    clock = DemoClock(Instant(time.time_ns() // 1_000_000) if begin is None else begin, factor=factor)
    names = (*map(_credential, DIALECTS), *PROVIDER_OF)
    tokens = {name: secrets.token_urlsafe(24) for name in names}
    jobs = Jobs(clock.begin, _accepted(tokens), OUTAGES)
    provider = Provider(jobs, lambda: clock.now().wall)
    with contextlib.ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="pollconsole-demo-", ignore_cleanup_errors=True)
        home = Path(stack.enter_context(folder))
        stack.callback(provider.stop)
        provider.start()
        _furnish(home, provider)
        keyring = bridge.memory_keyring()
        at_once = ordinary.at_once(seed)
        soon = ordinary.spaced(answers_wrong.CASES, FIRST_S, NEXT_S)
        standing = CredentialMode.STANDING
        stored = tuple(
            DemoCredential(name, _provider(name), Secret(value), approvals.MODES.get(name, standing))
            for name, value in tokens.items()
        )
        # a core each, and draws of its own for each: two threads would shuffle one another's
        agents = Agents(
            home,
            clock,
            jobs,
            provider.urls,
            stored,
            {"backend": keyring, "clock": clock, "chance": DemoChance(seed + 1), "shipped": ships},
        )
        stack.callback(agents.stop)
        later = heapq.merge(soon, approvals.arrivals(), ordinary.arrivals(seed), key=lambda arrival: arrival.at_s)
        agents.start((*at_once, *times_wrong.CASES), later)
        overrides = {"backend": keyring, "clock": clock, "chance": DemoChance(seed), "slots": SLOTS, "shipped": ships}
        yield DemoSetup(
            home=home,
            overrides=overrides,
            clock=clock,
            provider=provider,
            agents=agents,
            cases=(*at_once, *MISBEHAVING),
        )


def _credential(provider: str) -> str:
    return f"{provider}-key"


def _provider(credential: str) -> str:
    return PROVIDER_OF.get(credential) or credential.removesuffix("-key")


def _accepted(tokens: dict[str, str]) -> tuple[Token, ...]:
    return tuple(
        Token(_provider(name), digest(value), ROTATED_AT_S if name == OLD_TOKEN else None)
        for name, value in tokens.items()
    )


def ships(text: str) -> bool:
    """Whether a contract of the demo counts as shipped: all but the one that plays a file of somebody's own (G5)."""
    return text in _texts() - {_text(MAPS)}


@functools.cache
def _texts() -> frozenset[str]:
    return frozenset(_text(dialect) for dialect in DIALECTS.values() if dialect is not RENDER)


def _text(dialect: Dialect) -> str:
    return (resources.files("pollconsole.demo") / CONTRACTS / f"{dialect.contract}.toml").read_text("utf-8")


def _furnish(home: Path, provider: Provider) -> None:
    """config.toml and the contracts that do not ship with the core."""
    home.chmod(FOLDER_MODE)
    contracts = home / "providers"
    contracts.mkdir(mode=FOLDER_MODE)
    for dialect in DIALECTS.values():
        if dialect is not RENDER:
            _write(contracts / f"{dialect.contract}.toml", _text(dialect))
    tables = (
        f'[providers.{name}]\ncontract = "{dialect.contract}"\nbase_url = "{provider.urls[name]}"\n'
        f'credential = "{_credential(name)}"\naccount = "{ACCOUNT}"\n'
        for name, dialect in DIALECTS.items()
    )
    _write(home / CONFIG, "\n".join(tables))


def _write(path: Path, text: str) -> None:
    path.touch(mode=FILE_MODE)
    path.write_text(text, "utf-8")
