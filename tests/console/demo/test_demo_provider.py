"""The demo's provider by itself: lives of jobs, cancels, tokens, outages, and what it does with bad requests."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator

import pytest

from pollconsole.demo.dialects import BATCH, EXPORT, RENDER
from pollconsole.demo.jobs import Job, Jobs, Outage, Token
from pollconsole.demo.lives import Life, Reply, each
from pollconsole.demo.provider import MAX_HEAD, Provider, digest
from pollcore.facts import Instant

BEGIN = Instant(1_800_000_000_000)
TOKEN = digest("word")
LIMIT_S = 60.0


def after(seconds: float) -> Instant:
    return Instant(BEGIN + int(seconds * 1_000))


def jobs(life: Life, *, keeps_going: bool = False, provider: str = RENDER.provider) -> Jobs:
    made = Jobs(
        BEGIN,
        (Token(RENDER.provider, TOKEN), Token(BATCH.provider, TOKEN, until_s=10), Token(EXPORT.provider, TOKEN)),
        (Outage(EXPORT.provider, 5, 8),),
    )
    made.add(Job(provider=provider, job_id="j", life=life, born=BEGIN, keeps_going=keeps_going))
    return made


def states(made: Jobs, *at: float, provider: str = RENDER.provider) -> list[str | int | None]:
    replies = [made.status(provider, "j", TOKEN, after(s))[0] for s in at]
    return [reply.state if reply.status == 200 else reply.status for reply in replies]


def test_a_course_follows_the_clock_whoever_asks() -> None:
    made = jobs(RENDER.course(10, 20))
    assert states(made, 1, 1, 11, 29, 31, 99) == ["queued", "queued", "running", "running", "succeeded", "succeeded"]
    assert made.asked() == {(RENDER.provider, "j"): 6}


def test_progress_grows_with_the_stage() -> None:
    made = jobs(RENDER.course(10, 100))
    assert [made.status(RENDER.provider, "j", TOKEN, after(s))[1] for s in (5, 10, 60, 109, 120)] == [
        None,
        0,
        50,
        99,
        None,
    ]


def test_answers_come_one_after_the_other_and_the_last_stays() -> None:
    made = jobs(each(Reply(status=404), Reply(state="running"), Reply(state="succeeded")))
    assert states(made, 0, 0, 0, 0) == [404, "running", "succeeded", "succeeded"]


def test_a_cancel_is_first_cancelling() -> None:
    made = jobs(RENDER.course(10, 100))
    assert made.cancel(RENDER.provider, "j", TOKEN, after(1)).status == 202
    assert states(made, 1, 2, 3) == ["cancelling", "cancelled", "cancelled"]
    assert made.cancels(RENDER.provider, "j") == 1


def test_a_cancel_may_come_too_late() -> None:
    made = jobs(RENDER.course(10, 100), keeps_going=True)
    assert made.cancel(RENDER.provider, "j", TOKEN, after(1)).status == 202
    assert states(made, 20, 200) == ["running", "succeeded"]


def test_a_rotated_token_is_refused_and_a_strange_one_always() -> None:
    made = jobs(each(Reply(state="in_progress")), provider=BATCH.provider)
    assert states(made, 9, 10, provider=BATCH.provider) == ["in_progress", 401]
    assert made.status(BATCH.provider, "j", None, after(1))[0].status == 401


def test_an_outage_covers_the_whole_origin_for_its_time_and_is_counted() -> None:
    made = jobs(each(Reply(state="PENDING")), provider=EXPORT.provider)
    assert states(made, 4, 5, 7.9, 8, provider=EXPORT.provider) == ["PENDING", 503, 503, "PENDING"]
    assert made.asked() == {(EXPORT.provider, "j"): 4}


def test_one_idempotency_key_is_one_job() -> None:
    made = jobs(())
    first = made.submit(RENDER.provider, "key", TOKEN, after(1))[1]
    assert made.submit(RENDER.provider, "key", TOKEN, after(2))[1] == first
    assert made.submit(RENDER.provider, "other", TOKEN, after(2))[1] != first
    assert made.status(RENDER.provider, first, TOKEN, after(2))[0].state == "queued"


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider(jobs(each(Reply(state="running", date_off=90), Reply(state="running", cut=True))), lambda: after(0))
    made.start()
    yield made
    made.stop()


def port_of(provider: Provider) -> int:
    return int(provider.urls[RENDER.provider].rpartition(":")[2])


def test_it_speaks_http_with_ids_and_a_date_of_its_own(provider: Provider) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port_of(provider), timeout=LIMIT_S)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/jobs/j", headers={"Authorization": "Bearer word"})
        answer = connection.getresponse()
        assert json.loads(answer.read()) == {"id": "j", "status": "running"}
        assert answer.headers["X-Request-Id"] == "req-j-1"
        assert answer.headers["Date"] == "Fri, 15 Jan 2027 08:01:30 GMT"
        connection.request("GET", "/v1/jobs/j", headers={"Authorization": "Bearer word"})
        with pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * (2 * MAX_HEAD) + b" HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nContent-Length: many\r\n\r\n",
    ],
)
def test_a_bad_request_ends_its_connection_and_no_other(provider: Provider, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port_of(provider)), timeout=LIMIT_S) as other:
        with socket.create_connection(("127.0.0.1", port_of(provider)), timeout=LIMIT_S) as connection:
            connection.sendall(sent)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1_000) == b""
        other.sendall(b"GET /v1/jobs/j HTTP/1.1\r\nAuthorization: Bearer word\r\n\r\n")
        assert other.recv(1_000).startswith(b"HTTP/1.1 200 ")


def test_it_ends_with_its_connections(provider: Provider) -> None:
    port = port_of(provider)
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as connection:
        connection.sendall(b"GET /v1/jobs/j HTTP/1.1\r\nAuthorization: Bearer word\r\n\r\n")
        assert connection.recv(1_000).startswith(b"HTTP/1.1 200 ")
        provider.stop()
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1_000) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
