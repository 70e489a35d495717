"""Our own secrets are found in what comes back, in every usual encoding, and nothing else is touched."""

from __future__ import annotations

import base64
import gc
import json
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pollcore.adapters.pinned import PinnedSecret, scrubber_of
from pollcore.adapters.scrub import MIN_LENGTH, Scrubber, scrub_text
from pollcore.facts import MASK, Secret

PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F))
secrets_ = st.text(PRINTABLE, min_size=12, max_size=60)
around = st.binary(max_size=20)


@pytest.mark.rule("K4")
@given(secret=secrets_, before=around, after=around)
def test_every_encoding_of_a_secret_is_masked_wherever_it_stands(secret: str, before: bytes, after: bytes) -> None:
    raw = secret.encode()
    scrubber = Scrubber(secret)
    forms = [
        raw,
        raw.hex().encode(),
        raw.hex().upper().encode(),
        quote(secret, safe="").encode(),
        json.dumps(secret)[1:-1].encode(),
        "".join(f"%{byte:02X}" for byte in raw).encode(),
    ]
    for form in forms:
        assert scrubber.found(before + form + after)
        assert form not in scrubber.bytes(before + form + after)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = scrubber.bytes(encode(before + raw + after))
        assert MASK.encode() in whole


def escaped(text: str, writer: str) -> str:
    """*text* inside a JSON string, as different libraries write it."""
    plain = json.dumps(text)[1:-1]
    match writer:
        case "php":
            return plain.replace("/", "\\/")
        case "go":
            return plain.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        case "net":
            return "".join(f"\\u{ord(c):04X}" if c in "\"'&+<>`" else c for c in plain.replace('\\"', '"'))
    return plain


@pytest.mark.rule("K4")
@given(
    secret=secrets_,
    form=st.sampled_from(("raw", "base64", "quoted")),
    writers=st.lists(st.sampled_from(("python", "php", "go", "net")), min_size=1, max_size=3),
)
@example(secret="\\/0000000000", form="raw", writers=["python", "python"])
@example(secret="/0000000000\\", form="raw", writers=["python", "python", "php"])
@example(secret="0026abcdefgh", form="raw", writers=["go"])
def test_a_secret_is_masked_however_often_its_json_was_escaped(secret: str, form: str, writers: list[str]) -> None:
    sent = {"raw": secret, "base64": base64.b64encode(secret.encode()).decode(), "quoted": quote(secret)}[form]
    for writer in writers:
        sent = escaped(sent, writer)
    body = b'{"note": "' + b"say " + sent.encode() + b'."}'
    scrubber = Scrubber(secret)
    assert scrubber.found(body)
    masked = scrubber.bytes(body)
    assert sent.encode() not in masked
    # what is left still reads as what it was
    told = json.loads(masked)["note"]
    assert MASK in told
    assert scrubber.text("say " + sent) != "say " + sent


AROUND = st.text('\\"u0n/ab', max_size=6)


@pytest.mark.rule("K4")
@given(secret=secrets_, before=AROUND, after=AROUND, depth=st.integers(0, 2))
@example(secret="abcdefghijk\\", before="", after="", depth=1)
@example(secret="abcdefghijk\\", before="", after='"', depth=2)
@example(secret="'abcdefghij\"", before="\\\\", after="", depth=2)
@example(secret="0041bcdefghi", before="", after="", depth=0)
@example(secret="0abcdefghijk", before="\\u0", after="", depth=1)
def test_a_mask_cuts_no_escape_so_that_json_in_json_still_parses_at_every_depth(
    secret: str, before: str, after: str, depth: int
) -> None:
    text = json.dumps({"note": f"{before}{secret}{after}", "next": 1})
    for _ in range(depth):
        text = json.dumps({"inside": text})
    masked = Scrubber(secret).bytes(text.encode())
    told = json.loads(masked)
    for _ in range(depth):
        assert set(told) == {"inside"}
        told = json.loads(told["inside"])
    assert set(told) == {"note", "next"}
    assert MASK in told["note"]
    assert secret not in told["note"]


@pytest.mark.rule("K4")
@pytest.mark.parametrize(
    ("secret", "body"),
    [
        ("nabcdefghijk", b'{"a": "x\\nabcdefghijk"}'),  # a line feed and a part of the word
        ("0041bcdefghi", b'{"a": "x\\u0041bcdefghi"}'),
        ("abcdefghijk\\", b'{"a": "abcdefghijk\\" x", "b": 1}'),
        ("abcdefghijk\\", b'{"a": "{\\"b\\": \\"abcdefghijk\\"}"}'),
    ],
)
def test_what_only_looks_like_the_secret_across_an_escape_is_masked_and_still_parses(secret: str, body: bytes) -> None:
    masked = Scrubber(secret).bytes(body)
    assert MASK in json.loads(masked)["a"]
    if b"{" in masked[1:]:
        assert json.loads(json.loads(masked)["a"]) == {"b": MASK}


@pytest.mark.rule("K4", "H7")
def test_a_body_full_of_backslashes_costs_no_more_than_its_length() -> None:
    for secret in ('"/+secret-with-odd-beginnings', "\\" * 12 + "secret"):
        scrubber = Scrubber(secret)
        body = b"\\" * 1_000_000
        assert scrubber.bytes(body) is body


@pytest.mark.rule("K4")
@given(secret=secrets_, data=st.binary(max_size=200))
def test_what_does_not_hold_the_secret_is_the_very_same_object(secret: str, data: bytes) -> None:
    scrubber = Scrubber(secret)
    if not scrubber.found(data):
        assert scrubber.bytes(data) is data


@pytest.mark.rule("K4")
def test_headers_are_masked_in_name_and_value_and_kept_as_they_are_otherwise() -> None:
    scrubber = Scrubber("sk-canary-123456")
    clean = (("date", "x"), ("x-a", "1"))
    assert scrubber.headers(clean) is clean
    assert scrubber.headers((("x-a", "k=sk-canary-123456;"),)) == (("x-a", f"k={MASK};"),)


@pytest.mark.rule("K4")
@pytest.mark.parametrize(
    "secret",
    [
        "user:long-password-1",
        "id-of-caller-77\nlong-password-1",
        "AKIAEXAMPLE7:a-secret-key:long-password-1",
        "AKIAEXAMPLE7:long-password-1:a-session-token",
        "client:long-password-1\na-refresh-token",
    ],
)
def test_the_parts_of_a_secret_are_found_alone(secret: str) -> None:
    assert Scrubber(secret).found(b"... long-password-1 ...")


@pytest.mark.rule("K4")
def test_a_secret_too_short_to_tell_from_words_is_left_alone() -> None:
    assert Scrubber("x" * (MIN_LENGTH - 1)).bytes(b"x" * 50) == b"x" * 50


@pytest.mark.rule("K1", "K4")
def test_any_text_to_be_printed_loses_secrets_in_memory_and_signed_queries_and_escapes() -> None:
    secret = PinnedSecret("sk-canary-abcdef", ())
    assert secret.scrubber is scrubber_of(secret)
    told = scrub_text(
        "a sk-canary-abcdef b\nBearer abcdefghijk https://u:p@h.example/p?sig=1 \x1b[31m\u202e\u200b\x9b\ud800 end"
    )
    assert told == f"a {MASK} b\nBearer {MASK} https://h.example/p?... \\x1b[31m\\u202e\\u200b\\x9b\\ud800 end"


@pytest.mark.rule("K1")
def test_a_scrubber_dies_with_its_secret_and_shows_nothing() -> None:
    secret = PinnedSecret("sk-canary-gone-by", ())
    assert "canary" not in repr(secret.scrubber) + repr(secret) + repr(scrubber_of(Secret("sk-canary-gone-by")))
    del secret
    gc.collect()
    assert scrub_text("sk-canary-gone-by") == "sk-canary-gone-by"
