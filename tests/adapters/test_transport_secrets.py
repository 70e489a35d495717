"""Where a secret goes and where it never shows: pins, slots, redirects, echoes, logs, tracebacks, environment."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import traceback
from pathlib import Path

import pytest

from pollcore.adapters import quiet
from pollcore.adapters.pinned import PinnedSecret
from pollcore.adapters.system import SystemClock
from pollcore.adapters.transport import HttpTransport
from pollcore.facts import Answer, Fault, FaultKind, Secret, Slot
from tests.adapters.asking import BEARER, SHORT_MS, TOTAL_MS, ask, send
from tests.adapters.certificates import Authority
from tests.adapters.hostile_server import HostileServer

CANARY = "sk-canary/7Q+zeta=9"


def fields(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}


@pytest.mark.rule("K5")
@pytest.mark.parametrize(
    ("slot", "secret", "expected"),
    [
        (Slot("c", "bearer"), CANARY, {"authorization": f"Bearer {CANARY}"}),
        (Slot("c", "basic"), "me:pw", {"authorization": "Basic " + base64.b64encode(b"me:pw").decode()}),
        (Slot("c", "header", ("X-Api-Key",)), CANARY, {"x-api-key": CANARY}),
        (Slot("c", "header", ("X-Id", "X-Key")), f"id7\n{CANARY}", {"x-id": "id7", "x-key": CANARY}),
        (Slot("c", "none"), CANARY, {}),
        (None, CANARY, {}),
    ],
)
async def test_each_kind_fills_its_own_place(
    slot: Slot | None, secret: str, expected: dict[str, str], transport: HttpTransport, server: HostileServer
) -> None:
    answer = await send(transport, ask(server.url("ok"), slot=slot), Secret(secret))
    assert isinstance(answer, Answer)
    sent = fields(server.heads[0])
    assert {name: sent.get(name) for name in expected} == expected
    if not expected:
        assert CANARY not in server.heads[0].decode("latin-1")


@pytest.mark.rule("K5")
@pytest.mark.parametrize(
    ("url", "target"),
    [("ok", "/ok?key="), ("ok?", "/ok?key="), ("ok?a=1", "/ok?a=1&key="), ("ok?a=1&", "/ok?a=1&key=")],
)
async def test_a_query_credential_is_appended_percent_encoded(
    url: str, target: str, transport: HttpTransport, server: HostileServer
) -> None:
    answer = await send(transport, ask(server.url(url), slot=Slot("c", "query", ("key",))), Secret(CANARY))
    assert isinstance(answer, Answer)
    assert server.heads[0].split(b" ")[1].decode() == target + "sk-canary%2F7Q%2Bzeta%3D9"


@pytest.mark.rule("H1")
async def test_the_target_goes_out_byte_for_byte(transport: HttpTransport, server: HostileServer) -> None:
    target = "/a/../b//c%2f%7e;p|q/ok?x[]=1&sig=a%2Bb+c'{}^`&&"
    await send(transport, ask(server.origin + target))
    assert server.heads[0].split(b" ")[1].decode() == target


@pytest.mark.rule("K3", "H2")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{other}/ok",
        "http://user:pw@127.0.0.1:{own}/ok",
        "http://127.0.0.1:{own}@127.0.0.1:{other}/ok",
        "http://127.0.0.1:{own}\\@127.0.0.1:{other}/ok",
        "http://127.0.0.1:{own}/ok\r\nX-Evil: 1",
        "http://127.0.0.1:{own}/ok\x00",
        "http://127.0.0.1:{own}/ok ok",
        "http://127.0.0.1:{own}/\\evil.example/ok",
        "http://127.0.0.1:0{own}x/ok",
        "http://localhost:{own}/ok",
        "http://127.1:{own}/ok",
        "http://2130706433:{own}/ok",
        "http://[::1]:{own}/ok",
        "http://[::1%25lo]:{own}/ok",
        "http://１２７.0.0.1:{own}/ok",
        "https://127.0.0.1:{own}/ok",
        "//127.0.0.1:{own}/ok",
        "file:///etc/passwd",
        "data:text/plain,x",
        "http:/127.0.0.1:{own}/ok",
        "http://127.0.0.1:{own}.evil.example/ok",
        "http://127.0.0.1.:{own}/ok",
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.1:{own}/" + "x" * 10_000,
        "",
    ],
)
async def test_nothing_goes_to_an_address_outside_the_pins(url: str, transport: HttpTransport) -> None:
    with HostileServer() as own, HostileServer() as other:
        address = url.format(own=own.port, other=other.port)
        for secret in (PinnedSecret(CANARY, (own.origin,)), Secret(CANARY), None):
            slot = BEARER if secret else None
            result = await send(transport, ask(address, own.origin, slot=slot), secret)
            assert isinstance(result, Fault)
            assert (result.kind, result.may_have_been_sent) == (FaultKind.FOREIGN_ORIGIN, False)
            assert own.accepted == other.accepted == 0
            assert CANARY not in result.text


@pytest.mark.rule("K3")
async def test_a_secret_stays_at_its_own_origins_whatever_the_contract_allows(transport: HttpTransport) -> None:
    with HostileServer() as own, HostileServer() as other:
        key = PinnedSecret(CANARY, (own.origin,))
        slot = Slot("c", "header", ("X-Api-Key",))
        refused = await send(transport, ask(other.url("ok"), own.origin, other.origin, slot=slot), key)
        assert isinstance(refused, Fault)
        assert refused.kind is FaultKind.FOREIGN_ORIGIN
        assert other.accepted == 0
        # without a slot the address may be asked, and gets no credential
        answer = await send(transport, ask(other.url("ok"), own.origin, other.origin), key)
        assert isinstance(answer, Answer)
        assert CANARY.encode() not in b"".join(other.heads)


@pytest.mark.rule("H2")
async def test_http_beyond_loopback_is_refused_unless_allowed(transport: HttpTransport) -> None:
    refused = await send(transport, ask("http://provider.example/x", "http://provider.example:80"))
    assert isinstance(refused, Fault)
    assert (refused.kind, refused.may_have_been_sent) == (FaultKind.INSECURE, False)
    allowed = await send(transport, ask("http://provider.example/x", "http://provider.example:80", allow_http=True))
    assert isinstance(allowed, Fault)
    assert allowed.kind is FaultKind.DNS


@pytest.mark.rule("K3", "K5")
@pytest.mark.parametrize(
    ("headers", "slot", "secret"),
    [
        ((("X-A", "1\r\nX-Evil: 1"),), None, CANARY),
        ((("X-A\r\nX-Evil", "1"),), None, CANARY),
        ((("Host", "elsewhere.example"),), None, CANARY),
        ((("Transfer-Encoding", "chunked"),), None, CANARY),
        ((("Content-Length", "5"),), None, CANARY),
        ((("Accept-Encoding", "br"),), None, CANARY),
        ((("X-A", "1"), ("x-a", "2")), None, CANARY),
        ((("Authorization", "Bearer other"),), BEARER, CANARY),
        ((), BEARER, "two\r\nlines"),
        ((), BEARER, "t\u00f6ken-longer"),
        ((), BEARER, ""),
        ((), Slot("c", "header", ("Host",)), CANARY),
        ((), Slot("c", "header", ("A", "B")), CANARY),
        ((), Slot("c", "query", ()), CANARY),
        ((), Slot("c", "query", ("a=b&c",)), CANARY),
        ((), Slot("c", "oauth", ()), CANARY),
    ],
)
async def test_a_head_that_http_cannot_carry_is_not_sent(
    headers: tuple[tuple[str, str], ...],
    slot: Slot | None,
    secret: str,
    transport: HttpTransport,
    server: HostileServer,
) -> None:
    result = await send(transport, ask(server.url("ok"), headers=headers, slot=slot), Secret(secret))
    assert isinstance(result, Fault)
    assert (result.kind, result.may_have_been_sent) == (FaultKind.PROTOCOL, False)
    assert server.accepted == 0
    assert not secret or secret not in result.text


async def test_a_body_is_sent_with_its_length(transport: HttpTransport, server: HostileServer) -> None:
    result = await send(transport, ask(server.url("asks_to_close"), method="POST", body=b'{"ids":[1]}'))
    assert isinstance(result, Answer)
    assert fields(server.heads[0])["content-length"] == "11"


@pytest.mark.rule("K4")
@pytest.mark.parametrize("slot", [BEARER, Slot("c", "header", ("X-Api-Key",)), Slot("c", "query", ("key",))])
async def test_an_echoed_secret_is_masked_before_anyone_reads_the_answer(
    slot: Slot, transport: HttpTransport, server: HostileServer
) -> None:
    result = await send(transport, ask(server.url("echo"), slot=slot), PinnedSecret(CANARY, (server.origin,)))
    assert isinstance(result, Answer)
    told = repr(result)
    assert "********" in told
    whole = base64.b64encode(CANARY.encode()).decode()
    for form in (CANARY, CANARY.encode().hex(), "sk-canary%2F7Q%2Bzeta%3D9", whole):
        assert form not in told
    # inside the base64 of the whole head the secret starts at any of three offsets
    before, mask, after = json.loads(result.body)["b64"].partition("********")
    assert mask
    left = base64.b64decode(before[: len(before) // 4 * 4])
    assert CANARY[:3].encode() not in left
    for skip in range(4):
        rest = after[skip:]
        assert CANARY[-3:].encode() not in base64.b64decode(rest[: len(rest) // 4 * 4])


@pytest.mark.rule("K1")
@pytest.mark.parametrize("name", ["ok", "echo", "short_body", "status_999", "silent", "gzip_lie", "reset_in_body"])
async def test_logs_faults_and_reprs_never_show_the_secret_or_the_query(
    name: str, transport: HttpTransport, server: HostileServer
) -> None:
    quiet.hush_loggers()
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        secret = PinnedSecret(CANARY, (server.origin,))
        total_ms = SHORT_MS if name == "silent" else TOTAL_MS
        request = ask(server.url(f"{name}?sig=presigned-canary"), slot=BEARER, total_ms=total_ms)
        result = await send(transport, request, secret)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert CANARY in server.heads[0].decode()
    assert CANARY not in told.getvalue() + repr(result) + repr(secret) + repr(request) + repr(transport)
    assert "presigned-canary" not in told.getvalue()
    if isinstance(result, Fault):
        assert "presigned-canary" not in repr(result)


@pytest.mark.rule("K1")
async def test_a_cancelled_exchange_carries_no_frame_that_holds_the_secret(
    transport: HttpTransport, server: HostileServer
) -> None:
    secret = PinnedSecret(CANARY, (server.origin,))
    task = asyncio.create_task(transport.send(ask(server.url("silent"), slot=BEARER, total_ms=30_000), secret))
    await asyncio.to_thread(server.wait_until, lambda: len(server.heads) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    error: BaseException | None = caught.value
    shown = ""
    while error is not None:
        made = traceback.TracebackException(type(error), error, error.__traceback__, capture_locals=True)
        shown += "".join(made.format())
        error = error.__context__
    assert "transport.py" in shown
    for below in ("wire.py", "httpcore", "httpx"):
        assert below not in shown
    assert CANARY not in shown


@pytest.mark.rule("H7", "K1")
async def test_the_environment_names_no_proxy_no_roots_and_no_key_log(
    clock: SystemClock, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "keys.log"
    with HostileServer() as trap, HostileServer(authority.server("127.0.0.1")) as server:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, trap.origin)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("SSLKEYLOGFILE", str(log))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
        plain = HttpTransport(clock)
        untrusted = await send(plain, ask(server.url("ok")))
        assert isinstance(untrusted, Fault)
        assert untrusted.kind is FaultKind.TLS
        ours = HttpTransport(clock, ca_file=authority.ca_file)
        assert isinstance(await send(ours, ask(server.url("ok"))), Answer)
        assert isinstance(await send(plain, ask("http://provider.example/x", allow_http=True)), Fault)
        assert trap.accepted == 0
        assert not log.exists()
        await ours.aclose()
