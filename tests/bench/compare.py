#!/usr/bin/env python3
"""Runs peers against the same local job server, in turns, and prints the medians: what durable polling costs.

Requirements: standard library; the peers' own. Usage:
    python tests/bench/compare.py [--jobs 200 --polls 10 --concurrency 32 --rounds 5] httpx PEER...

Rounds are interleaved (A B A B ...), so that a slow minute of the machine hits all peers. A peer's round counts only if
the server saw exactly jobs x polls requests and every job ended; otherwise the run ends with status 1.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile

from _common import JobServer, command, last_json, median

COLUMNS = ("polls_per_s", "cpu_s_per_1k", "peak_rss_mb", "device_bytes_per_poll")


def once(spec, a, srv, cmds):
    """-> the peer's report of one round, checked against what the server saw."""
    srv.reset(a.polls)
    workdir = tempfile.mkdtemp(prefix="pollbench-")
    try:
        jobs, line = command(spec, a, srv.url, workdir, cmds)
        r = subprocess.run(line, capture_output=True, text=True, timeout=a.timeout)
        if r.returncode:
            raise SystemExit(f"{spec} ended with {r.returncode}: {r.stderr[-1000:]}")
        report, seen = last_json(r.stdout), srv.stats()
        if seen["requests"] != jobs * a.polls or seen["succeeded"] != jobs:
            raise SystemExit(f"{spec}: the server saw {seen}, wanted {jobs} jobs of {a.polls} polls")
        return report
    finally:
        shutil.rmtree(workdir, ignore_errors=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("peers", nargs="+")
    ap.add_argument("--jobs", type=int, default=200)
    ap.add_argument("--polls", type=int, default=10)
    ap.add_argument("--concurrency", type=int, default=32)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--latency-ms", type=float, default=0)
    ap.add_argument("--timeout", type=float, default=300)
    ap.add_argument("--cmd", action="append", default=[], help="NAME=COMMAND with {url} {jobs} {polls} {c} {workdir}")
    ap.add_argument("--out", default=None, help="append every round as one JSON line")
    a = ap.parse_intermixed_args()
    cmds = dict(x.split("=", 1) for x in a.cmd)
    reports = {p: [] for p in a.peers}
    with JobServer(a.polls, a.latency_ms) as srv:
        for _ in range(a.rounds):
            for p in a.peers:
                reports[p].append(once(p, a, srv, cmds))
                if a.out:
                    with open(a.out, "a") as f:
                        f.write(json.dumps({"peer": p, **reports[p][-1]}) + "\n")
    print(f"| peer | {' | '.join(COLUMNS)} | of the first's polls_per_s |\n|{'---|' * (len(COLUMNS) + 2)}")
    first = median([r["polls_per_s"] for r in reports[a.peers[0]]])
    for p, rows in reports.items():
        cells = [f"{median([r.get(c, 0) for r in rows]):g}" for c in COLUMNS]
        share = median([r["polls_per_s"] for r in rows]) / first if first else 0
        print(f"| {p} | {' | '.join(cells)} | {share:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
