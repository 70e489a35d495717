"""Shared by the console's bench scripts: a pty that can be slow, homes of any size, the machine's noise.

Knows nothing of what is measured. Requirements: Linux; the project itself. Nothing is drawn here: a terminal that
draws would be part of what is timed, so a frame is known by the words that it holds.
"""

import asyncio
import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "core"), str(ROOT / "console")]

from _common import TICK, median, proc_cpu  # noqa: E402, F401

COMPILED = os.path.join(tempfile.gettempdir(), f"pollbench-compiled-{os.getuid()}")
NOT_INHERITED = ("COLUMNS", "LINES", "POLLCONSOLE_HOME", "PYTHONDONTWRITEBYTECODE")
TOKEN = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07]*\x07|[@-Z\\\\^_78])|[\r\n]")
FRAME_BEGINS, FRAME = "\x1b[?2026h", "\x1b[?2026l"
"""Beginning and end of a frame (synchronized output)."""
CONTRACT = """
schema = 1
name = "bench"
title = "bench job server"
sources = ["tests/bench/job_server.py"]
requires_base_url = true
[credential]
kind = "none"
[status]
url = "{base_url}/jobs/{job_id}"
observation = "read_only"
evidence = "the bench server counts and answers"
[state]
value = "body.status"
[states]
waiting = ["running"]
succeeded = ["succeeded"]
[schedule]
base_delay = "%(delay)ss"
min_delay = "%(delay)ss"
[limits]
deadline_basis = "a benchmark ends"
[limits.default]
deadline = "20d"
max_status_requests = 100000
max_transport_failures = 1000
max_rate_limited = 1000
"""


class Screen:
    """The characters that a terminal would show. Colours, modes and titles are passed over."""

    def __init__(self, columns, rows):
        self.rows = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0
        self.whole = True
        """No frame is half drawn."""
        self._rest = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.rows)

    def feed(self, data):
        text, self._rest = self._rest + self._decode(data), ""
        at = 0
        for found in TOKEN.finditer(text):
            self._put(text[at : found.start()])
            at = found.end()
            token = found[0]
            if token == "\n":
                self.y += 1
            elif token == "\r":
                self.x = 0
            elif token[-1] == "H":
                y, _, x = token[2:-1].partition(";")
                self.y, self.x = int(y or 1) - 1, int(x or 1) - 1
            elif token == FRAME_BEGINS:
                self.whole = False
            elif token == FRAME:
                self.whole = True
            elif token[-1] == "J" and token[1] == "[":
                self.rows = [[" "] * len(row) for row in self.rows]
        rest = text[at:]
        cut = rest.rfind("\x1b")
        if cut >= 0 and len(rest) - cut < 64:
            rest, self._rest = rest[:cut], rest[cut:]
        self._put(rest)

    def _put(self, words):
        if not 0 <= self.y < len(self.rows):
            return
        row = self.rows[self.y]
        for character in words:
            if self.x < len(row):
                row[self.x] = character
            self.x += 1


class Pty:
    """One program on one pty whose other side reads at most *drain* bytes a second (None: at once)."""

    def __init__(self, argv, *, columns=120, rows=40, drain=None, answers=True, env=None):
        self.drain, self.answers = drain, answers
        self.raw = bytearray()
        """Everything that was read."""
        self.stalled = False
        """While True nothing is read."""
        self.exit_code = None
        self.replies = 0
        self.screen = Screen(columns, rows)
        self.read_at = 0.0
        self._budget, self._budget_at = 0.0, time.perf_counter()
        variables = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
        path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "console")])
        variables |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": path}
        # as installed: compiled once, wherever this checkout's own caches may not be written
        variables |= {"PYTHONPYCACHEPREFIX": COMPILED, **(env or {})}
        self.started = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execve(argv[0], list(argv), variables)
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *a):
        self.close()

    def pump(self, wait):
        """Read once, within *wait* seconds; the bytes that came."""
        if self.exit_code is not None:
            time.sleep(wait)
            return b""
        want = 65536 if self.drain is None else self._allowance()
        if self.stalled or want < 1:
            time.sleep(min(wait, 0.01))
            return b""
        if not select.select([self.fd], [], [], wait)[0]:
            return b""
        try:
            data = os.read(self.fd, want)
        except OSError:
            data = b""
        if not data:
            _, status = os.waitpid(self.pid, 0)
            self.exit_code = os.waitstatus_to_exitcode(status)
            return b""
        self._budget -= len(data)
        self.raw += data
        self.read_at = time.perf_counter()
        self.screen.feed(data)
        if self.answers:
            self._answer(data)
        return data

    def _allowance(self):
        now = time.perf_counter()
        most = max(64, self.drain / 10)  # a line has no memory of the bytes that it might have carried
        self._budget = min(most, self._budget + (now - self._budget_at) * self.drain)
        self._budget_at = now
        return int(self._budget)

    def _answer(self, data):
        if b"\x1b[?2026$p" in data:
            os.write(self.fd, b"\x1b[?2026;2$y")
        tail = bytes(self.raw[-len(data) - 32 :])
        for found in re.finditer(rb"\x1b\[(\d+);(\d+)H\x1b\[6n", tail):
            if found.end() > len(tail) - len(data):
                self.replies += 1
                os.write(self.fd, b"\x1b[%b;%bR" % found.groups())

    def send(self, keys):
        os.write(self.fd, keys)

    def until(self, words, *, since=None, limit=60.0):
        """The instant (perf_counter) of the read after which *words* stood on the screen, in a frame that was whole.

        *since*: not before so many bytes had been read.
        """
        end = time.perf_counter() + limit
        while True:
            if self.screen.whole and (since is None or len(self.raw) > since) and words in self.screen.text():
                return self.read_at
            self.pump(0.05)
            if self.exit_code is not None or time.perf_counter() > end:
                raise SystemExit(f"{words!r} not within {limit} s, exit {self.exit_code}; {self.screen.text()}")

    def run_for(self, seconds):
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.pump(min(left, 0.02))

    def settle(self, quiet=0.15, limit=5.0):
        """Until nothing was written for *quiet* seconds."""
        end, last = time.perf_counter() + limit, time.perf_counter()
        while time.perf_counter() < end and time.perf_counter() - last < quiet:
            if self.pump(0.01):
                last = time.perf_counter()

    def rss_mb(self):
        with open(f"/proc/{self.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def cpu_s(self):
        """Processor seconds of its process up to now, all threads: what a busy machine changes least."""
        total = 0
        for thread in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{self.pid}/task/{thread}/schedstat") as f:
                total += int(f.read().split()[0])
        return total / 1e9

    def close(self):
        if self.exit_code is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.waitpid(self.pid, 0)
            self.exit_code = -9
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def console(home, *more):
    """The command line of the console on *home*."""
    return [sys.executable, "-m", "pollconsole", "--home", str(home), *more]


def make_home(home, count, *, url="http://127.0.0.1:9", delay=100, due_in=None, due_from=None, ends_in=None, asked=0):
    """A home with *count* live operations, *asked* of them under questions of their own.

    The next polls are spread over *due_in* ms from *due_from* ms on (None: *due_in*); *due_in* None: in ten days. They
    end in *ends_in* ms, else in twenty days. Its reading key lies in a file, so that no keyring is needed.
    """
    from pollcore.assembly import open_core
    from pollcore.facts import DAY, SECOND, Instant, StopReason
    from tests.console.seed import operation, stopped, Seeded
    from tests.outage.made import seed

    home.mkdir(mode=0o700, parents=True)
    (home / "providers").mkdir(mode=0o700)
    (home / "providers/bench.toml").write_text(CONTRACT % {"delay": delay})
    (home / "config.toml").write_text(
        f'[audit]\nkey_file = "{home.resolve()}/reading.key"\n'
        f'[providers.acme]\ncontract = "bench"\nbase_url = "{url}"\naccount = "team-a"\n'
    )

    async def fill():
        async with open_core(home, kind="cli") as core:
            now = core.clock.now()

            def at(n):
                if due_in is None:
                    return Instant(now.wall + 10 * DAY + n * SECOND)
                first = due_in if due_from is None else due_from
                return Instant(now.wall + first + n * due_in // max(1, count))

            limits = {"max_status_requests": 100_000, "max_transport_failures": 1000, "max_rate_limited": 1000}
            end = Instant(now.wall + (20 * DAY if ends_in is None else ends_in))
            far = {**limits, "now": now, "deadline_at": end, "started_at": now.wall}
            rows = [Seeded(operation(1000 + n, next_poll_at=at(n), **far)) for n in range(count - asked)]
            reasons = (StopReason.REQUEST_BUDGET_EXHAUSTED, StopReason.DEADLINE_EXCEEDED, StopReason.RATE_LIMITED)
            few = {"now": now, "status_requests_used": 12, "deadline_at": Instant(now.wall + 20 * DAY)}
            rows += [stopped(900_000 + n, reasons[n % 3], **few) for n in range(asked)]
            await seed(core, rows)
            digest = core.contracts.find("acme").snapshot.digest

            def approve(turns):
                """As an operator's answer to `first_use` (X7) leaves it."""
                turns.writer.conn.execute(
                    "INSERT INTO contract_use(digest, use, decided_at, operator, grant_id) "
                    "VALUES(?,'read_only',?,'bench','g')",
                    (digest, now.wall),
                )

            with contextlib.suppress(Exception):  # an older store has no such table and asks nothing
                await core.store._write(approve)

    asyncio.run(fill())
    return home


def noise():
    """What else ran: the load average and the part of the last second's processor time that others had."""

    def busy():
        with open("/proc/stat") as f:
            parts = [int(x) for x in f.readline().split()[1:]]
        return sum(parts) - parts[3] - parts[4], sum(parts)

    a = busy()
    time.sleep(1)
    b = busy()
    return {"load": round(os.getloadavg()[0], 2), "busy_percent": round(100 * (b[0] - a[0]) / max(1, b[1] - a[1]))}


def told(**figures):
    print(json.dumps(figures), flush=True)
