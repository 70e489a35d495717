"""A server that misbehaves in every way that a provider could, on real sockets of this machine.

It runs in a thread with a loop of its own; each path is one misdeed. It counts what reaches it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import threading
import time
import zlib
from collections.abc import Awaitable, Callable
from functools import cache

Misdeed = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MISDEEDS: dict[str, Misdeed] = {}
WAIT_S = 30.0
OK = b'{"status":"running"}'


def misdeed(function: Misdeed) -> Misdeed:
    MISDEEDS[function.__name__] = function
    return function


def head(*lines: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\n{''.join(line + chr(13) + chr(10) for line in lines)}\r\n".encode("latin-1")


def whole(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    return head(f"Content-Length: {len(body)}", *lines, status=status) + body


@cache
def bomb(size: int) -> bytes:
    """*size* zero bytes as gzip, made piece by piece."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = bytes(1 << 20)
    parts = [packer.compress(piece) for _ in range(size >> 20)]
    return b"".join([*parts, packer.flush()])


class HostileServer:
    """Starts at `with`, ends with it. *tls*: serve over TLS."""

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._tls = tls
        self._host = host
        self.port = 0
        self.accepted = 0
        self.heads: list[bytes] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="hostile", daemon=True)
        self._ready = threading.Event()

    def __enter__(self) -> HostileServer:
        self._thread.start()
        assert self._ready.wait(WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server and its connections; a second time does nothing."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)

    @property
    def origin(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    def url(self, name: str) -> str:
        return f"{self.origin}/{name}"

    def drop_all(self) -> None:
        """Close every open connection, as a server that restarts does."""
        self.run(self._drop_all())

    def run(self, work: Awaitable[None]) -> None:
        async def go() -> None:
            await work

        asyncio.run_coroutine_threadsafe(go(), self._loop).result(WAIT_S)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < end, "it did not become true"
            time.sleep(0.01)

    @property
    def open_now(self) -> int:
        return len(self._open)

    async def _drop_all(self) -> None:
        for writer in list(self._open):
            writer.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # errors of connections that a client cut short are what this server is for
        self._loop.set_exception_handler(lambda *_: None)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, self._host, 0, ssl=self._tls))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._open.add(writer)
        try:
            while not writer.is_closing():
                got = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(got)
                ECHO["head"] = got.decode("latin-1")
                path = got.split(b" ", 2)[1].decode("latin-1")
                name = path.rpartition("/")[2].partition("?")[0]
                await MISDEEDS[name](reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


@misdeed
async def ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK, "Content-Type: application/json", "Retry-After: 5"))


@misdeed
async def gzipped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(gzip.compress(OK), "Content-Encoding: gzip"))


@misdeed
async def chunked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b'5\r\n{"sta\r\n5\r\ntus":\r\n1\r\n1\r\n1\r\n}\r\n0\r\n\r\n')


@misdeed
async def empty_204(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head(status="204 No Content"))


@misdeed
async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(b"", "Location: https://elsewhere.example/take", status="302 Found"))


@misdeed
async def hundred_then_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head(status="100 Continue") + head("Link: </x>", status="103 Early Hints") + whole(OK))


@misdeed
async def until_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head() + OK)
    writer.close()


@misdeed
async def half_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK))
    writer.write_eof()
    await asyncio.sleep(WAIT_S)


@misdeed
async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(WAIT_S)


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    for byte in data:
        writer.write(bytes((byte,)))
        await writer.drain()
        await asyncio.sleep(0.05)


@misdeed
async def drip_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await drip(writer, head(*(f"X-{i}: slow" for i in range(40))))


@misdeed
async def drip_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 1000"))
    await drip(writer, b"x" * 1000)


@misdeed
async def slow_103(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(head("Link: </x>", status="103 Early Hints"))
        await writer.drain()
        await asyncio.sleep(0.02)


@misdeed
async def flood_103(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(head("Link: </x>", status="103 Early Hints") * 100)
        await writer.drain()


@misdeed
async def slow_chunk_extension(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked"))
    while True:
        writer.write(b"1;" + b"e" * 50 + b"\r\nx\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


@misdeed
async def flood_chunk_extension(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked"))
    while True:
        writer.write((b"1;" + b"e" * 900 + b"\r\nx\r\n") * 50)
        await writer.drain()


@misdeed
async def one_chunk_extension(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"1;")
    while True:
        writer.write(b"e" * 10_000)
        await writer.drain()


@misdeed
async def flood_trailers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n")
    while True:
        writer.write(b"X-Trailer: more\r\n" * 100)
        await writer.drain()


@misdeed
async def trailers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\nX-Trailer: fine\r\n\r\n")


@misdeed
async def endless_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head())
    while True:
        writer.write(b"x" * 10_000)
        await writer.drain()


@misdeed
async def announced_too_large(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 300000") + b"x" * 300)


@misdeed
async def length_10_30(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head(f"Content-Length: {10**30}") + b"x")


@misdeed
async def length_plus(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: +20") + OK)


@misdeed
async def length_underscore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2_0") + OK)


@misdeed
async def two_lengths(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 20", "Content-Length: 10") + OK)


@misdeed
async def length_and_chunked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2", "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n")


@misdeed
async def short_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 100") + OK)
    writer.close()


@misdeed
async def short_chunked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Transfer-Encoding: chunked") + b"ff\r\n{}")
    writer.close()


@misdeed
async def short_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-")
    writer.close()


@misdeed
async def no_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def reset(writer: asyncio.StreamWriter) -> None:
    import socket
    import struct

    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@misdeed
async def reset_after_read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    reset(writer)


@misdeed
async def reset_in_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 100") + OK)
    await writer.drain()
    await asyncio.sleep(0.1)
    reset(writer)


@misdeed
async def bomb_1_gib_announced(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(bomb(64 << 20) * 16, "Content-Encoding: gzip"))


@misdeed
async def bomb_200_mib(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(bomb(200 << 20), "Content-Encoding: gzip"))


@misdeed
async def gzip_cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(gzip.compress(OK * 100)[:-9], "Content-Encoding: gzip"))


@misdeed
async def gzip_tail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(gzip.compress(OK) + b"tail", "Content-Encoding: gzip"))


@misdeed
async def gzip_second_member(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(gzip.compress(OK) + gzip.compress(OK), "Content-Encoding: gzip"))


@misdeed
async def gzip_lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK, "Content-Encoding: gzip"))


@misdeed
async def gzip_stacked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(gzip.compress(bomb(64 << 20)), "Content-Encoding: gzip, gzip"))


@misdeed
async def gzip_twice_named(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(gzip.compress(bomb(64 << 20)), "Content-Encoding: gzip", "Content-Encoding: gzip"))


@misdeed
async def brotli(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(b"\x0b\x02\x80hello\x03" * 100, "Content-Encoding: br"))


@misdeed
async def zstd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(b"\x28\xb5\x2f\xfd" * 100, "Content-Encoding: zstd"))


@misdeed
async def deflate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(zlib.compress(OK), "Content-Encoding: deflate"))


@misdeed
async def header_block_200_kib(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2", f"X-Big: {'x' * 200_000}") + b"{}")


@misdeed
async def headers_40_kib(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2", *(f"X-{i}: {'x' * 1000}" for i in range(40))) + b"{}")


@misdeed
async def headers_30_000(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2", *(f"X-{i}: 1" for i in range(30_000))) + b"{}")


@misdeed
async def cookie_storm(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2", *(f"Set-Cookie: c{i}=1" for i in range(150))) + b"{}")


@misdeed
async def status_999(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK, status="999 Strange"))


@misdeed
async def status_600(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK, status="600 Strange"))


@misdeed
async def status_101(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Upgrade: other", "Connection: Upgrade", status="101 Switching Protocols"))


@misdeed
async def not_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example ESMTP\r\n\r\n")


@misdeed
async def nul_in_header(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2", "X-Nul: a\0b") + b"{}")


@misdeed
async def escape_in_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(head("Content-Length: 2", "X-Esc: a\x1b[31mb", status="200 \x1bP$qm\x1b\\") + b"{}")


@misdeed
async def two_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK) + whole(b'{"status":"stolen"}'))


@misdeed
async def late_second_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK))
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.write(whole(b'{"status":"stolen"}'))
    LATE.set()


@misdeed
async def part_of_a_second_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK) + b"HTTP/1.1 500 Oops\r\nX-Half: ")


@misdeed
async def close_later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK))
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.close()


@misdeed
async def asks_to_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(OK, "Connection: close"))


@misdeed
async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer with what was sent: in the body, in a header, base64 and hex as well."""
    import base64

    got = ECHO["head"]
    body = json.dumps({"sent": got, "b64": base64.b64encode(got.encode()).decode(), "hex": got.encode().hex()}).encode()
    line = got.replace("\r\n", " ")
    writer.write(whole(body, f"X-Echo: {line}"))


LATE = threading.Event()
"""Set once `late_second_answer` has written its second one."""
ECHO: dict[str, str] = {"head": ""}
"""The last head that any server of this process read: what `echo` answers with."""
