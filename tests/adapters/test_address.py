"""One strict reading of an address: what is accepted, what is refused, and that both readers agree."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.adapters.address import MAX_URL, is_loopback, origin_of, parse_address

VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))


@pytest.mark.rule("K3")
@pytest.mark.parametrize(
    ("url", "origin", "target", "host_header"),
    [
        ("https://api.acme.com", "https://api.acme.com:443", "/", "api.acme.com"),
        ("HTTPS://API.Acme.COM:443/V1", "https://api.acme.com:443", "/V1", "api.acme.com"),
        ("https://api.acme.com:8443/a?b#c", "https://api.acme.com:8443", "/a?b", "api.acme.com:8443"),
        ("http://acme.com?x=1", "http://acme.com:80", "/?x=1", "acme.com"),
        ("http://[0:0::1]:80/", "http://[::1]:80", "/", "[::1]"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example:443", "/", "xn--bcher-kva.example"),
        ("https://a_b.example:00443/", "https://a_b.example:443", "/", "a_b.example"),
    ],
)
def test_an_origin_is_explicit_and_the_target_untouched(url: str, origin: str, target: str, host_header: str) -> None:
    read = parse_address(url)
    assert (read.origin, read.target, read.host_header) == (origin, target, host_header)
    assert origin_of(url) == origin


@pytest.mark.rule("K3")
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://user@acme.com/", "user part"),
        ("https://acme.com\\@evil.example/", "backslash"),
        ("https://acme.com/a\\b", "backslash"),
        ("https://acme.com/\r\nHost: x", "control"),
        ("https://acme.com/a b", "space"),
        ("https://b\u00fccher.example/", "xn--"),
        ("ftp://acme.com/", "neither http nor https"),
        ("https://acme.com:0/", "port"),
        ("https://acme.com:65536/", "port"),
        ("https://acme.com:/", "no absolute"),
        ("https://", "no absolute"),
        ("/relative", "no absolute"),
        ("https://a..b/", "DNS"),
        ("https://-a.example/", "DNS"),
        ("https://" + "a" * 64 + ".example/", "DNS"),
        ("https://[fe80::1%25eth0]/", "no absolute"),
        ("https://[1:2]/", "IPv6"),
        ("https://acme.com/" + "x" * MAX_URL, "longer"),
    ],
)
def test_a_refusal_says_why_and_quotes_nothing(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        parse_address(url)
    assert "acme" not in str(caught.value)


@pytest.mark.rule("K3")
@given(
    host=st.one_of(
        st.from_regex(r"[a-zA-Z0-9.\-_@:\\\[\]%]{1,30}", fullmatch=True),
        st.from_regex(r"[a-zA-Z0-9]{1,9}(\.[a-zA-Z0-9]{1,9}){0,3}(:[0-9]{1,5})?", fullmatch=True),
    ),
    rest=st.text(VISIBLE, max_size=30),
    scheme=st.sampled_from(["http", "https"]),
)
def test_what_is_accepted_is_read_alike_by_httpx(host: str, rest: str, scheme: str) -> None:
    """No two readings of one address: the oldest way to send a secret elsewhere."""
    url = f"{scheme}://{host}/{rest}"
    try:
        ours = parse_address(url)
    except ValueError:
        return
    theirs = httpx.URL(ours.origin)
    assert theirs.raw_host.decode() == ours.host
    assert (theirs.port or {"http": 80, "https": 443}[scheme]) == ours.port
    assert not set(ours.target) & set("\\ \r\n#")


@pytest.mark.rule("H2")
@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("127.1", False),
        ("2130706433", False),
        ("localhost.example", False),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("0.0.0.0", False),
    ],
)
def test_loopback_is_only_what_is_written_as_loopback(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local
