"""Shared by the bench scripts: the peer contract, a meter of one process tree, the job server's start and stop.

Knows no peer by name. Requirements: Linux (/proc); standard library only.

Peer contract: a peer NAME is the script peer_NAME.py in this folder (or a command line given with --cmd), run as
    CMD --base-url URL --jobs M --polls K --concurrency C --workdir DIR [--resume]
It polls URL/jobs/<id> for M ids (job_ids()) until `succeeded` (K polls each, no wait in between), and prints as its
LAST line one JSON object, made by Meter.report(). A durable peer goes on with what DIR holds when --resume is given.
"""

import argparse
import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib import metadata

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = os.sysconf("SC_CLK_TCK")


def job_ids(n):
    return [f"job-{i:06d}" for i in range(n)]


def args_for(name, concurrency, **extra):
    ap = argparse.ArgumentParser(prog=name)
    ap.add_argument("--base-url", required=True)
    ap.add_argument("--jobs", type=int, default=500)
    ap.add_argument("--polls", type=int, default=10, help="K: polls per job (the server must be reset to K-1 running)")
    ap.add_argument("--concurrency", type=int, default=concurrency)
    ap.add_argument("--workdir", default=None)
    ap.add_argument("--resume", action="store_true", help="continue what --workdir holds (after a kill -9)")
    ap.add_argument("--uvloop", action="store_true")
    for k, v in extra.items():
        k = "--" + k.replace("_", "-")
        if isinstance(v, bool):
            ap.add_argument(k, action="store_true")
        else:
            ap.add_argument(k, type=type(v), default=v)
    a = ap.parse_args()
    if a.workdir is None:
        a.workdir = tempfile.mkdtemp(prefix="pollbench-")
    os.makedirs(a.workdir, exist_ok=True)
    return a


def peers():
    """The names that can be given on the command line of compare.py, fsyncs.py and kill9.py."""
    return sorted(f[5:-3] for f in os.listdir(HERE) if f.startswith("peer_") and f.endswith(".py"))


def command(spec, a, url, workdir, cmds):
    """-> (jobs, command line) of one peer.

    spec is NAME or NAME:OPTION[,OPTION...]; n=JOBS and c=CONCURRENCY are ours, any other OPTION (x or x=y) is handed to
    the peer as --x [y]. cmds maps NAME to a command line with {url} {jobs} {polls} {c} {workdir}.
    """
    name, _, rest = spec.partition(":")
    options = dict(o.partition("=")[::2] for o in rest.split(",") if o)
    jobs, c = int(options.pop("n", a.jobs)), int(options.pop("c", getattr(a, "concurrency", 32)))
    if name in cmds:
        return jobs, shlex.split(cmds[name].format(url=url, jobs=jobs, polls=a.polls, c=c, workdir=workdir))
    if name not in peers():
        raise SystemExit(f"no peer {name!r}: there are {', '.join(peers())}; or give it by --cmd '{name}=COMMAND'")
    line = [
        sys.executable,
        os.path.join(HERE, f"peer_{name}.py"),
        "--base-url",
        url,
        "--jobs",
        str(jobs),
        "--polls",
        str(a.polls),
        "--concurrency",
        str(c),
        "--workdir",
        workdir,
    ]
    for k, v in options.items():
        line += [f"--{k}"] + ([v] if v else [])
    return jobs, line


def last_json(text):
    """The JSON object on the last line of a peer's output that holds one."""
    return json.loads([x for x in text.splitlines() if x.startswith("{")][-1])


def run_async(coro, use_uvloop=False):
    if use_uvloop:
        import uvloop

        return uvloop.run(coro)
    return asyncio.run(coro)


def tree(pid):
    """pid and its living descendants"""
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        try:
            for t in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{t}/children") as f:
                    todo += [int(x) for x in f.read().split()]
        except OSError:
            pass
    return out


def proc_cpu(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            s = f.read().rsplit(")", 1)[1].split()
        return (int(s[11]) + int(s[12])) / TICK
    except OSError:
        return 0.0


def proc_hwm(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def proc_written(pid):
    try:
        with open(f"/proc/{pid}/io") as f:
            d = dict(line.strip().split(": ") for line in f)
        return int(d["write_bytes"]), int(d["wchar"])
    except OSError:
        return 0, 0


def dir_bytes(path):
    """(sum of sizes, sum of allocated blocks), SQLite's -shm (rebuilt at will) left out"""
    size = alloc = 0
    for root, _, files in os.walk(path):
        for f in files:
            if f.endswith("-shm"):
                continue
            try:
                st = os.lstat(os.path.join(root, f))
            except OSError:
                continue
            size += st.st_size
            alloc += st.st_blocks * 512
    return size, alloc


class Meter:
    """CPU, memory and bytes of this process plus the named service processes, between start() and stop()."""

    def __init__(self, name, args, pids=()):
        self.name, self.a, self.pids = name, args, [os.getpid(), *pids]
        self.extra = {}

    def _snap(self):
        ps = {p for r in self.pids for p in tree(r)}
        io = [proc_written(p) for p in ps]
        t = os.times()
        # the own process by the precise clock, the others by ticks
        cpu = (
            time.process_time() + t.children_user + t.children_system + sum(proc_cpu(p) for p in ps if p != os.getpid())
        )
        return time.perf_counter(), cpu, sum(x[0] for x in io), sum(x[1] for x in io)

    def start(self):
        self.base = dir_bytes(self.a.workdir)
        self.s0 = self._snap()

    def stop(self):
        self.s1 = self._snap()
        ps = {p for r in self.pids for p in tree(r)}
        self.rss = sum(proc_hwm(p) for p in ps)
        self.procs = len(ps)

    def report(self, counted, durable=None, **extra):
        """counted: polls the peer believes it made."""
        wall, cpu, wb, _ = (b - a for a, b in zip(self.s0, self.s1, strict=True))
        out = {
            "name": self.name,
            "jobs": self.a.jobs,
            "polls": self.a.polls,
            "concurrency": self.a.concurrency,
            "counted": counted,
            "wall_s": round(wall, 4),
            "cpu_s": round(cpu, 4),
            "polls_per_s": round(counted / wall, 1) if wall else 0,
            "cpu_s_per_1k": round(cpu / counted * 1000, 4) if counted else 0,
            "peak_rss_mb": round(self.rss / 1e6, 1),
            "processes": self.procs,
            "device_bytes_per_poll": round(wb / counted, 1) if counted else 0,
        }
        if durable is not None:
            size, _ = dir_bytes(durable)
            out["stored_bytes_per_poll"] = round((size - self.base[0]) / counted, 1) if counted else 0
            out["stored_bytes"] = size
        out.update(extra)
        print(json.dumps(out), flush=True)
        return out


def http_json(url, method="GET", timeout=30):
    req = urllib.request.Request(url, method=method)
    with urllib.request.urlopen(req, timeout=timeout) as r:
        return json.loads(r.read())


class JobServer:
    """Starts job_server.py under the same (or a given) python and stops it by its process id."""

    def __init__(self, polls=10, latency_ms=0.0, python=None, max_seconds=3600, loop="auto"):
        self.p = subprocess.Popen(
            [
                python or sys.executable,
                os.path.join(HERE, "job_server.py"),
                "--running",
                str(polls - 1),
                "--latency-ms",
                str(latency_ms),
                "--max-seconds",
                str(max_seconds),
                "--loop",
                loop,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = json.loads(self.p.stdout.readline())["port"]
        self.url = f"http://127.0.0.1:{self.port}"

    def reset(self, polls):
        http_json(f"{self.url}/reset?running={polls - 1}", "POST")

    def stats(self):
        return http_json(self.url + "/stats")

    def counts(self):
        return http_json(self.url + "/counts")

    def stop(self):
        self.p.terminate()
        try:
            self.p.wait(10)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()

    def __enter__(self):
        return self

    def __exit__(self, *a):
        self.stop()


def versions(*names):
    out = {"python": sys.version.split()[0]}
    for n in names:
        try:
            out[n] = metadata.version(n)
        except metadata.PackageNotFoundError:
            out[n] = None
    return out


def median(xs):
    xs = sorted(xs)
    n = len(xs)
    return 0 if not n else xs[n // 2] if n % 2 else (xs[n // 2 - 1] + xs[n // 2]) / 2
