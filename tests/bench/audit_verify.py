"""What `audit verify` costs without a key: links a second out of a real store, beside a bare loop that only hashes.

Run: python tests/bench/audit_verify.py [--links N] [--runs N]. Prints JSON. It makes a store of its own in a temporary
folder, with ordinary events and a checkpoint every 256 links. Memory is the peak of a process that does nothing else,
for a tenth of the links and for all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "core")]

from pollcore.adapters.audit_verify import Wanted, verify_file, verify_store, write_evidence  # noqa: E402
from pollcore.adapters.store import connecting, opening  # noqa: E402
from tests.audit.logs import Log  # noqa: E402

BATCH = 1_000


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--links", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", metavar="STORE", help="verify STORE and print the peak of memory, KiB")
    asked = parser.parse_args()
    if asked.only:
        assert verify_store(Path(asked.only), Wanted()).verdict.value == "intact"
        # not ru_maxrss: that of a child begins with its parent's
        print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pollconsole.db")
        key, count = fill(path, asked.links)
        figures = [one(Path(path), key, count) for _ in range(asked.runs)]
        small = os.path.join(folder, "small.db")
        fill(small, asked.links // 10)
        memory = {"tenth": peak(small), "all": peak(path)}
    best = max(figures, key=lambda one: one["links_a_second"])
    print(json.dumps({"links": count, "best": best, "peak_kib": memory, "runs": figures}, indent=2))
    return 0


def fill(path: str, links: int) -> tuple[tuple[bytes, bytes], int]:
    """A store with a chain of about *links*, written by the real writer; the key that was kept, how many links."""
    log = Log()
    conn = opening.open_writer(path)
    conn.execute("PRAGMA synchronous=OFF")
    conn.execute("INSERT INTO document(kind, name, value) VALUES('audit', 'log', ?)", (log.state.encoded(),))
    done = 0
    while log.rows[-1][0] < links:
        log.add(BATCH)
        rows = log.rows[1:] if done else log.rows
        conn.execute("BEGIN")
        conn.executemany("INSERT INTO audit(seq, blob, hash) VALUES(?,?,?)", rows)
        conn.executemany(
            "INSERT INTO document(kind, name, value) VALUES('audit_note', ?, ?)",
            [(f"{seq:020d}", text.encode()) for seq, text in log.notes],
        )
        conn.execute("COMMIT")
        done, log.rows, log.notes = log.rows[-1][0], log.rows[-1:], []
    log.note()
    seq, text = log.notes[0]
    conn.execute(
        "INSERT OR IGNORE INTO document(kind, name, value) VALUES('audit_note', ?, ?)", (f"{seq:020d}", text.encode())
    )
    conn.close()
    return (log.log_id, log.public), done


def peak(path: str) -> int:
    """Peak of memory of a process that verifies *path* and nothing else, KiB."""
    made = subprocess.run([sys.executable, __file__, "--only", path], capture_output=True, text=True, check=True)
    return int(made.stdout)


def one(path: Path, key: tuple[bytes, bytes], count: int) -> dict[str, float]:
    """One measurement: the store, the evidence file, and the bare loop over the same bytes in memory."""
    began = time.perf_counter()
    report = verify_store(path, Wanted(key=key))
    took = time.perf_counter() - began
    assert report.verdict.value == "intact", report.faults
    evidence = path.with_name("evidence.jsonl")
    write_evidence(path, evidence)
    began = time.perf_counter()
    assert verify_file(evidence, Wanted(key=key)).verdict.value == "intact"
    file_took = time.perf_counter() - began
    evidence.unlink()
    bare = bare_loop(path)
    return {
        "links_a_second": round(count / took),
        "bare_links_a_second": round(count / bare),
        "share_of_bare": round(bare / took, 3),
        "file_links_a_second": round(count / file_took),
    }


def bare_loop(path: Path) -> float:
    """Seconds for SHA-256 over the same bytes, each behind the hash before it, already in memory."""
    conn = connecting.connect(str(path), read_only=True)
    blobs = [bytes(blob) for (blob,) in conn.execute("SELECT blob FROM audit ORDER BY seq")]
    conn.close()
    began = time.perf_counter()
    before, sha = b"", hashlib.sha256
    for blob in blobs:
        before = sha(blob + before).digest()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
