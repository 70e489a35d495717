#!/usr/bin/env python3
"""What a watched page costs: every row in sight counts down two times, once a second; no poll is due.

One console on a real pty, 10,000 live operations; processor time of its process and the bytes that it writes, after it
came to rest. Goal: less than 10 % of one core at 80x24 and at 140x40.

    python tests/bench/console_repaint.py [--live 10000] [--seconds 30]
"""

import argparse
import tempfile
from pathlib import Path

from _console import Pty, console, make_home, noise, proc_cpu, told

SIZES = ((80, 24), (140, 40))
MINUTE = 60_000

if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--live", type=int, default=10_000)
    ap.add_argument("--seconds", type=float, default=30)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = make_home(Path(scratch) / "home", a.live, due_in=25 * MINUTE, ends_in=59 * MINUTE)
        for columns, rows in SIZES:
            with Pty(console(home), columns=columns, rows=rows) as p:
                p.until("op-0000")
                p.run_for(5)
                cpu, sent = proc_cpu(p.pid), len(p.raw)
                p.run_for(a.seconds)
                told(
                    bench="repaint",
                    size=f"{columns}x{rows}",
                    percent_of_a_core=round(100 * (proc_cpu(p.pid) - cpu) / a.seconds, 1),
                    bytes_per_s=round((len(p.raw) - sent) / a.seconds),
                    frames_per_s=round(p.raw[sent:].count(b"\x1b[?2026l") / a.seconds, 1),
                    **noise(),
                )
