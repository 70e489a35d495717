"""The worked examples of docs/contracts.md, read from the page itself: contract, requests, answers, what they mean."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
from tests.core.reading.helpers import START, operation

from pollcore.contract import Contract, batch_requests, parse, requests
from pollcore.facts import FORCE, Answer, Exchange, Instant, Memory, Observation, Operation, Verdict, iso
from pollcore.reading import force_available_at, from_response, read, read_cancel

DOCS = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text("utf-8")
HEAD = ("schema", "schema = 1\n"), ("name", 'name = "example"\n')
TABLES = (
    ("credential", '[credential]\nkind = "none"\n'),
    ("status", '[status]\nurl = "https://api.example.test/jobs/{job_id}"\n'),
    ("state", '[state]\nvalue = "body.status"\n'),
    ("states", '[states]\nwaiting = ["running"]\nsucceeded = ["done"]\nfailed = ["failed"]\n'),
    ("limits", '[limits]\ndeadline_basis = "example"\n'),
)
_LINE = re.compile(r"(?P<status>[0-9]{3})(?: \[(?P<headers>[^\]]*)\])?(?: (?P<body>.*?))? -> (?P<meaning>.*)")
_EXAMPLE = re.compile(r"^### (?P<title>R[0-9]{2}.*?)\n(?P<text>.*?)(?=^###? |\Z)", re.MULTILINE | re.DOTALL)


class Example(msgspec.Struct, frozen=True):
    """One example: the needs of its heading, its contract, the lines of its `text` block."""

    title: str
    toml: str
    lines: tuple[str, ...]

    @property
    def needs(self) -> list[str]:
        return re.findall(r"\bR[0-9]{2}\b", self.title)


def examples() -> list[Example]:
    found = []
    for one in _EXAMPLE.finditer(DOCS):
        toml = re.search(r"```toml\n(.*?)```", one["text"], re.DOTALL)
        lines = re.search(r"```text\n(.*?)```", one["text"], re.DOTALL)
        assert toml is not None, one["title"]
        assert lines is not None, one["title"]
        found.append(Example(one["title"], toml[1], tuple(lines[1].splitlines())))
    return found


def completed(toml: str) -> Contract:
    """The contract of an example; tables that it leaves out are the plainest ones."""
    root = re.split(r"^\[", toml, maxsplit=1, flags=re.MULTILINE)[0]
    keys = "".join(text for key, text in HEAD if not re.search(rf"^{key} =", root, re.MULTILINE))
    has_rules = re.search(r"^\[\[rules\]\]", toml, re.MULTILINE) and not re.search(r"^\[states?\]", toml, re.MULTILINE)
    tables = "".join(
        text
        for key, text in TABLES
        if not re.search(rf"^\[{key}\]", toml, re.MULTILINE) and not (has_rules and key in ("state", "states"))
    )
    return parse(f"{keys}{toml}{tables}", "example.toml")


class Run:
    """One example played line by line; every line that says what must hold is checked."""

    def __init__(self, example: Example) -> None:
        self.contract = completed(example.toml)
        self.operation: Operation = operation(Memory())
        self.after = 0
        self.together: tuple[Operation, ...] = ()
        """R39: operations of one request, the example's own among them."""
        self.checked = 0
        self.seen: Observation | None = None

    def play(self, line: str) -> None:
        self.after += 5_000
        word, _, rest = line.partition(" ")
        if not line or line.startswith("#"):
            return
        if word == "job":
            self._job(rest)
            return
        if word in ("together", "alone"):
            self.together = tuple(operation(Memory(), job_id=job_id) for job_id in rest.split())
            return
        self.checked += 1
        if word in ("GET", "POST", "HEAD"):
            self._request(requests.status_request(self.contract, self.operation, "cred"), line)
        elif word == "cancel" and rest[:1].isupper():
            self._request(requests.cancel_request(self.contract, self.operation, "cred"), rest)
        elif word == "batch":
            self._request(batch_requests.batch_request(self.contract, self.together), rest)
        elif word == "result":
            self._request(requests.result_request(self.contract, self.operation, "cred"), rest)
        elif word == "submit":
            self._request(requests.submit_request(self.contract, self.operation.submitted, "key-1", "cred"), rest)
        elif word == "force" and rest[:1].isupper():
            self._request(requests.cancel_request(self.contract, self.operation, "cred", FORCE), rest)
        elif word in ("cancel", "force"):
            found, meaning = _answer(rest, self.after)
            assert read_cancel(self.contract, found, FORCE if word == FORCE else None)[0].value == meaning, line
        elif word == "submission":
            self._submission(rest)
        else:
            self._poll(line)

    def _job(self, rest: str) -> None:
        job_id, _, given = rest.partition(" ")
        submitted = msgspec.structs.replace(self.operation.submitted, job_id=job_id)
        for key, value in (json.loads(given) if given else {}).items():
            submitted = msgspec.structs.replace(submitted, **{key: value})
        requests.check_params(self.contract, submitted.params)
        self.operation = msgspec.structs.replace(self.operation, submitted=submitted)

    def _request(self, request: Any, line: str) -> None:
        method, _, rest = line.partition(" ")
        url, _, more = rest.partition(" ")
        assert (request.method, request.url) == (method, url), line
        if more.startswith("["):
            for name, value in _headers(more[1:].partition("]")[0]):
                sent = {key.lower(): text for key, text in request.headers}
                assert sent.get(name) == (None if value == "none" else value), line
        elif more == "without credential":
            assert request.slot is None, line
        elif more:
            assert (request.body or b"").decode() == more, line

    def _poll(self, line: str) -> None:
        found, meaning = _answer(line, self.after)
        step = self.operation.memory.step or "status"
        url = requests.status_request(self.contract, self.operation, None).url
        seen, memory = read(
            self.contract,
            self.operation,
            (Exchange(step, url, found, max(0, len(self.together) - 1)),),
        )
        result = seen.result if seen.result is not None else self.operation.result
        self.operation = msgspec.structs.replace(
            self.operation,
            memory=memory,
            result=result,
            provider_expires_at=seen.provider_expires_at or self.operation.provider_expires_at,
        )
        self.seen = seen
        verdict = "integration_failure" if seen.verdict is Verdict.INTEGRATION else seen.verdict.value
        said = [verdict, *([seen.detail.value] if seen.detail is not None else [])]
        kinds = [part.strip() for part in meaning.split(";")]
        assert kinds[0].split() == said, (line, seen)
        for part in kinds[1:]:
            if part.startswith("force "):
                at = force_available_at(self.contract, self.operation, seen.envelope or b"")
                assert part == f"force {'none' if at is None else iso(at)}", line
                continue
            assert _holds(part, seen, self.operation), (line, part, seen)

    def _submission(self, rest: str) -> None:
        found, meaning = _answer(rest, self.after)
        handover = from_response(self.contract, self.operation.submitted, found, "https://api.example.test/jobs")
        wanted = json.loads(meaning)
        assert {key: getattr(handover, key) for key in wanted} == wanted, rest
        self.operation = msgspec.structs.replace(
            self.operation,
            submitted=msgspec.structs.replace(
                self.operation.submitted,
                job_id=handover.job_id,
                status_url=handover.status_url,
                params=handover.params,
            ),
        )


def _holds(part: str, seen: Observation, after: Operation) -> bool:
    """`state X`, `next in 2 s`, `partial`, `on` (the next step goes out at once), `url = ...`, `progress 3/9` ..."""
    word, _, rest = part.partition(" ")
    result = seen.result
    told: dict[str, Any] = {
        "state": seen.state,
        "progress": seen.progress,
        "error": seen.provider_error,
        "request-id": seen.http.request_id,
        "because": seen.explanation,
    }
    if word in told:
        return str(told[word]) == rest
    if word == "next":
        return seen.guidance is not None and f"in {seen.guidance.delay_ms / 1000:g} s" == rest
    if word == "refused":
        return any(fault.name == rest for fault in seen.hint_faults)
    if word == "apart":
        return seen.apart
    if word == "on":
        return seen.continues
    if word == "cancelling":
        return seen.cancelling
    if word == "unseen":
        return not seen.job_seen
    if word == "expires":
        return seen.provider_expires_at is not None and seen.provider_expires_at - START == int(rest) * 1_000
    if word in ("partial", "empty", "did_not_run"):
        return result is not None and word in result.qualifiers
    name, _, value = part.partition(" = ")
    return result is not None and result.fields.get(name) == json.loads(value)


def _headers(text: str) -> list[tuple[str, str]]:
    pairs = [part.partition(": ") for part in text.split(" | ")]
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]


def _answer(line: str, after: int) -> tuple[Answer, str]:
    found = _LINE.fullmatch(line)
    assert found is not None, f"no answer line: {line}"
    at = Instant(START + after)
    body = (found["body"] or "").replace("\\n", "\n").encode()
    pairs = tuple(_headers(found["headers"])) if found["headers"] else ()
    return Answer(int(found["status"]), pairs, body, Instant(at - 50), at), found["meaning"]
