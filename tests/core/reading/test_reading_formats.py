"""Answers that are not one JSON document: read to one tree, strictly and within limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import HEAD, LIMITS, STATES, answer, contract, look, moment, operation

from pollcore.contract import Contract, parse
from pollcore.contract.parts import BodyFormat
from pollcore.facts import StopDetail, Verdict
from pollcore.reading import formats, reread, strict_json, strict_xml

XML = BodyFormat(name="xml")
NDJSON = BodyFormat(name="ndjson")
FORM = BodyFormat(name="form")
TEXT = BodyFormat(name="text")
BOMB = (
    b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;</a>'
)
OUTSIDE = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'


def why(body: bytes, form: BodyFormat) -> str:
    with pytest.raises(strict_json.Unreadable) as caught:
        formats.decode(body, form)
    return str(caught.value)


@pytest.mark.rule("X5")
@pytest.mark.parametrize(
    "body", [BOMB, OUTSIDE, b'<!DOCTYPE a SYSTEM "http://127.0.0.1/x.dtd"><a/>', b"<!DOCTYPE a><a/>"]
)
def test_xml_with_a_document_type_is_refused_before_anything_is_expanded_or_loaded(body: bytes) -> None:
    assert "document type" in why(body, XML)


@pytest.mark.rule("X5")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<a><b></a>", "not exactly one"),
        (b"<a/><b/>", "not exactly one"),
        (b"<a>", "not exactly one"),
        (b"<a>&undefined;</a>", "not exactly one"),
        (b'{"a": 1}', "JSON, not XML"),
        (b"<a>\xff</a>", "not UTF-8"),
        ("<a/>".encode("utf-16"), "not UTF-8"),
        (b'<?xml version="1.0" encoding="iso-8859-1"?><a/>', "declared as UTF-8"),
        (b"<a>" * 65, "deeper than 64"),
        (b"<a>" + b"<b/>" * 20_000 + b"</a>", "more than 20000 values"),
        (b"<a>" + b"x" * 65_537 + b"</a>", "longer than 64 KiB"),
        (b"<a b='" + b"x" * 65_537 + b"'/>", "longer than 64 KiB"),
        (b"<html><body>Sign in", "a page, not XML"),
        (b"<a xmlns:x='u' xmlns:y='v' x:id='1' y:id='2'/>", "an attribute twice"),
    ],
)
def test_xml_beyond_a_limit_or_not_well_formed_is_unreadable_and_says_why(body: bytes, said: str) -> None:
    assert said in why(body, XML)


def test_xml_becomes_the_tree_that_the_documentation_describes() -> None:
    body = b'<n:R xmlns:n="u" n:id="3"><E> x </E><S k="v">t</S><N/><L>1</L><L>2</L><T>mixed<U>u</U></T></n:R>'
    assert strict_xml.decode(body, frozenset({"E"})) == {
        "R": {
            "@id": "3",
            "E": ["x"],
            "S": {"@k": "v", "#text": "t"},
            "N": "",
            "L": ["1", "2"],
            "T": {"U": "u", "#text": "mixed"},
        }
    }


@pytest.mark.rule("X5")
@pytest.mark.parametrize(
    ("body", "form", "said"),
    [
        (b'{"a": 1}\n{"a": ', NDJSON, "line 2: "),
        (b'{"a": 1}{"a": 2}\n', NDJSON, "line 1: "),
        (b"\n \n", NDJSON, "empty"),
        (b"1\n" * 5_001, NDJSON, "more than 5000 lines"),
        (b"[" * 65 + b"\n", NDJSON, "deeper than 64"),
        (b"[1,1,1,1,1]\n" * 4_100, NDJSON, "more than 20000 values"),
        (b"no fields", FORM, "no form"),
        (b"a=%ff", FORM, "not UTF-8"),
        (b"&".join(b"a=1" for _ in range(1_001)), FORM, "more than 1000 fields"),
        (b"x" * 65_537, TEXT, "longer than 64 KiB"),
        (b"\xff", TEXT, "not UTF-8"),
    ],
)
def test_other_formats_beyond_a_limit_are_unreadable_and_say_why(body: bytes, form: BodyFormat, said: str) -> None:
    assert said in why(body, form)


def test_lines_and_fields_and_texts_read_as_one_value() -> None:
    assert formats.decode(b'{"a": 1}\r\n\n[2]\n', NDJSON) == [{"a": 1}, [2]]
    assert formats.decode(b"a=1&b=x%20y&b=&c=%C3%A4\n", FORM) == {"a": "1", "b": ["x y", ""], "c": "\u00e4"}
    assert formats.decode(b" done \n", TEXT) == "done"


@given(st.binary(max_size=300), st.sampled_from(["json", "xml", "ndjson", "form", "text"]))
@pytest.mark.rule("X5", "S1")
def test_no_bytes_make_a_format_raise_anything_but_unreadable(body: bytes, name: str) -> None:
    try:
        formats.decode(body, BodyFormat(name=name))
    except strict_json.Unreadable:
        pass


@given(st.text(alphabet="<>/ab&;=\"' !-[]?", max_size=80))
@pytest.mark.rule("X5", "S1")
def test_a_contract_for_xml_has_a_verdict_for_every_text(text: str) -> None:
    seen, _ = look(xml_contract(), answer(200, text.encode()))
    assert seen.verdict in (Verdict.INTEGRATION, Verdict.UNKNOWN, Verdict.WAITING)


def xml_contract() -> Contract:
    head = HEAD.replace("observation", 'format = "xml"\nobservation', 1)
    return parse(head + '[state]\nvalue = "body.job.status"\n' + STATES + LIMITS, "acme.toml")


@pytest.mark.rule("X5")
def test_a_stored_answer_in_another_format_reads_again_as_it_did() -> None:
    for body, size in ((b"<job><status>running</status></job>", 0), (b"<job><status>running</status></job>", 3_000)):
        body = body.replace(b"</job>", b"<log>" + b"x" * size + b"</log></job>")
        one = xml_contract()
        seen, memory = look(one, answer(200, body))
        assert len(seen.envelope) <= 2_048
        again = reread(one, operation(memory), seen.envelope, moment()).observation
        assert (seen.verdict, again.verdict, again.state) == (Verdict.WAITING, Verdict.WAITING, "running")


@pytest.mark.rule("X5")
def test_of_a_long_stream_the_newest_lines_are_kept_and_read_again() -> None:
    head = HEAD.replace("observation", 'format = "ndjson"\nobservation', 1)
    one = parse(head + '[state]\nvalue = "body[-1].status"\n' + STATES + LIMITS, "acme.toml")
    lines = b'{"status": "queued"}\n' * 500 + b'{"status": "running"}\n'
    seen, memory = look(one, answer(200, lines))
    assert len(seen.envelope) <= 2_048
    assert reread(one, operation(memory), seen.envelope, moment()).observation.state == "running"


@pytest.mark.rule("S2")
def test_every_request_may_have_a_format_of_its_own() -> None:
    more = '[submission.answer]\nformat = "form"\njob_id = "body.id"\n'
    more += (
        '[cancel]\nformat = "text"\nmethod = "POST"\nurl = "https://api.example.test/c"\ndone_when = "body == \'ok\'"\n'
    )
    more += "confirm = { minutes = 5, checks = 2 }\n"
    from pollcore.facts import ActionOutcome, Submitted
    from pollcore.reading import from_response, read_cancel

    one = contract(more)
    given_ = Submitted(provider="acme", account="a", job_id="")
    assert from_response(one, given_, answer(200, b"id=j-1"), "https://api.example.test/").job_id == "j-1"
    assert read_cancel(one, answer(200, b"ok\n"))[0] is ActionOutcome.DONE
    assert read_cancel(one, answer(200, b"no\n"))[0] is ActionOutcome.UNKNOWN
    assert look(one, answer(200, {"status": "running"}))[0].verdict is Verdict.WAITING


@pytest.mark.rule("X5")
def test_json_where_xml_was_promised_is_unreadable_whatever_its_content_type() -> None:
    headers = {"content-type": "application/xml"}
    seen, _ = look(xml_contract(), answer(200, json.dumps({"job": {"status": "running"}}).encode(), headers))
    assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, StopDetail.UNREADABLE)
