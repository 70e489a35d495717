#!/usr/bin/env python3
"""A fast local job server: HTTP/1.1 keep-alive on loopback.

Requirements: none (uvloop used when importable).

    python tests/bench/job_server.py --port 0 --running 9        # prints one JSON line: {"port": N, "pid": N}

GET  /jobs/<id>                the job answers `running` --running times, then `succeeded` with result_url
GET  /results/<id>             the result
POST /start/<id>               202 with Operation-Location: /jobs/<id>
POST /reset?running=N          forgets all jobs; N `running` answers before `succeeded`
GET  /stats                    requests, jobs, succeeded, min/max polls a job got, polls after success, cpu seconds
GET  /counts                   {job id: polls seen}  (for crash checks)

It is a bare asyncio.Protocol that parses only the request line of bodiless requests, so that it is never the
bottleneck: check with `wrk -t1 -c64 -d5 http://127.0.0.1:PORT/jobs/x`.
Stops on SIGTERM/SIGINT and by itself after --max-seconds (default 3600).
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import sys


class State:
    def __init__(self, running, latency):
        self.latency = latency
        self.connections = 0
        self.port = 0
        self.reset(running)

    def reset(self, running):
        self.running = running
        self.counts = {}
        self.requests = 0
        self.cpu0 = cpu()


def cpu():
    ru = resource.getrusage(resource.RUSAGE_SELF)
    return ru.ru_utime + ru.ru_stime


HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nRetry-After: 0\r\nX-Request-Id: %d\r\n"
    b"Content-Length: %d\r\n\r\n"
)


def respond(st, method, path):
    """-> (status line is always 200) body bytes, request number"""
    if path.startswith(b"/jobs/"):
        job = path[6:]
        n = st.counts.get(job, 0) + 1
        st.counts[job] = n
        st.requests += 1
        if n <= st.running:
            return (
                b'{"id":"%b","status":"running","poll":%d,"progress":%.3f,"message":"step %d of %d",'
                b'"created_at":"2026-01-01T00:00:00Z"}' % (job, n, n / (st.running + 1), n, st.running + 1)
            )
        return (
            b'{"id":"%b","status":"succeeded","poll":%d,"progress":1.0,"message":"done",'
            b'"created_at":"2026-01-01T00:00:00Z","result_url":"http://127.0.0.1:%d/results/%b"}'
            % (job, n, st.port, job)
        )
    if path.startswith(b"/results/"):
        return b'{"id":"%b","value":42}' % path[9:]
    if path.startswith(b"/reset"):
        q = path.partition(b"running=")[2]
        st.reset(int(q) if q else st.running)
        return b'{"ok":true}'
    if path == b"/stats":
        c = st.counts.values()
        return json.dumps(
            {
                "requests": st.requests,
                "jobs": len(st.counts),
                "running": st.running,
                "succeeded": sum(1 for x in c if x > st.running),
                "min": min(c, default=0),
                "max": max(c, default=0),
                "after_success": sum(max(0, x - st.running - 1) for x in c),
                "connections": st.connections,
                "cpu": cpu() - st.cpu0,
            }
        ).encode()
    if path == b"/counts":
        return json.dumps({k.decode(): v for k, v in st.counts.items()}).encode()
    return b'{"error":"not found"}'


class Http1(asyncio.Protocol):
    __slots__ = ("buf", "loop", "st", "tr")

    def __init__(self, st, loop):
        self.st, self.loop, self.buf, self.tr = st, loop, b"", None

    def connection_made(self, tr):
        self.tr = tr
        self.st.connections += 1

    def connection_lost(self, exc):
        self.st.connections -= 1
        self.tr = None

    def data_received(self, data):
        if self.buf:
            data = self.buf + data
        out = []
        while True:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                break
            head, data = data[:end], data[end + 4 :]
            low = head.lower()
            at = low.find(b"\r\ncontent-length:")
            if at >= 0:  # a small body (POST from some clients): wait for it and drop it
                eol = low.find(b"\r\n", at + 17)
                length = int(low[at + 17 : eol if eol >= 0 else len(low)])
                if len(data) < length:
                    data = head + b"\r\n\r\n" + data
                    break
                data = data[length:]
            a = head.find(b" ")
            b = head.find(b" ", a + 1)
            path = head[a + 1 : b]
            if path.startswith(b"/start/"):  # the 202 of a long-running-operation API
                out.append(
                    b"HTTP/1.1 202 Accepted\r\nOperation-Location: http://127.0.0.1:%d/jobs/%b\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" % (self.st.port, path[7:])
                )
                continue
            body = respond(self.st, head[:a], path)
            out.append(HEAD % (self.st.requests, len(body)) + body)
        self.buf = data
        if out:
            payload = out[0] if len(out) == 1 else b"".join(out)
            if self.st.latency:
                self.loop.call_later(self.st.latency, self.send, payload)
            elif self.tr is not None:
                self.tr.write(payload)
        return

    def send(self, payload):
        if self.tr is not None and not self.tr.is_closing():
            self.tr.write(payload)


async def serve(args):
    loop = asyncio.get_running_loop()
    st = State(args.running, args.latency_ms / 1000)
    server = await loop.create_server(lambda: Http1(st, loop), "127.0.0.1", args.port, backlog=4096)
    st.port = server.sockets[0].getsockname()[1]
    print(json.dumps({"port": st.port, "pid": os.getpid(), "loop": type(loop).__module__}), flush=True)
    stop = asyncio.Event()
    for s in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(s, stop.set)
    try:
        await asyncio.wait_for(stop.wait(), args.max_seconds)
    except TimeoutError:
        pass
    server.close()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--running", type=int, default=9)
    ap.add_argument("--latency-ms", type=float, default=0.0)
    ap.add_argument("--max-seconds", type=float, default=3600)
    ap.add_argument("--loop", choices=["auto", "asyncio"], default="auto")
    args = ap.parse_args()
    run = asyncio.run
    if args.loop == "auto":
        try:
            import uvloop

            run = uvloop.run
        except ImportError:
            pass
    run(serve(args))


if __name__ == "__main__":
    sys.exit(main())
