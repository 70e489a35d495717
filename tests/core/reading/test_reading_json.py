"""Strict JSON: hostile bytes are refused in words, within small time and memory."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import answer, contract, look

from pollcore.facts import StopDetail, Verdict
from pollcore.reading.strict_json import MAX_NODES, MAX_STRING, Unreadable, decode

HOSTILE = [
    (b"", "empty"),
    (b" \n", "empty"),
    (b'{"a":1', "exactly one"),
    (b'{"a":1} x', "exactly one"),
    (b"{}{}", "exactly one"),
    (b'\xef\xbb\xbf{"a":1}', "exactly one"),
    ('{"a":1}'.encode("utf-16"), "not UTF-8"),
    (b'{"a":"\xff"}', "not UTF-8"),
    (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
    (b'{"a":"\\ud800"}', "surrogate"),
    (b'{"\\udfff":1}', "surrogate"),
    (b'{"s":"running","s":"done"}', "twice"),
    (b'{"a":{"b":1,"b":1}}', "twice"),
    (b'{"a":NaN}', "no JSON number"),
    (b'{"a":-Infinity}', "no JSON number"),
    (b'{"a":1e400}', "too large"),
    (b'{"a":' + b"9" * 79 + b"}", "78 digits"),
    (b'{"a":-' + b"1" * 6_000 + b"}", "78 digits"),
    (b'{"a":0.' + b"1" * 100 + b"}", "too long"),
    (b"[" * 65 + b"]" * 65, "deeper"),
    (b"[" * 100_000, "deeper"),
    (b'{"a":' * 2_000 + b"1" + b"}" * 2_000, "deeper"),
    (b"[" + b"{}," * 500_000 + b"{}]", "more than"),
    (b'["' + b"a" * (MAX_STRING + 1) + b'"]', "64 KiB"),
    (b"<html>bad gateway</html>", "page or XML"),
    (b'{"a":"\x01"}', "exactly one"),
    (b"'a'", "exactly one"),
    (b'["' + b'\\"' * 500_000, "exactly one"),
    (b'"' * 200_001, "exactly one"),
    (b'{"a":01}', "exactly one"),
]


@pytest.mark.rule("H7", "X5")
@pytest.mark.parametrize(("body", "why"), HOSTILE, ids=[f"{n}-{why}" for n, (_, why) in enumerate(HOSTILE)])
def test_hostile_bodies_are_refused_in_our_words(body: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        decode(body)
    seen, _ = look(contract(), answer(200, body))
    assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, StopDetail.UNREADABLE)
    assert why in (seen.explanation or "")


@pytest.mark.rule("H7")
def test_what_is_within_the_limits_reads_as_it_is() -> None:
    assert decode(b"[" * 64 + b"]" * 64) is not None
    assert decode(b'{"a":' + b"9" * 78 + b',"b":-' + b"9" * 78 + b"}") == {"a": 10**78 - 1, "b": 1 - 10**78}
    assert decode(b'{"id":"' + b"9" * 40 + b'"}') == {"id": "9" * 40}
    assert decode(b'{"a":"\\ud83d\\ude00"}') == {"a": "\U0001f600"}
    assert len(decode(b"[" + b"1," * (MAX_NODES - 2) + b"1]")) == MAX_NODES - 1
    assert decode(b'["' + b"," * 30_000 + b'"]') == ["," * 30_000]
    assert decode(b'{"__proto__":1}') == {"__proto__": 1}


@pytest.mark.rule("H7")
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(1 - 10**78, 10**78 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
        ),
        max_leaves=30,
    )
)
def test_ordinary_json_reads_as_the_standard_library_reads_it(value: object) -> None:
    body = json.dumps(value).encode()
    assert decode(body) == json.loads(body)
    assert decode(json.dumps(value, ensure_ascii=False).encode()) == json.loads(body)


@pytest.mark.rule("H7")
@given(st.binary(max_size=300))
def test_any_bytes_are_a_value_or_unreadable(body: bytes) -> None:
    try:
        value = decode(body)
    except Unreadable:
        return
    assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.rule("H7")
@pytest.mark.parametrize(
    "kind", [None, "text/html", "application/json; charset=rot13", "application/json; charset=idna"]
)
def test_a_wrong_or_missing_content_type_alone_changes_nothing(kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    assert look(contract(), answer(200, {"status": "running"}, headers))[0].verdict is Verdict.WAITING
