"""`submit --file`: strict JSON, errors that name the field, nothing that breaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollconsole.cli import handover
from pollcore.facts import Refused

WHOLE = {
    "provider": "acme",
    "job_id": "job-7",
    "param": {"region": "eu", "n": 3, "flag": True},
    "deadline": "40m",
    "max_requests": 12,
    "useful_until": "2026-03-02T12:00:00Z",
}


def read(value: Any) -> handover.Handover:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return handover.parse_handover(data, "f")


def test_a_whole_file_is_read() -> None:
    handed = read(WHOLE)
    assert {name: getattr(handed, name) for name in WHOLE} == WHOLE


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"providr": "acme"}, "did you mean 'provider'"),
        ({"max_requests": "12"}, "max_requests: expected int"),
        ({"max_requests": True}, "max_requests: expected int"),
        ({"max_requests": 0}, "max_requests: 0 is below 1"),
        ({"max_requests": 1.5}, "max_requests: expected int"),
        ({"max_requests": 10**30}, "max_requests"),
        ({"deadline": "soon"}, "deadline: "),
        ({"deadline": 40}, "deadline: expected str"),
        ({"useful_until": "2026-03-02T12:00:00"}, "useful_until: time without a zone"),
        ({"label": "a\u001b[31mb"}, "label: holds the control character U\\+001B"),
        ({"label": "a\x00"}, "label: holds the control character U\\+0000"),
        ({"param": {"a": {"b": 1}}}, "param: 'a' must be a text"),
        ({"param": {"a": 10**40}}, "beyond all measure"),
        ([], "one JSON object"),
        (b"", "not JSON"),
        (b"{} {}", "not JSON: Extra data"),
        (b'{"label": "a", "label": "b"}', "'label' is there twice"),
        (b'{"param": {"a": NaN}}', "NaN is no JSON"),
        (b'{"param": {"a": 1e999}}', "beyond all measure"),
        (b'{"param": {"a": ' + b"9" * 5_000 + b"}}", "beyond all measure"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        (b'{"label": "\\ud800"}', "label: is not valid UTF-8"),
    ],
)
@pytest.mark.rule("B1")
def test_a_wrong_file_is_refused_with_the_field_that_is_wrong(value: Any, says: str) -> None:
    with pytest.raises(Refused, match=says):
        read(value)


def test_what_stands_in_file_and_flags_is_refused() -> None:
    with pytest.raises(Refused, match="--job-id is also in --file f as 'job_id'"):
        handover.merge(read(WHOLE), handover.Handover(job_id="job-8"), "f")


def test_flags_and_file_complete_each_other() -> None:
    merged = handover.merge(read(WHOLE), handover.Handover(label="nightly"), "f")
    assert (merged.label, merged.provider) == ("nightly", "acme")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(handover.FIELDS), json_values))
def test_any_object_is_read_or_refused(value: dict[str, Any]) -> None:
    try:
        handed = read(value)
    except Refused as error:
        told = str(error)
    else:
        handover.check(handed)
        told = "--file f: " if (handed.max_requests or 1) >= 1 else "a limit below 1"
    assert told.startswith("--file f: ")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        code = "file" if isinstance(read(data), handover.Handover) else "none"
    except Refused as error:
        code = error.code
    assert code == "file"
