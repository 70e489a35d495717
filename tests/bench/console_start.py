#!/usr/bin/env python3
"""From the start of the process to the first rows: the console on a home of 10,000 live operations, against a bare app.

Real pty, same Textual, in turns (A B A B ...). Goal: at most 1.5 of the bare app's first paint, aim 1.3. `cpu_`: of the
process until then, all its threads (the child that reads the rows ahead is none of them).

    python tests/bench/console_start.py [--live 10000] [--rounds 9]
"""

import argparse
import sys
import tempfile
from pathlib import Path

from _console import Pty, console, make_home, median, noise, told

BARE = str(Path(__file__).parent / "bare_app.py")


def start(argv, words):
    """Seconds until *words* stood in a whole frame, and processor seconds of the process until then."""
    with Pty(argv) as p:
        return p.until(words) - p.started, p.cpu_s()


def figures(of, bare, ours):
    return {
        f"{of}bare_s": round(median(bare), 3),
        f"{of}console_s": round(median(ours), 3),
        f"{of}best": [round(min(bare), 3), round(min(ours), 3)],
        f"{of}ratio": round(median([c / b for b, c in zip(bare, ours, strict=True)]), 2),
    }


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--live", type=int, default=10_000)
    ap.add_argument("--rounds", type=int, default=9)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = make_home(Path(scratch) / "home", a.live)
        ours, bare = [], []
        for n in range(a.rounds + 1):
            pair = start([sys.executable, BARE], "row-000001"), start(console(home), "op-0000")
            if n:  # the first pair warms the caches
                bare.append(pair[0])
                ours.append(pair[1])
        told(
            bench="start",
            live=a.live,
            **figures("", [s for s, _ in bare], [s for s, _ in ours]),
            **figures("cpu_", [s for _, s in bare], [s for _, s in ours]),
            **noise(),
        )
