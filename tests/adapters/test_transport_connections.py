"""Connections: kept, bounded, closed; a dead idle one is replaced, nothing is sent twice; cancellation; TLS; proxy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pollcore.adapters import slots
from pollcore.adapters.pinned import PinnedSecret
from pollcore.adapters.system import SystemClock
from pollcore.adapters.transport import HttpTransport
from pollcore.adapters.wire import Wire
from pollcore.facts import Answer, Fault, FaultKind, Refused
from tests.adapters.asking import BEARER, ask, send
from tests.adapters.certificates import Authority
from tests.adapters.hostile_server import LATE, OK, WAIT_S, HostileServer


async def until(holds: object) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # type: ignore[operator]
            await asyncio.sleep(0.01)


@pytest.mark.rule("H7")
async def test_one_connection_serves_many_requests_in_turn(transport: HttpTransport, server: HostileServer) -> None:
    for _ in range(20):
        assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
    assert server.accepted == 1
    assert transport.open_connections == 1


@pytest.mark.rule("B4")
async def test_a_connection_that_the_server_closed_while_idle_is_replaced_unnoticed(
    transport: HttpTransport, server: HostileServer
) -> None:
    assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
    server.drop_all()
    assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
    assert len(server.heads) == 2
    assert server.accepted == 2


@pytest.mark.rule("B4")
async def test_a_connection_that_dies_between_choice_and_writing_is_replaced_because_nothing_was_written(
    transport: HttpTransport, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
    server.drop_all()
    chosen = []
    monkeypatch.setattr(Wire, "has_news", property(lambda self: chosen.append(self) or False))  # type: ignore[func-returns-value]
    assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
    assert chosen
    assert len(server.heads) == 2


@pytest.mark.rule("B4")
async def test_a_request_that_was_written_is_never_sent_again(transport: HttpTransport, server: HostileServer) -> None:
    assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
    result = await send(transport, ask(server.url("no_answer")))
    assert isinstance(result, Fault)
    assert (result.kind, result.may_have_been_sent) == (FaultKind.CUT_OFF, True)
    assert len(server.heads) == 2


@pytest.mark.rule("S6", "H7")
@pytest.mark.parametrize("name", ["two_answers", "late_second_answer", "part_of_a_second_answer"])
async def test_bytes_after_an_answer_are_never_the_next_answer(
    name: str, transport: HttpTransport, server: HostileServer
) -> None:
    LATE.clear()
    first = await send(transport, ask(server.url(name)))
    assert isinstance(first, Answer)
    await asyncio.to_thread(server.wait_until, lambda: len(server.heads) == 1)
    if name.startswith("late"):
        assert await asyncio.to_thread(LATE.wait, WAIT_S)
    second = await send(transport, ask(server.url("ok")))
    assert isinstance(second, Answer)
    assert second.body == OK
    assert server.accepted == 2


@pytest.mark.rule("H7")
async def test_a_connection_that_was_asked_to_close_is_not_kept(
    transport: HttpTransport, server: HostileServer
) -> None:
    assert isinstance(await send(transport, ask(server.url("asks_to_close"))), Answer)
    assert transport.open_connections == 0


@pytest.mark.rule("H7")
async def test_idle_connections_are_closed_after_their_time(clock: SystemClock, server: HostileServer) -> None:
    transport = HttpTransport(clock, idle_s=0.2)
    await send(transport, ask(server.url("ok")))
    assert transport.open_connections == 1
    await until(lambda: transport.open_connections == 0)
    await asyncio.to_thread(server.wait_until, lambda: server.open_now == 0)
    await transport.aclose()
    assert transport.open_connections == 0


@pytest.mark.rule("H7")
async def test_connections_are_bounded_over_all_origins(clock: SystemClock) -> None:
    transport = HttpTransport(clock, connections=2)
    with HostileServer() as one, HostileServer() as two, HostileServer() as three:
        for server in (one, two, three, one):
            assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
            assert transport.open_connections <= 2
        results = await asyncio.gather(*(send(transport, ask(one.url("ok"))) for _ in range(8)))
        assert all(isinstance(result, Answer) for result in results)
        assert one.accepted <= 4
    await transport.aclose()


@pytest.mark.rule("B4")
async def test_waiting_for_a_free_connection_ends_unsent(clock: SystemClock, server: HostileServer) -> None:
    transport = HttpTransport(clock, connections=1)
    first = asyncio.create_task(send(transport, ask(server.url("silent"))))
    await asyncio.to_thread(server.wait_until, lambda: len(server.heads) == 1)
    second = await send(transport, ask(server.url("ok"), total_ms=100))
    assert isinstance(second, Fault)
    assert (second.kind, second.may_have_been_sent) == (FaultKind.NOT_SENT, False)
    assert not first.done()
    await transport.aclose()
    assert isinstance(await first, Fault)


@pytest.mark.rule("H7")
@pytest.mark.parametrize("name", ["silent", "drip_body", "drip_head"])
async def test_a_cancelled_exchange_leaves_no_connection(
    name: str, transport: HttpTransport, server: HostileServer
) -> None:
    task = asyncio.create_task(transport.send(ask(server.url(name), total_ms=30_000), None))
    await asyncio.to_thread(server.wait_until, lambda: len(server.heads) == 1)
    task.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert transport.open_connections == 0
    assert isinstance(await send(transport, ask(server.url("ok"))), Answer)


@pytest.mark.rule("H7")
async def test_a_closed_transport_sends_nothing_and_ends_what_runs(clock: SystemClock, server: HostileServer) -> None:
    transport = HttpTransport(clock)
    running = asyncio.create_task(transport.send(ask(server.url("silent"), total_ms=90_000), None))
    await asyncio.to_thread(server.wait_until, lambda: len(server.heads) == 1)
    await transport.aclose()
    result = await asyncio.wait_for(running, WAIT_S)
    assert isinstance(result, Fault)
    assert result.may_have_been_sent
    later = await send(transport, ask(server.url("ok")))
    assert isinstance(later, Fault)
    assert (later.kind, later.may_have_been_sent) == (FaultKind.NOT_SENT, False)
    assert transport.open_connections == 0


@pytest.mark.rule("H7")
async def test_a_library_that_bypasses_our_wire_fails_closed(
    transport: HttpTransport, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpcore

    from pollcore.adapters import transport as module

    monkeypatch.setattr(module, "_pool", lambda *_: httpcore.AsyncConnectionPool(max_connections=1))
    result = await send(transport, ask(server.url("ok")))
    assert isinstance(result, Fault)
    assert result.kind is FaultKind.PROTOCOL


@pytest.mark.rule("H7")
async def test_tls_with_our_own_roots_works_and_is_kept(
    clock: SystemClock, authority: Authority, tmp_path: Path
) -> None:
    transport = HttpTransport(clock, ca_file=authority.ca_file)
    with HostileServer(authority.server("127.0.0.1")) as server:
        for _ in range(3):
            result = await send(transport, ask(server.url("ok")))
            assert isinstance(result, Answer)
            assert result.body == OK
        assert server.accepted == 1
        server.drop_all()
        assert isinstance(await send(transport, ask(server.url("gzipped"))), Answer)
    await transport.aclose()


@pytest.mark.rule("B4", "H7")
@pytest.mark.parametrize(
    ("name", "days", "signed", "says"),
    [
        ("other.example", 30, True, "another"),
        ("127.0.0.1", -3, True, "expired"),
        ("127.0.0.1", 30, False, "self-signed"),
    ],
)
async def test_an_identity_that_is_not_proved_is_a_tls_fault_and_nothing_was_sent(
    name: str, days: int, signed: bool, says: str, clock: SystemClock, authority: Authority
) -> None:
    transport = HttpTransport(clock, ca_file=authority.ca_file)
    with HostileServer(authority.server(name, days=days, signed=signed)) as server:
        result = await send(transport, ask(server.url("ok")))
        assert isinstance(result, Fault)
        assert (result.kind, result.may_have_been_sent) == (FaultKind.TLS, False)
        assert says in result.text
        assert server.heads == []
    assert transport.open_connections == 0


@pytest.mark.rule("B4")
async def test_plain_http_on_a_tls_address_is_a_tls_fault(transport: HttpTransport, server: HostileServer) -> None:
    result = await send(transport, ask(server.url("ok").replace("http:", "https:")))
    assert isinstance(result, Fault)
    assert result.kind in (FaultKind.TLS, FaultKind.RESET, FaultKind.CONNECT_TIMEOUT)
    assert not result.may_have_been_sent


@pytest.mark.rule("H7")
async def test_the_roots_in_use_do_not_include_the_test_authority_by_default(
    transport: HttpTransport, authority: Authority
) -> None:
    with HostileServer(authority.server("127.0.0.1")) as server:
        result = await send(transport, ask(server.url("ok")))
    assert isinstance(result, Fault)
    assert result.kind is FaultKind.TLS


@pytest.mark.rule("H7")
async def test_a_configured_proxy_is_used_for_what_is_not_loopback(clock: SystemClock, server: HostileServer) -> None:
    transport = HttpTransport(clock, proxy=server.origin)
    result = await send(transport, ask("http://provider.example/ok", allow_http=True))
    assert isinstance(result, Answer)
    assert server.heads[0].startswith(b"GET http://provider.example:80/ok HTTP/1.1\r\n")
    assert b"\r\nhost: provider.example\r\n" in server.heads[0]
    assert isinstance(await send(transport, ask(server.url("ok"))), Answer)
    assert server.heads[1].startswith(b"GET /ok HTTP/1.1\r\n")
    await transport.aclose()


@pytest.mark.rule("H7", "K3")
async def test_through_a_proxy_tls_reaches_the_provider_itself(clock: SystemClock, authority: Authority) -> None:
    asked: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        onward_reader, onward = await asyncio.open_connection("127.0.0.1", provider.port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, onward), pump(onward_reader, writer))

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    with HostileServer(authority.server("provider.example")) as provider:
        listener = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        proxy = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        transport = HttpTransport(clock, proxy=proxy, ca_file=authority.ca_file)
        secret = PinnedSecret("sk-canary-tunnel", ("https://provider.example:443",))
        for _ in range(2):
            request = ask("https://provider.example/ok?sig=a%2Fb", slot=BEARER)
            result = await send(transport, request, secret)
            assert isinstance(result, Answer)
        assert len(asked) == 1
        assert asked[0].startswith(b"CONNECT provider.example:443 HTTP/1.1\r\n")
        assert b"canary" not in asked[0]
        assert b"sig" not in asked[0]
        assert provider.heads[1].startswith(b"GET /ok?sig=a%2Fb HTTP/1.1\r\n")
        await transport.aclose()
        listener.close()


@pytest.mark.rule("H7", "B4")
async def test_a_proxy_that_refuses_a_tunnel_means_that_nothing_was_sent(clock: SystemClock) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    transport = HttpTransport(clock, proxy=f"http://127.0.0.1:{port}")
    result = await send(transport, ask("https://provider.example/ok"))
    listener.close()
    assert isinstance(result, Fault)
    assert (result.kind, result.may_have_been_sent) == (FaultKind.CONNECTION_REFUSED, False)
    assert transport.open_connections == 0


@pytest.mark.rule("H7")
def test_a_ca_file_or_proxy_that_cannot_be_used_is_refused_with_its_key(clock: SystemClock, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"network\.ca_file"):
        HttpTransport(clock, ca_file=tmp_path / "none.pem")
    with pytest.raises(Refused, match=r"network\.proxy"):
        HttpTransport(clock, proxy="http://user:pw@proxy.example:3128")


@pytest.mark.rule("H7")
async def test_seats_survive_a_maker_that_fails() -> None:
    def fail(origin: str) -> slots.Seat:
        raise OSError

    made = slots.Slots(fail, limit=1)
    for _ in range(3):
        with pytest.raises(OSError):
            await asyncio.wait_for(made.take("http://127.0.0.1:1"), WAIT_S)
    assert made.open == 0
