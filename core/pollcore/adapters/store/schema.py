"""The tables: what they hold, what may never change in them, and how an older file becomes a newer one.

Job: DDL, triggers, the schema version, migrations. Must not know: pragmas, files, who reads or writes.

Layout: one poll touches as few scattered pages as possible. Rows that only grow (request, observation, event, audit)
have no index by operation: an event names the one before it of the same operation (`prev`), the operation names its
newest (`last_event`); an observation is keyed by its intent's id. `touched` lists which row each change number wrote.
They carry no foreign keys: they leave for an archive alone, and their numbers are read in the transaction that
inserts them.
Source: spec O6, E7, S7; reliability I2-I6, I11, I18.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pollcore.facts import Status, StoreUnusable

if TYPE_CHECKING:
    from sqlite_utils import Database

SCHEMA: Final = 4
APPLICATION_ID: Final = 0x706F6C6C
"""`poll`: marks the file as ours, so that a foreign database is never migrated."""

OPEN_STATUSES: Final = tuple(s.value for s in Status if not s.is_end)
OPEN: Final = "status IN ('waiting','held','awaiting_approval','escalated')"
TIMED: Final = "status IN ('waiting','held','awaiting_approval')"
"""Statuses whose wall deadline has to be watched."""

APPEND_ONLY: Final = ("request", "intent", "observation", "event", "audit")

_TABLES: Final = f"""
CREATE TABLE meta(one INTEGER PRIMARY KEY CHECK(one = 1), schema INTEGER NOT NULL, change INTEGER NOT NULL,
  intents INTEGER NOT NULL, boot INTEGER NOT NULL) STRICT;
CREATE TABLE boot(no INTEGER PRIMARY KEY, boot_id TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE name(no INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE writer(token TEXT PRIMARY KEY, mark INTEGER NOT NULL) STRICT;
CREATE TABLE contract(no INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, name TEXT NOT NULL, text TEXT NOT NULL,
  instance TEXT NOT NULL) STRICT;
CREATE TABLE submission(op INTEGER PRIMARY KEY, digest BLOB NOT NULL, submitted TEXT NOT NULL, status_url BLOB,
  idempotency_key BLOB) STRICT;
CREATE TABLE operation(
  op INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, provider TEXT NOT NULL, account TEXT NOT NULL, job_id TEXT NOT NULL,
  started_at INTEGER NOT NULL, submitted_at INTEGER NOT NULL, carried INTEGER NOT NULL,
  status TEXT NOT NULL, version INTEGER NOT NULL, change INTEGER NOT NULL, epoch INTEGER NOT NULL,
  lease_owner INTEGER, lease_until INTEGER, lease_ms INTEGER, renewed INTEGER NOT NULL DEFAULT 0,
  contract INTEGER NOT NULL REFERENCES contract(no), credential TEXT, boot INTEGER NOT NULL REFERENCES boot(no),
  deadline_at INTEGER NOT NULL, deadline_boot INTEGER NOT NULL, useful_until INTEGER, provider_expires_at INTEGER,
  max_status_requests INTEGER NOT NULL, status_requests_used INTEGER NOT NULL,
  max_transport_failures INTEGER NOT NULL, transport_failures_used INTEGER NOT NULL CHECK(transport_failures_used >= 0),
  max_rate_limited INTEGER NOT NULL, rate_limited_used INTEGER NOT NULL CHECK(rate_limited_used >= 0),
  completed_polls INTEGER NOT NULL, rate_limited_in_a_row INTEGER NOT NULL,
  next_poll_at INTEGER, due_boot INTEGER, delay_source TEXT, guidance_until INTEGER,
  hold_until INTEGER, holds_used INTEGER NOT NULL, check_once INTEGER NOT NULL, cancel_granted INTEGER NOT NULL,
  extensions_used INTEGER NOT NULL,
  last_known_state TEXT, http_code INTEGER, http_sent_at INTEGER, http_answered_at INTEGER, http_request_id TEXT,
  last_fault TEXT, last_fault_at INTEGER, last_fault_sent INTEGER NOT NULL,
  memory TEXT, memory_sealed BLOB,
  stop_reason TEXT, stop_detail TEXT, stop_explanation TEXT, result TEXT, result_sealed BLOB,
  last_event INTEGER,
  CHECK(status_requests_used BETWEEN carried AND max(carried, max_status_requests))) STRICT;
CREATE UNIQUE INDEX operation_job ON operation(provider, account, job_id) WHERE {OPEN};
CREATE INDEX operation_every_job ON operation(job_id);
CREATE INDEX operation_due ON operation(due_boot) WHERE due_boot IS NOT NULL AND lease_owner IS NULL;
CREATE INDEX operation_deadline ON operation(deadline_at) WHERE {TIMED};
CREATE INDEX operation_leased ON operation(provider) WHERE lease_owner IS NOT NULL;
CREATE TABLE touched(change INTEGER PRIMARY KEY, op INTEGER NOT NULL) STRICT;
CREATE TABLE request(id INTEGER PRIMARY KEY, boot INTEGER NOT NULL, boot_no INTEGER NOT NULL, provider INTEGER NOT NULL,
  origin INTEGER NOT NULL, method TEXT NOT NULL, owner INTEGER NOT NULL) STRICT;
CREATE INDEX request_minute ON request(provider, boot_no, boot);
CREATE TABLE intent(operation INTEGER NOT NULL, n INTEGER NOT NULL CHECK(n > 0),
  id INTEGER NOT NULL, request INTEGER NOT NULL, step TEXT NOT NULL, epoch INTEGER NOT NULL,
  at INTEGER NOT NULL, boot INTEGER NOT NULL, PRIMARY KEY(operation, n)) STRICT, WITHOUT ROWID;
CREATE TABLE observation(intent INTEGER PRIMARY KEY, operation INTEGER NOT NULL, n INTEGER NOT NULL,
  answered_at INTEGER NOT NULL, http_code INTEGER, fault TEXT, state TEXT, verdict TEXT NOT NULL,
  decision TEXT NOT NULL, draw REAL, envelope BLOB) STRICT;
CREATE TABLE last_body(op INTEGER PRIMARY KEY, n INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE event(seq INTEGER PRIMARY KEY, operation INTEGER, prev INTEGER,
  at INTEGER NOT NULL, event TEXT NOT NULL, state_before TEXT, state TEXT, http INTEGER, fault TEXT, request_id TEXT,
  planned_at INTEGER, sent_at INTEGER, delay_source TEXT, next_poll_at INTEGER, retry_after TEXT,
  requests_used INTEGER, max_requests INTEGER, deadline_at INTEGER, decision TEXT, reason TEXT, detail TEXT,
  operator TEXT, caller TEXT, text TEXT, notes TEXT) STRICT;
CREATE TABLE audit(seq INTEGER PRIMARY KEY, blob BLOB NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE TABLE escalation(escalation_id TEXT PRIMARY KEY, operation INTEGER NOT NULL REFERENCES operation(op),
  reason TEXT NOT NULL, detail TEXT, cause TEXT NOT NULL, asked_at INTEGER NOT NULL, version INTEGER NOT NULL,
  asked_by TEXT, because TEXT, minutes INTEGER NOT NULL, checks INTEGER NOT NULL, decided_at INTEGER, decision TEXT,
  operator TEXT, decision_text TEXT, expires_at INTEGER) STRICT;
CREATE UNIQUE INDEX escalation_open ON escalation(operation) WHERE decided_at IS NULL;
CREATE INDEX escalation_operation ON escalation(operation);
CREATE TABLE "grant"(grant_id TEXT PRIMARY KEY, operation INTEGER NOT NULL REFERENCES operation(op),
  escalation_id TEXT, version INTEGER NOT NULL, granted_at INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE INDEX grant_operation ON "grant"(operation);
CREATE TABLE action(action_id TEXT PRIMARY KEY, operation INTEGER NOT NULL REFERENCES operation(op),
  kind TEXT NOT NULL, outcome TEXT NOT NULL, at INTEGER NOT NULL, answered_at INTEGER, http_code INTEGER, detail TEXT,
  grant_id TEXT) STRICT;
CREATE INDEX action_operation ON action(operation);
CREATE TABLE cooldown(provider TEXT NOT NULL, account TEXT NOT NULL, credential TEXT NOT NULL,
  until INTEGER NOT NULL, until_boot INTEGER NOT NULL, PRIMARY KEY(provider, account, credential)) STRICT;
CREATE TABLE origin_state(origin TEXT NOT NULL, account TEXT NOT NULL, faults_in_a_row INTEGER NOT NULL,
  down_since INTEGER, probe_operation TEXT, probe_until_boot INTEGER, PRIMARY KEY(origin, account)) STRICT;
CREATE TABLE denial(credential TEXT NOT NULL, origin TEXT NOT NULL, digest TEXT NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(credential, origin)) STRICT;
CREATE TABLE pause(provider TEXT NOT NULL, account TEXT NOT NULL, until INTEGER NOT NULL,
  PRIMARY KEY(provider, account)) STRICT;
CREATE TABLE worker(owner TEXT PRIMARY KEY, pid INTEGER NOT NULL, host TEXT NOT NULL, kind TEXT NOT NULL,
  started_at INTEGER NOT NULL, beat_at INTEGER NOT NULL, beat_boot INTEGER NOT NULL, boot_id TEXT NOT NULL) STRICT;
CREATE TABLE document(kind TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY(kind, name)) STRICT;
INSERT INTO meta(one, schema, change, intents, boot) VALUES(1, 1, 0, 0, 0);
"""


def _trigger(table: str, verb: str) -> tuple[str, str]:
    name = f"{table}_no_{verb.lower()}"
    body = f"SELECT RAISE(ABORT, '{table}: rows are never changed or removed')"
    return name, f"CREATE TRIGGER {name} BEFORE {verb} ON {table} BEGIN {body}; END"


_FIRST_TRIGGERS: Final[dict[str, str]] = dict(
    [_trigger(table, verb) for table in APPEND_ONLY for verb in ("UPDATE", "DELETE")]
    + [
        (
            "operation_no_delete",
            "CREATE TRIGGER operation_no_delete BEFORE DELETE ON operation "
            "BEGIN SELECT RAISE(ABORT, 'operation: rows are never removed'); END",
        ),
    ]
)
_ARCHIVED: Final = {
    "intent": "NOT EXISTS(SELECT 1 FROM archived WHERE op=OLD.operation)",
    "observation": "NOT EXISTS(SELECT 1 FROM archived WHERE op=OLD.operation)",
    "request": "OLD.id > (SELECT coalesce(max(requests_to), 0) FROM archive)",
    "event": "OLD.seq > (SELECT coalesce(max(events), 0) FROM archive)",
    "audit": "OLD.seq > (SELECT coalesce(max(last), 0) FROM archive)",
}
"""Rows that no archive covers."""


def _kept(table: str, where: str) -> tuple[str, str]:
    name = f"{table}_no_delete"
    body = f"SELECT RAISE(ABORT, '{table}: rows are never changed or removed, but those that an archive holds')"
    return name, f"CREATE TRIGGER {name} BEFORE DELETE ON {table} WHEN {where} BEGIN {body}; END"


TRIGGERS: Final[dict[str, str]] = {
    **_FIRST_TRIGGERS,
    **dict(_kept(table, where) for table, where in _ARCHIVED.items()),
    **dict(_trigger(table, verb) for table in ("archive", "archived") for verb in ("UPDATE", "DELETE")),
}
"""Asserted at every start: rebuilding a table drops its triggers without a word."""

Step = Callable[["Database"], None]
"""One migration: from the schema before it to its own; runs inside the one write transaction."""


def create(db: Database) -> None:
    """Schema 1: all tables. One statement at a time, because executescript would commit first."""
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            db.conn.execute(statement)
    for statement in _FIRST_TRIGGERS.values():
        db.conn.execute(statement)


_APPROVALS: Final = """
CREATE TABLE approval(grant_id TEXT PRIMARY KEY, operation INTEGER NOT NULL REFERENCES operation(op),
  digest TEXT NOT NULL, number INTEGER NOT NULL, purpose TEXT NOT NULL, credential TEXT, granted_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL, boot INTEGER NOT NULL, expires_boot INTEGER NOT NULL, used_at INTEGER, used_for TEXT,
  replaced_at INTEGER) STRICT;
CREATE UNIQUE INDEX approval_unused ON approval(operation) WHERE used_at IS NULL AND replaced_at IS NULL;
CREATE TABLE session(session_id TEXT PRIMARY KEY, credential TEXT NOT NULL, owner TEXT NOT NULL, binding TEXT NOT NULL,
  started_at INTEGER NOT NULL, until INTEGER NOT NULL, boot INTEGER NOT NULL, until_boot INTEGER NOT NULL,
  calls INTEGER NOT NULL, used INTEGER NOT NULL CHECK(used BETWEEN 0 AND calls), granted_by TEXT NOT NULL,
  grant_id TEXT NOT NULL, ended_at INTEGER, ended TEXT) STRICT;
CREATE UNIQUE INDEX session_open ON session(credential, owner) WHERE ended_at IS NULL;
CREATE TABLE screen(owner TEXT PRIMARY KEY, started_at INTEGER NOT NULL, beat_at INTEGER NOT NULL) STRICT;
ALTER TABLE escalation ADD COLUMN seen_at INTEGER;
ALTER TABLE escalation ADD COLUMN left_ms INTEGER;
"""


def approvals(db: Database) -> None:
    """Schema 2: approvals of one call, sessions, and the time that a question has (G6, G7)."""
    for statement in _APPROVALS.split(";\n"):
        if statement.strip():
            db.conn.execute(statement)


_QUESTIONS_ASIDE: Final = """
CREATE TABLE contract_use(digest TEXT PRIMARY KEY, use TEXT NOT NULL CHECK(use IN ('read_only','action')),
  decided_at INTEGER NOT NULL, operator TEXT NOT NULL, grant_id TEXT NOT NULL) STRICT;
CREATE TABLE contract_seen(digest TEXT PRIMARY KEY, seen_at INTEGER NOT NULL, operator TEXT NOT NULL) STRICT;
CREATE TABLE credential_question(escalation_id TEXT PRIMARY KEY, credential TEXT NOT NULL, asked TEXT NOT NULL,
  asked_at INTEGER NOT NULL, decided_at INTEGER, decision TEXT, operator TEXT, decision_text TEXT) STRICT;
CREATE UNIQUE INDEX credential_question_open ON credential_question(credential) WHERE decided_at IS NULL;
CREATE TABLE credential_grant(grant_id TEXT PRIMARY KEY,
  escalation_id TEXT NOT NULL UNIQUE REFERENCES credential_question(escalation_id),
  granted_at INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
"""


def questions_aside(db: Database) -> None:
    """Schema 3: what operators said and saw of contracts, and questions that belong to a credential (X7, G2, G5)."""
    for statement in _QUESTIONS_ASIDE.split(";\n"):
        if statement.strip():
            db.conn.execute(statement)


_ARCHIVES: Final = """
CREATE TABLE archive(no INTEGER PRIMARY KEY, at INTEGER NOT NULL, before INTEGER NOT NULL, path TEXT NOT NULL,
  bytes INTEGER NOT NULL, sha256 BLOB NOT NULL, after INTEGER NOT NULL, last INTEGER NOT NULL, hash BLOB NOT NULL,
  epoch INTEGER NOT NULL, signature BLOB NOT NULL, operations INTEGER NOT NULL, charges INTEGER NOT NULL,
  observations INTEGER NOT NULL, requests INTEGER NOT NULL, requests_to INTEGER NOT NULL,
  events INTEGER NOT NULL) STRICT;
CREATE TABLE archived(op INTEGER PRIMARY KEY, sends INTEGER NOT NULL,
  archive INTEGER NOT NULL REFERENCES archive(no)) STRICT;
"""


def archives(db: Database) -> None:
    """Schema 4: what was archived, and the sends of each operation whose intents went with it (S7, B2, O6)."""
    for statement in _ARCHIVES.split(";\n"):
        if statement.strip():
            db.conn.execute(statement)
    for name, statement in TRIGGERS.items():
        if _FIRST_TRIGGERS.get(name) != statement:
            db.conn.execute(f"DROP TRIGGER IF EXISTS {name}")
            db.conn.execute(statement)


STEPS: Final[dict[int, Step]] = {1: create, 2: approvals, 3: questions_aside, 4: archives}
"""Schema number -> the step that leads to it."""


def version(conn: Any, where: str) -> int:
    """The schema of the file; 0: empty.

    Raises:
        StoreUnusable: the file belongs to another program.
    """
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()}
    if "meta" not in tables:
        if tables:
            raise StoreUnusable(f"store {where}: this is the database of another program: name another home")
        return 0
    if conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreUnusable(f"store {where}: this is the database of another program: name another home")
    return int(conn.execute("SELECT schema FROM meta").fetchone()[0])


def assert_triggers(conn: Any, where: str) -> None:
    """Raise StoreUnusable if a trigger that guards history is missing or altered, or one is not ours."""
    present = dict(conn.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'").fetchall())
    wrong = sorted(name for name, sql in TRIGGERS.items() if present.get(name) != sql)
    if wrong:
        raise StoreUnusable(
            f"store {where}: the guards {', '.join(wrong)} are missing or altered; history could be rewritten: "
            "keep the file as evidence and put a backup in its place"
        )
    if foreign := sorted(present.keys() - TRIGGERS.keys()):
        raise StoreUnusable(
            f"store {where}: the triggers {', '.join(foreign)} are not of this program; they change records unseen: "
            "keep the file as evidence and put a backup in its place"
        )
