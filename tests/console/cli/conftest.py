"""A core that lives in memory, for the commands: real views, story and documents over records that a test lays out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pollconsole import bridge
from pollconsole.cli import entry
from pollcore.adapters.config import Config
from pollcore.adapters.credentials import MemoryMeta
from pollcore.adapters.keyring_store import MemoryBackend, Vault
from pollcore.facts import (
    ActionKind,
    ActionOutcome,
    ActionRecord,
    AuditEvent,
    BootMs,
    Choice,
    ChoiceKind,
    ContractError,
    CredentialMode,
    Escalation,
    EventName,
    HttpFact,
    Instant,
    Moment,
    NotFound,
    Operation,
    Operator,
    ResultPointer,
    Status,
    StopReason,
    Submitted,
)
from pollcore.ports import ContractKnown, Filter, Worker

HOSTILE = "a\x1b]52;c;eA==\x07\x9b2J\u202eb\n\r\x7f[@click=app.quit]"
"""What a provider may send to a terminal."""
CANARY = "canary-5f2c9e-secret"
NOW = Moment(Instant(1_772_445_600_000), BootMs(5_000_000), "boot-a")
"""2026-03-02T10:00:00Z."""


def make_operation(operation_id: str = "op-1", status: Status = Status.WAITING, **changes: Any) -> Operation:
    """An operation ten minutes under way."""
    fields: dict[str, Any] = {
        "operation_id": operation_id,
        "submitted": Submitted(provider="acme", account="team-4", job_id="job-7", label="nightly"),
        "status": status,
        "contract_digest": "d1",
        "started_at": Instant(NOW.wall - 600_000),
        "submitted_at": Instant(NOW.wall - 600_000),
        "boot_id": "boot-a",
        "deadline_at": Instant(NOW.wall + 1_800_000),
        "deadline_boot": BootMs(NOW.boot + 1_800_000),
        "max_status_requests": 12,
        "status_requests_used": 5,
        "max_transport_failures": 3,
        "max_rate_limited": 4,
    }
    return Operation(**{**fields, **changes})


class Clock:
    """Time that moves with every reading of it."""

    def __init__(self) -> None:
        self.moment = NOW

    def now(self) -> Moment:
        self.moment = self.moment.after(1)
        return self.moment


@dataclass
class Store:
    """What the commands read of a store."""

    clock: Clock
    rows: dict[str, Operation] = field(default_factory=dict)
    open: list[Escalation] = field(default_factory=list)
    told: list[AuditEvent] = field(default_factory=list)
    beats: list[Worker] = field(default_factory=list)
    pauses: list[tuple[str, str | None, Instant]] = field(default_factory=list)
    waits: int = 0
    on_wait: Callable[[int], None] = lambda _: None

    async def operation(self, operation_id: str) -> Operation | None:
        return self.rows.get(operation_id)

    async def operations(self, wanted: Filter) -> Sequence[Operation]:
        return [
            op
            for op in self.rows.values()
            if (not wanted.statuses or op.status in wanted.statuses)
            and (wanted.provider is None or op.submitted.provider == wanted.provider)
            and (wanted.since is None or op.submitted_at >= wanted.since)
        ][: wanted.limit]

    async def questions(self, operation_id: str | None = None, *, open_only: bool = True) -> Sequence[Escalation]:
        return [
            q
            for q in self.open
            if operation_id in (None, q.operation_id) and not (open_only and q.decided_at is not None)
        ]

    async def asked(self) -> Sequence[tuple[Operation, Escalation]]:
        return [(self.rows[q.operation_id], q) for q in self.open if q.decided_at is None]

    async def credential_questions(self, *, open_only: bool = True) -> Sequence[Escalation]:
        return ()

    async def credential_question(self, escalation_id: str) -> None:
        return None

    async def approval(self, operation_id: str) -> None:
        return None

    async def questions_by_id(self, escalation_ids: Sequence[str]) -> dict[str, Escalation]:
        return {q.escalation_id: q for q in self.open if q.escalation_id in escalation_ids}

    async def contracts_known(self, digests: Sequence[str]) -> dict[str, ContractKnown]:
        return {digest: ContractKnown(digest=digest) for digest in digests}

    async def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> Sequence[tuple[int, AuditEvent]]:
        numbered = [(n, e) for n, e in enumerate(self.told, 1) if operation_id in (None, e.operation_id) and n > after]
        return numbered[:limit]

    async def events_named(self, name: EventName, *, limit: int = 10_000) -> Sequence[tuple[int, AuditEvent]]:
        return [(n, e) for n, e in enumerate(self.told, 1) if e.event is name][-limit:]

    async def archived(self, operation_id: str | None = None) -> tuple[int, str] | None:
        return None

    async def counts(self) -> dict[str, int]:
        found: dict[str, int] = {"questions": len(self.open)}
        for op in self.rows.values():
            found[op.status.value] = found.get(op.status.value, 0) + 1
        return found

    async def workers(self) -> Sequence[Worker]:
        return self.beats

    async def change(self) -> int:
        return 1

    async def check(self) -> Sequence[str]:
        return ()

    async def contrary(self) -> Sequence[str]:
        return ()

    async def wait_for_change(self, after: int, timeout_s: float) -> int:
        self.waits += 1
        self.on_wait(self.waits)
        self.clock.moment = self.clock.moment.after(round(timeout_s * 1_000))
        return after + 1

    async def health(self) -> Any:
        return SimpleNamespace(pauses=tuple(self.pauses))

    async def intents(self, operation_id: str) -> Sequence[Any]:
        return ()

    async def document(self, kind: str, name: str) -> bytes | None:
        return None

    async def backup(self, path: str) -> None:
        Path(path).write_bytes(b"copy")

    def beat(self, age_ms: int = 0, kind: str = "run") -> None:
        """Lay out one heartbeat."""
        self.beats = [
            Worker(
                owner="w", pid=1, host="h", kind=kind, started_at=NOW.wall, boot_id="boot-a",
                beat_at=Instant(NOW.wall - age_ms), beat_boot=BootMs(NOW.boot - age_ms),
            )
        ]  # fmt: skip


class Actions:
    """Records what commands ask for."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list[tuple[Any, ...]] = []
        self.outcome = ActionOutcome.DONE
        self.warnings: tuple[str, ...] = ()

    def operator(self) -> Operator:
        return Operator("ann", "desk", "pts/1")

    async def submit(self, spec: Any) -> Any:
        self.calls.append(("submit", spec))
        op = make_operation(spec.operation_id or "op-new")
        self.store.rows[op.operation_id] = op
        return SimpleNamespace(operation=op, warnings=self.warnings, existed=False)

    async def lower(self, *args: Any) -> Operation:
        self.calls.append(("lower", *args))
        return self.store.rows[args[0]]

    async def pause(self, provider: str, account: str | None, until: Instant, by: str) -> None:
        self.calls.append(("pause", provider, account, until, by))
        name = provider if account is None else f"{provider} {account}"
        self.store.pauses.append((provider, account, until))
        self.store.told.append(
            AuditEvent(at=NOW.wall, event=EventName.PAUSED, next_poll_at=until, caller=by, text=name)
        )

    async def request_extension(self, *args: Any) -> Escalation:
        self.calls.append(("request_extension", *args))
        return make_question()

    async def sessions(self) -> Sequence[Any]:
        return ()

    async def ask_mode(self, name: str, mode: CredentialMode, by: str, because: str | None) -> Escalation:
        self.calls.append(("ask_mode", name, mode, by, because))
        return make_question("", reason=StopReason.MODE_CHANGE, cause=f"mode_change:{name}")

    async def card(self, operation_id: str) -> Any:
        lines = ("External job needs a decision", "Last state: <hostile made harmless by the card>", "[1] extend")
        return SimpleNamespace(
            card=SimpleNamespace(text=lambda: lines),
            question=(await self.store.questions(operation_id))[0],
            operation=self.store.rows[operation_id],
            choices=(
                Choice(key="1", kind=ChoiceKind.EXTEND, label="extend 15 min / 4 checks", minutes=15, checks=4),
                Choice(key="2", kind=ChoiceKind.CLOSE, label="close"),
            ),
            digest="d",
            use=None,
        )

    async def result(self, operation_id: str, reveal: bool, by: str) -> dict[str, Any]:
        self.calls.append(("result", operation_id, reveal, by))
        return {"fields": {"url": "https://h/p?sig=1" if reveal else "https://h/p?...", "note": HOSTILE}}

    async def fetch(self, operation_id: str, to: Path, by: str) -> ActionRecord:
        self.calls.append(("fetch", operation_id, to, by))
        return ActionRecord(
            action_id="act-1",
            operation_id=operation_id,
            kind=ActionKind.FETCH_RESULT,
            outcome=self.outcome,
            at=NOW.wall,
        )


class Backend(MemoryBackend):
    """A keyring whose entries a test may see."""

    def held(self) -> dict[tuple[str, str], str]:
        return dict(self._entries)


class FakeCore:
    """As much of a core as the commands use."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Store(self.clock)
        self.actions = Actions(self.store)
        self.config = Config()
        self.home = SimpleNamespace(
            home=Path("/home/x"), config=Path("/home/x/config.toml"), providers=Path("/home/x/providers")
        )
        self.contracts = SimpleNamespace(listing=list, names=lambda: ["acme", "lab"], find=self._no_contract)
        self.snapshots = SimpleNamespace(of=self._no_snapshot)
        self.vault = SimpleNamespace(describe=lambda: "tests.Backend")
        self.backend = Backend()
        self.credential_admin = SimpleNamespace(vault=Vault(Path("/home"), backend=self.backend), meta=MemoryMeta())

    async def prepare(self) -> None:
        """Its keys need no making."""

    @staticmethod
    def is_gone(owner: str, host: str) -> bool:
        """Nothing is proved of any worker."""
        return False

    @staticmethod
    async def _no_snapshot(digest: str) -> Any:
        raise ContractError(f"contract snapshot {digest} is not in the store")

    @staticmethod
    def _no_contract(name: str) -> Any:
        raise NotFound(f"no contract {name!r}")


def make_question(operation_id: str = "op-1", **changes: Any) -> Escalation:
    """The question of an exhausted budget."""
    fields: dict[str, Any] = {
        "escalation_id": "esc-1",
        "operation_id": operation_id,
        "reason": StopReason.REQUEST_BUDGET_EXHAUSTED,
        "detail": None,
        "cause": "request_budget_exhausted:acme",
        "asked_at": NOW.wall,
        "version": 1,
    }
    return Escalation(**{**fields, **changes})


def hostile_operation(operation_id: str = "op-1", status: Status = Status.SUCCEEDED) -> Operation:
    """Every text that others write is hostile."""
    return make_operation(
        operation_id,
        status,
        submitted=Submitted(provider=HOSTILE, account=HOSTILE, job_id=HOSTILE, label=HOSTILE, caller=HOSTILE),
        last_known_state=HOSTILE,
        last_http=HttpFact(200, NOW.wall, NOW.wall, HOSTILE),
        result=ResultPointer(fields={HOSTILE: [HOSTILE, {"x": HOSTILE}]}),
        credential=HOSTILE,
    )


def hostile_events(operation_id: str = "op-1") -> list[AuditEvent]:
    """Two events on two days."""
    return [
        AuditEvent(at=NOW.wall, event=EventName.SUBMITTED, operation_id=operation_id, text=HOSTILE, caller=HOSTILE),
        AuditEvent(
            at=Instant(NOW.wall + 86_400_000),
            event=EventName.POLLED,
            operation_id=operation_id,
            state=HOSTILE,
            http=200,
        ),
    ]


@dataclass(frozen=True)
class Outcome:
    """What one call of the command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one document that it must be."""
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def hardened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often a command hardened its process; this one, which runs many tests, must stay as it is."""
    told: list[str] = []
    monkeypatch.setattr(bridge, "harden", lambda: told.append("hardened"))
    return told


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    """Commands that reach for a core get this one."""
    fake = FakeCore()

    def with_core(_home: Any, job: Callable[[Any], Awaitable[Any]], **_: Any) -> Any:
        async def run() -> Any:
            return await job(fake)

        return asyncio.run(run())

    async def any_credential(*_: Any) -> None:
        """Every name is stored."""

    monkeypatch.setattr(bridge, "with_core", with_core)
    monkeypatch.setattr(bridge, "check_credential", any_credential)
    monkeypatch.setattr(bridge, "without_store", lambda _home: fake)
    monkeypatch.setattr(bridge, "missing_home", lambda _home: None)
    return fake


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run one command line in this process."""

    def run(*argv: str) -> Outcome:
        code = entry.run(argv)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def real_home(tmp_path: Path) -> Path:
    """A home for a real core: instance `lab` of a shipped contract, keys in files; its provider answers nothing."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text(
        '[providers.lab]\ncontract = "example-jobs"\nbase_url = "http://127.0.0.1:9"\n'
        '[audit]\nkey_file = "reading.key"\n'
    )
    return folder
