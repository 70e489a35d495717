#!/usr/bin/env python3
"""How many fsync/fdatasync calls a poll costs each durable peer (is it durable against power loss, not just kill -9?).

Requirements: strace (apt); the peers' own.
    python tests/bench/fsyncs.py [--jobs 30] PEER...
The whole process tree is counted, start-up included, so the counts of a run with 0-ish jobs (--jobs 1) are taken off.
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile

from _common import JobServer, command


def count(p, a, jobs, srv, cmds):
    srv.reset(a.polls)
    wd = tempfile.mkdtemp(prefix="pollsync-")
    out = os.path.join(wd, "trace")
    spec = p + ("," if ":" in p else ":") + f"n={jobs}"
    try:
        _, cmd = command(spec, a, srv.url, os.path.join(wd, "w"), cmds)
        subprocess.run(
            ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,msync", "-o", out, *cmd],
            capture_output=True,
            timeout=a.timeout,
        )
        with open(out) as f:
            # the kernel prints an interrupted call twice (unfinished, resumed): count the openings
            return sum(1 for x in f if re.search(r" (fsync|fdatasync|sync_file_range|msync)\(", x)), srv.stats()[
                "requests"
            ]
    finally:
        shutil.rmtree(wd, ignore_errors=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("peers", nargs="+")
    ap.add_argument("--jobs", type=int, default=30)
    ap.add_argument("--polls", type=int, default=10)
    ap.add_argument("--timeout", type=float, default=200)
    ap.add_argument("--cmd", action="append", default=[])
    a = ap.parse_intermixed_args()
    cmds = dict(x.split("=", 1) for x in a.cmd)
    print("| peer | syncs | polls | syncs per poll |\n|---|---|---|---|")
    with JobServer(a.polls) as srv:
        for p in a.peers:
            base, _ = count(p, a, 1, srv, cmds)
            n, polls = count(p, a, a.jobs, srv, cmds)
            print(f"| {p} | {n - base} | {polls - a.polls} | {(n - base) / max(1, polls - a.polls):.3f} |", flush=True)


if __name__ == "__main__":
    main()
