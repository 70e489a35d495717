"""A provider, and a seller of tokens, that give back every secret they saw: in bodies, headers, states, errors, links.

Job: answer by the job's id, KIND-MODE. Must not know: the product.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, quote

from tests.trust.canary import ECHOES, Search

MODES: Final = ("done", "state", "failed", "errors", "redirect", "wrong", "slow")
#: How a job fares: `done` after one more look, `slow` never.
MAX_BODY: Final = 64 * 1024


class Provider(ThreadingHTTPServer):
    """*echoed*: kind -> what it gives back of it, raw and encoded. *bought*: kind -> the token that it sells."""

    daemon_threads = True

    def __init__(self, search: Search, echoed: dict[str, Sequence[str]], bought: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.search = search
        self.echoed = echoed
        self.bought = bought
        self.cookie = search.add("cookie", "cnSessionCookieOfTheProvider7d1f")
        self.signature = search.add("signed link", "cnSignatureOfTheLink5b9e0a")
        self.fresh = search.add("new refresh token", "cnFreshRefreshTokenThatReplaces3c")
        self.seen: dict[str, int] = {}
        self.credentials: dict[str, str] = {}
        """kind -> the head of its last request: that the secret really was on the way."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def all_forms(self, kind: str) -> list[str]:
        return [encode(text) for text in self.echoed[kind] for encode in ECHOES.values()]


class _Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        job = path.rpartition("/")[2]
        kind, _, mode = job.partition("-")
        self.server.credentials[kind] = f"{self.path}\n{self.headers}"
        number = self.server.seen[job] = self.server.seen.get(job, 0) + 1
        raw, forms = self.server.echoed[kind][0], self.server.all_forms(kind)
        headers = {
            "X-Request-Id": raw,
            "X-Echo": ECHOES["base64"](raw),
            "Set-Cookie": f"s={self.server.cookie}; t={quote(raw, safe='')}",
            "WWW-Authenticate": f'Bearer realm="{ECHOES["hex"](raw)}", error="{quote(raw, safe="")}"',
        }
        body: dict[str, Any] = {"id": job, "status": "running", "echo": forms, "query": query, "progress": raw}
        status = 200
        if path.startswith("/files/"):
            body = {"content": forms}
        elif mode == "done" and number > 1:
            link = f"{self.server.url}/files/{job}?sig={self.server.signature}&token={quote(raw, safe='')}"
            body |= {"status": "done", "result": {"url": link, "note": forms}}
        elif mode == "state":
            body["status"] = f"odd {' '.join(forms)}"
        elif mode == "failed":
            body |= {"status": "failed", "error": {"code": forms[number % len(forms)], "message": " ".join(forms)}}
        elif mode == "errors":
            status, body = 500, {"error": {"code": raw, "message": f"cannot use {' '.join(forms)}"}}
        elif mode == "redirect":
            status, body = 302, {}
            headers["Location"] = f"https://elsewhere.example/{quote(raw, safe='')}?token={forms[1]}"
        elif mode == "wrong":
            body["id"] = forms[0]
            headers["Retry-After"] = raw
        self._send(status, headers, body)

    def do_POST(self) -> None:
        size = min(int(self.headers.get("content-length", 0)), MAX_BODY)
        body = self.rfile.read(size).decode()
        kind = self.path.rpartition("/")[2]
        if self.path.endswith("/access_tokens"):
            kind = "app"
        self.server.credentials[f"{kind} seller"] = f"{self.headers}\n{body}"
        assertion = (parse_qs(body).get("assertion") or [self.headers.get("authorization", "")[7:]])[0]
        if kind in ("google", "app") and assertion:
            self.server.search.add(f"{kind} assertion", assertion)
        if kind not in self.server.bought:
            told = " ".join(self.server.all_forms(kind))
            self._send(400, {"X-Request-Id": "r1"}, {"error": "invalid_client", "error_description": told})
            return
        token = self.server.bought[kind]
        answer = {"access_token": token, "token": token, "token_type": "bearer", "expires_in": 300, "scope": ""}
        if kind == "refresh":
            answer["refresh_token"] = self.server.fresh
            # the old one is spent, and nobody knows it any more
            self.server.echoed[kind] = [token, *self.server.echoed[kind][1:-1], self.server.fresh]
        self._send(200, {}, answer)

    def _send(self, status: int, headers: Mapping[str, str], body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status, "Because")
        for name, text in {"Content-Type": "application/json", **headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
