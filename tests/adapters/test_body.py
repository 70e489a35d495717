"""The body reader by itself: any cutting into chunks gives the same body, nothing beyond the limits gets through."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.adapters.body import MAX_DECODED, MAX_WIRE, Body, BodyFault
from pollcore.facts import FaultKind


def read(coding: str, data: bytes, cuts: list[int]) -> bytes:
    body = Body(coding)
    start = 0
    for cut in (*sorted(min(cut, len(data)) for cut in cuts), len(data)):
        if cut > start:
            body.feed(data[start:cut])
            start = cut
    return body.finish()


@pytest.mark.rule("H7")
@given(
    data=st.binary(max_size=2_000),
    cuts=st.lists(st.integers(0, 2_000), max_size=5),
    coding=st.sampled_from(["", "identity", "gzip"]),
)
def test_a_body_is_the_same_however_it_is_cut(data: bytes, cuts: list[int], coding: str) -> None:
    assert read(coding, gzip.compress(data) if coding == "gzip" else data, cuts) == data


@pytest.mark.rule("H7")
@given(data=st.binary(min_size=1, max_size=500), drop=st.integers(1, 8), cuts=st.lists(st.integers(0, 500), max_size=3))
def test_a_gzip_that_misses_its_end_is_cut_off(data: bytes, drop: int, cuts: list[int]) -> None:
    with pytest.raises(BodyFault) as caught:
        read("gzip", gzip.compress(data)[:-drop], cuts)
    assert caught.value.kind is FaultKind.CUT_OFF


@pytest.mark.rule("H7")
def test_the_limits_are_exact() -> None:
    assert len(read("", b"x" * MAX_WIRE, [])) == MAX_WIRE
    assert len(read("gzip", gzip.compress(bytes(MAX_DECODED)), [100, 500])) == MAX_DECODED
    for coding, data in (("", b"x" * (MAX_WIRE + 1)), ("gzip", gzip.compress(bytes(MAX_DECODED + 1)))):
        with pytest.raises(BodyFault) as caught:
            read(coding, data, [])
        assert caught.value.kind is FaultKind.TOO_LARGE


@pytest.mark.rule("H7")
@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "gzip, gzip", "gzip,identity", "compress", "GZIP"])
def test_no_other_coding_is_read(coding: str) -> None:
    with pytest.raises(BodyFault) as caught:
        Body(coding)
    assert caught.value.kind is FaultKind.PROTOCOL
