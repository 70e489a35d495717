#!/usr/bin/env python3
"""How long a console waits until it polls itself, after a `pollconsole run` on the same home ended or was killed.

Goal: within about 2 s after a clean end. Killed with SIGKILL: as soon, for its lock is free (proof of death); stopped
with SIGSTOP: never while its heartbeat is young (told as `stopped_taken_over`, which must be false).

    python tests/bench/console_takeover.py [--live 200] [--rounds 3]
"""

import argparse
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from _console import NOT_INHERITED, ROOT, Pty, console, make_home, median, noise, told

STOPPED_S = 8
BEAT_S = 1.5
"""Its first heartbeat is written with its first look."""


def run_core(home):
    env = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "core"), str(ROOT / "console")])
    core = subprocess.Popen(console(home, "run"), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    core.stderr.readline()  # it says that it runs
    time.sleep(BEAT_S)
    return core


def after(home, number):
    """Seconds from the end of the core's process to ACTIVE on the console."""
    core = run_core(home)
    try:
        with Pty(console(home)) as p:
            p.until("ATTACHED", limit=30)
            core.send_signal(number)
            core.wait(30)
            began = time.perf_counter()
            return p.until("ACTIVE", limit=60) - began
    finally:
        if core.poll() is None:
            core.kill()
            core.wait()


def stopped(home):
    """Whether the console takes over from a core that was stopped (it may go on at any moment)."""
    core = run_core(home)
    try:
        with Pty(console(home)) as p:
            p.until("ATTACHED", limit=30)
            core.send_signal(signal.SIGSTOP)
            p.run_for(STOPPED_S)
            return "ACTIVE" in p.screen.text()
    finally:
        core.send_signal(signal.SIGCONT)
        core.kill()
        core.wait()


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--live", type=int, default=200)
    ap.add_argument("--rounds", type=int, default=3)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = make_home(Path(scratch) / "home", a.live)
        told(
            bench="takeover",
            after_clean_end_s=round(median([after(home, signal.SIGTERM) for _ in range(a.rounds)]), 1),
            after_kill_s=round(median([after(home, signal.SIGKILL) for _ in range(a.rounds)]), 1),
            stopped_taken_over=stopped(home),
            **noise(),
        )
