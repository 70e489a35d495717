"""What a provider can do to one exchange: each misdeed ends within its bound, in bounded memory, no connection left."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from pollcore.adapters.transport import HttpTransport
from pollcore.facts import Answer, Fault, FaultKind
from pollcore.ports import Transport
from tests.adapters.asking import SHORT_MS, TOTAL_MS, ask, send
from tests.adapters.hostile_server import OK, HostileServer, bomb

MEMORY = 8 << 20
K = FaultKind
REFUSED = {
    "silent": K.TIMEOUT,
    "drip_head": K.TIMEOUT,
    "drip_body": K.TIMEOUT,
    "slow_103": K.TIMEOUT,
    "slow_chunk_extension": K.TIMEOUT,
    "flood_103": K.TOO_LARGE,
    "flood_chunk_extension": K.TOO_LARGE,
    "endless_body": K.TOO_LARGE,
    "announced_too_large": K.TOO_LARGE,
    "length_10_30": K.PROTOCOL,
    "length_plus": K.PROTOCOL,
    "length_underscore": K.PROTOCOL,
    "two_lengths": K.PROTOCOL,
    "short_body": K.CUT_OFF,
    "short_chunked": K.CUT_OFF,
    "short_head": K.CUT_OFF,
    "no_answer": K.CUT_OFF,
    "reset_after_read": K.RESET,
    "reset_in_body": K.RESET,
    "bomb_1_gib_announced": K.TOO_LARGE,
    "bomb_200_mib": K.TOO_LARGE,
    "gzip_cut": K.CUT_OFF,
    "gzip_tail": K.PROTOCOL,
    "gzip_second_member": K.PROTOCOL,
    "gzip_lie": K.PROTOCOL,
    "gzip_stacked": K.PROTOCOL,
    "gzip_twice_named": K.PROTOCOL,
    "brotli": K.PROTOCOL,
    "zstd": K.PROTOCOL,
    "deflate": K.PROTOCOL,
    "headers_40_kib": K.TOO_LARGE,
    "cookie_storm": K.TOO_LARGE,
    "status_999": K.PROTOCOL,
    "status_600": K.PROTOCOL,
    "status_101": K.PROTOCOL,
    "not_http": K.PROTOCOL,
    "nul_in_header": K.PROTOCOL,
}
#: Which limit stops it first depends on how the kernel cuts the flood into reads.
EITHER = {"one_chunk_extension", "flood_trailers", "header_block_200_kib", "headers_30_000"}


@pytest.fixture(scope="module", autouse=True)
def _bombs() -> None:
    """Made before any time runs; the server keeps them."""
    bomb(64 << 20)
    bomb(200 << 20)


@pytest.mark.rule("H7", "B4")
@pytest.mark.parametrize(("name", "kind"), [*REFUSED.items(), *((name, None) for name in sorted(EITHER))])
async def test_a_misdeed_is_a_fault_of_its_kind_and_leaves_no_connection(
    name: str, kind: FaultKind | None, transport: HttpTransport, server: HostileServer
) -> None:
    total_ms = SHORT_MS if kind is K.TIMEOUT else TOTAL_MS
    result = await send(transport, ask(server.url(name), total_ms=total_ms))
    assert isinstance(result, Fault)
    assert result.kind is kind or (kind is None and result.kind in (K.TOO_LARGE, K.PROTOCOL))
    assert result.may_have_been_sent
    assert "\x1b" not in result.text
    assert str(server.port) not in result.text
    assert transport.open_connections == 0
    assert server.accepted == 1


@pytest.mark.rule("H7")
@pytest.mark.parametrize("name", ["bomb_1_gib_announced", "bomb_200_mib", "gzip_stacked", "endless_body", "flood_103"])
async def test_memory_stays_bounded(name: str, transport: HttpTransport, server: HostileServer) -> None:
    await send(transport, ask(server.url(name), total_ms=SHORT_MS))  # the server makes its bomb, imports are done
    tracemalloc.start()
    try:
        await send(transport, ask(server.url(name), total_ms=SHORT_MS))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY


@pytest.mark.rule("H7", "H1")
@pytest.mark.parametrize(
    ("name", "status", "body"),
    [
        ("ok", 200, OK),
        ("gzipped", 200, OK),
        ("chunked", 200, b'{"status":1}'),
        ("empty_204", 204, b""),
        ("hundred_then_ok", 200, OK),
        ("until_close", 200, OK),
        ("half_close", 200, OK),
        ("trailers", 200, b"{}"),
        ("length_and_chunked", 200, b"{}"),
        ("escape_in_head", 200, b"{}"),
    ],
)
async def test_an_odd_but_valid_answer_is_read(
    name: str, status: int, body: bytes, transport: HttpTransport, server: HostileServer
) -> None:
    result = await send(transport, ask(server.url(name)))
    assert isinstance(result, Answer)
    assert (result.status, result.body) == (status, body)
    assert result.sent_at <= result.answered_at


@pytest.mark.rule("H1")
async def test_headers_keep_order_and_repeats_with_names_in_lower_case(
    transport: HttpTransport, server: HostileServer
) -> None:
    port: Transport = transport
    result = await port.send(ask(server.url("ok")), None)
    assert isinstance(result, Answer)
    assert [name for name, _ in result.headers] == ["content-length", "content-type", "retry-after"]
    assert result.header("retry-after") == "5"


@pytest.mark.rule("H2")
async def test_a_redirect_is_an_answer_and_is_not_followed(transport: HttpTransport, server: HostileServer) -> None:
    result = await send(transport, ask(server.url("redirect")))
    assert isinstance(result, Answer)
    assert (result.status, result.header("location")) == (302, "https://elsewhere.example/take")
    assert len(server.heads) == 1


@pytest.mark.rule("H7")
async def test_a_head_request_may_announce_any_length(server: HostileServer, transport: HttpTransport) -> None:
    result = await send(transport, ask(server.url("announced_too_large"), method="HEAD"))
    assert isinstance(result, Answer)
    assert result.body == b""


@pytest.mark.rule("B4")
async def test_a_refused_connection_was_not_sent(transport: HttpTransport, server: HostileServer) -> None:
    url = server.url("ok")
    server.stop()
    result = await send(transport, ask(url))
    assert isinstance(result, Fault)
    assert (result.kind, result.may_have_been_sent) == (K.CONNECTION_REFUSED, False)
    assert transport.open_connections == 0


@pytest.mark.rule("B4")
async def test_a_name_that_does_not_resolve_was_not_sent(transport: HttpTransport) -> None:
    result = await send(transport, ask("https://nobody.invalid/x"))
    assert isinstance(result, Fault)
    assert (result.kind, result.may_have_been_sent) == (K.DNS, False)


@pytest.mark.rule("B4")
async def test_a_reset_before_the_request_was_read_is_a_reset_or_a_cut(transport: HttpTransport) -> None:
    async def slam(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    listener = await asyncio.start_server(slam, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    result = await send(transport, ask(f"http://127.0.0.1:{port}/"))
    listener.close()
    assert isinstance(result, Fault)
    assert result.kind in (K.RESET, K.CUT_OFF)
    assert transport.open_connections == 0


@pytest.mark.rule("B4", "H7")
async def test_a_connection_that_never_comes_up_was_not_sent(transport: HttpTransport) -> None:
    """TLS is asked of a port that accepts and says nothing: the total time ends it before anything was written."""
    listener = await asyncio.start_server(lambda r, w: asyncio.sleep(30), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    result = await send(transport, ask(f"https://127.0.0.1:{port}/", total_ms=SHORT_MS))
    listener.close()
    assert isinstance(result, Fault)
    assert (result.kind, result.may_have_been_sent) == (K.CONNECT_TIMEOUT, False)
    assert transport.open_connections == 0


@pytest.mark.rule("H7")
@pytest.mark.parametrize("total_ms", [0, -5])
async def test_no_time_is_no_request(total_ms: int, transport: HttpTransport, server: HostileServer) -> None:
    result = await send(transport, ask(server.url("ok"), total_ms=total_ms))
    assert isinstance(result, Fault)
    assert not result.may_have_been_sent
    assert server.heads == []


@pytest.mark.rule("H7")
async def test_misdeeds_in_parallel_leave_nothing_behind(transport: HttpTransport, server: HostileServer) -> None:
    names = [*REFUSED, *EITHER]
    results = await asyncio.gather(*(send(transport, ask(server.url(name), total_ms=SHORT_MS)) for name in names))
    assert all(isinstance(result, Fault) for result in results)
    assert transport.open_connections == 0
    await asyncio.to_thread(server.wait_until, lambda: server.open_now <= 1)
