#!/usr/bin/env python3
"""Do the counters survive kill -9? Starts a durable peer, kills its whole process group with SIGKILL in mid-run,
starts it again with --resume, and compares what the peer counted with what the job server saw.

Requirements: standard library; the peers' own. Usage:
    python tests/bench/kill9.py [--jobs 60 --polls 10 --latency-ms 20 --kills 1] PEER...
    python tests/bench/kill9.py --cmd 'NAME=... {url} {jobs} {polls} {c} {workdir}' NAME

seen      requests the server got (both lives)      counted   the peer's durable count at the end
uncounted seen - counted: requests that left no trace in the count (> 0: the counter undercounts: sent before counted)
over      counted - seen when positive: counted and then not sent (allowed: the price of counting first)
finished  operations that ended `succeeded` in the peer's store / all
again     polls after the server had said succeeded
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from _common import JobServer, command, last_json


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("peers", nargs="+")
    ap.add_argument("--jobs", type=int, default=60)
    ap.add_argument("--polls", type=int, default=10)
    ap.add_argument("--latency-ms", type=float, default=20)
    ap.add_argument("--kills", type=int, default=1)
    ap.add_argument("--timeout", type=float, default=300)
    ap.add_argument("--cmd", action="append", default=[])
    ap.add_argument("--out", default=None)
    a = ap.parse_intermixed_args()
    cmds = dict(x.split("=", 1) for x in a.cmd)
    print("| peer | kills at (polls seen) | seen | counted | uncounted | over | finished | again |")
    print("|---|---|---|---|---|---|---|---|")
    for p in a.peers:
        srv = JobServer(a.polls, a.latency_ms)
        wd = tempfile.mkdtemp(prefix="pollkill-")
        jobs, cmd = command(p, a, srv.url, wd, cmds)
        total, at = jobs * a.polls, []
        try:
            for k in range(a.kills):
                goal = total * (k + 1) // (a.kills + 1)
                proc = subprocess.Popen(
                    cmd + (["--resume"] if k else []),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                t = time.time()
                while srv.stats()["requests"] < goal and proc.poll() is None and time.time() - t < a.timeout:
                    time.sleep(0.02)
                os.killpg(proc.pid, signal.SIGKILL)
                proc.wait()
                at.append(srv.stats()["requests"])
                time.sleep(0.5)
            try:
                r = subprocess.run([*cmd, "--resume"], capture_output=True, text=True, timeout=a.timeout)
                d = last_json(r.stdout)
            except (subprocess.TimeoutExpired, IndexError) as e:
                d = {
                    "counted": 0,
                    "succeeded": 0,
                    "error": type(e).__name__ + ": " + (r.stderr[-300:] if isinstance(e, IndexError) else ""),
                }
            st = srv.stats()
            seen, counted = st["requests"], d["counted"]
            row = {
                "peer": p,
                "at": at,
                "seen": seen,
                "counted": counted,
                "uncounted": max(0, seen - counted),
                "over": max(0, counted - seen),
                "finished": f"{d['succeeded']}/{jobs}",
                "again": st["after_success"],
                "error": d.get("error"),
            }
            print(
                "| {peer} | {at} | {seen} | {counted} | {uncounted} | {over} | {finished} | {again} |".format(**row),
                d.get("error") or "",
                flush=True,
            )
            if a.out:
                with open(a.out, "a") as f:
                    f.write(json.dumps(row) + "\n")
        finally:
            srv.stop()
            shutil.rmtree(wd, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
