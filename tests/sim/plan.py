"""What kind of world a seed is: how many workers, jobs and people, how short the time, which blows how often.

Job: numbers drawn from the seed, so that seeds differ in kind and not only in detail. Must not know: how it is done.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

from pollcore.facts import CredentialMode
from tests.sim import contracts

_FATES: Final = {
    "kill": 8, "stop": 10, "end": 3, "step": 8, "epoch": 1, "suspend": 2, "reboot": 1, "down": 4, "rotate": 4,
    "lock": 2, "mend": 2,
}  # fmt: skip


STORE_FAULTS: Final = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR_WRITE", "COMMIT", "COMMIT_LOST", "COMMIT_LOST_HARD")
"""The n-th statement fails; COMMIT fails, is done but not answered, is done and cannot even be looked up."""
PORTS: Final = ("before commit", "after commit", "answer", "keyring", "read")
STOPS_AT_PORT_MS: Final = (1_000, 5_000, 40_000, 300_000)
STOPS_MS: Final = (5_000, 40_000, 300_000)
STEPS_MS: Final = (1_000, -1_000, 40_000, -40_000, 3_600_000, -3_600_000)
NAPS_MS: Final = (10_000, 60_000, 900_000)

FAULTS: Final = frozenset(
    [f"store {kind}" for kind in STORE_FAULTS]
    + [f"SIGKILL {port}" for port in (*PORTS, "at any time")]
    + [f"SIGSTOP {ms // 1000} s {port}" for ms in STOPS_AT_PORT_MS for port in PORTS]
    + [f"SIGSTOP {ms // 1000} s at any time" for ms in STOPS_MS]
    + [f"wall step {ms // 1000:+d} s" for ms in STEPS_MS]
    + [f"suspend {ms // 1000} s" for ms in NAPS_MS]
    + [f"answer {kind}" for kind in (
        "bad_guidance", "unavailable", "unavailable_guided", "limited", "limited_guided", "limited_date", "slow",
        "lost", "reset", "connection_refused", "connect_timeout", "garbage", "mystery", "7", "True", "UNKNOWN",
        "paused", "contradiction", "wrong_job", "empty_success", "missing", "gone", "denied", "forbidden", "odd_status",
    )]
    + ["SIGTERM", "reboot", "wall to 2000 and back", "origin down", "secret rotated", "keyring locked",
       "contract file edited", "stale card decided", "the same card decided twice", "call approved", "session approved",
       "use denied", "session ended by hand", "question expired unseen", "question expired seen and not answered",
       "answer several", "answer several, about none", "asked alone"]
)  # fmt: skip
"""Every fault that a world can meet: what is listed. What a run met is `World.covered`."""


class Plan(msgspec.Struct):
    """The numbers of one world."""

    workers: int
    jobs: int
    providers: tuple[str, ...]
    credentials: tuple[str, ...]
    operators: int
    slots: int
    chaos_ms: int
    gap_s: float
    """Mean time between two blows of fate."""
    fates: dict[str, int]
    stop_at_port: float
    kill_at_port: float
    focus: str | None
    """The port at which most of the blows fall."""
    store_fault: float
    proof_of_death: bool
    gated: bool = False
    """Some requests need an operator's approval; there are consoles, and people who use them."""
    modes: dict[str, CredentialMode] = {}
    """Credentials that are not standing."""
    consoles: int = 0
    """How many of the workers are consoles: while one beats, the time of questions runs."""

    @classmethod
    def of(cls, chance: random.Random, scale: float) -> Plan:
        """Draw a plan. A quarter of all worlds has no faults in processes and store at all, some have only one kind."""
        kind = chance.choice(("calm", "processes", "clocks", "store", "all", "all", "all", "people"))
        fates = dict(_FATES)
        if kind in ("calm", "people", "store"):
            fates = {k: v for k, v in fates.items() if k in ("down", "rotate", "mend")}
        elif kind == "clocks":
            fates = {"step": 8, "epoch": 1, "suspend": 2, "reboot": 1}
        elif kind == "processes":
            fates = {"kill": 8, "stop": 8, "end": 3}
        ports = kind in ("processes", "all")
        names = [f"{v}-{o}" for v in contracts.VARIANTS for o in contracts.ORIGINS]
        focus = (
            chance.choice((None, None, "keyring", "keyring", "answer", "after commit", "before commit"))
            if ports
            else None
        )
        workers = chance.choice((1, 2, 2, 3))
        providers = tuple(chance.sample(names, chance.choice((1, 1, 2))))
        if focus == "keyring":
            # one worker that stands still between its checks and its charge, often over a deadline
            workers, providers = 1, (f"short-{chance.choice(sorted(contracts.ORIGINS))}",)
        return cls(
            workers=workers,
            jobs=chance.randint(2, max(2, round(5 * scale))),
            providers=providers,
            credentials=("key-a", "key-b", "spare"),
            operators=chance.choice((0, 1, 2, 2)),
            slots=chance.choice((1, 2, 4, 100)),
            chaos_ms=round(chance.choice((60_000, 150_000, 240_000)) * scale),
            gap_s=chance.choice((8.0, 20.0, 45.0)),
            fates=fates,
            stop_at_port=chance.choice((0.0, 0.003, 0.01)) if ports else 0.0,
            kill_at_port=chance.choice((0.0, 0.002, 0.01)) if ports else 0.0,
            focus=focus,
            store_fault=chance.choice((0.01, 0.05, 0.15)) if kind in ("store", "all") else 0.0,
            proof_of_death=chance.random() < 0.7,
        )


def gated(plan: Plan, chance: random.Random) -> Plan:
    """Some worlds have a gate. *chance* is a source of its own: all other worlds stay what they were."""
    if not plan.operators or plan.focus == "keyring" or chance.random() < 0.55:
        return plan
    names = [f"{v}-{o}" for v in (*contracts.GATED, *contracts.VARIANTS) for o in contracts.ORIGINS]
    modes = {
        name: chance.choice((CredentialMode.PER_CALL, CredentialMode.PER_SESSION, CredentialMode.PER_SESSION))
        for name in plan.credentials
        if chance.random() < 0.6
    }
    return msgspec.structs.replace(
        plan,
        gated=True,
        providers=tuple(chance.sample(names, len(plan.providers))),
        modes=modes,
        consoles=chance.randint(0, plan.workers),
    )


def batched(plan: Plan, chance: random.Random) -> Plan:
    """In some worlds one request asks for several jobs (R39). *chance* is a source of its own, as for the gate."""
    if plan.focus == "keyring" or chance.random() < 0.8:
        return plan
    names = [f"{v}-{o}" for v in contracts.BATCHED for o in contracts.ORIGINS]
    return msgspec.structs.replace(plan, providers=(chance.choice(names),), jobs=plan.jobs + chance.choice((2, 4, 6)))


def planned(seed: int, scale: float = 1.0) -> Plan:
    """The plan of a world of this seed, without the world."""
    plan = gated(Plan.of(random.Random(f"world {seed}"), scale), random.Random(f"gate {seed}"))
    return batched(plan, random.Random(f"batch {seed}"))
