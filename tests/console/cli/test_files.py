"""Saved responses as `curl -i` prints them, and bounded reading of files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollconsole.cli import files
from pollcore.facts import Refused

PLAIN = b'HTTP/1.1 202 Accepted\r\nLocation: /jobs/7\r\nX: a\r\nx: b\r\n\r\n{"id": "job-7"}'


@pytest.mark.rule("H1")
def test_a_saved_response_gives_status_headers_in_order_and_body() -> None:
    answer = files.parse_response(PLAIN, "f")
    assert answer.status == 202
    assert answer.headers == (("location", "/jobs/7"), ("x", "a"), ("x", "b"))
    assert answer.body == b'{"id": "job-7"}'


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/2 202 \r\nlocation: /jobs/7\r\n\r\nB",
        b"HTTP/2 202\nlocation: /jobs/7\n\nB",
        b"HTTP/3 202 \r\nlocation: /jobs/7\r\n\r\nB",
        b"\xef\xbb\xbfHTTP/1.0 202 OK\r\nlocation: /jobs/7\r\n\r\nB",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nlocation: /jobs/7\r\n\r\nB",
        b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/2 202 \r\nlocation: /jobs/7\r\n\r\nB",
        b"HTTP/1.1 307 X\r\nlocation: /other\r\n\r\nHTTP/1.1 202 Y\r\nlocation: /jobs/7\r\n\r\nB",
    ],
    ids=["http2", "lf", "http3", "bom", "continue", "proxy", "redirect"],
)
def test_status_lines_of_every_version_and_interim_responses_are_read(data: bytes) -> None:
    answer = files.parse_response(data, "f")
    assert (answer.status, answer.headers, answer.body) == (202, (("location", "/jobs/7"),), b"B")


def test_a_response_without_a_body_or_headers_is_whole() -> None:
    assert files.parse_response(b"HTTP/1.1 204 No Content\r\n\r\n", "f").headers == ()
    assert files.parse_response(b"HTTP/1.1 204 No Content\r\nA: b", "f").headers == (("a", "b"),)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"id": 7}', "status line"),
        (b"", "status line"),
        (b"HTTP/1.1 abc OK\r\n\r\n", "status line"),
        (b"HTTP/1.1 999 Odd\r\n\r\n", "no final answer"),
        (b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", "line 2 is no header"),
        (b"HTTP/1.1 200 OK\r\n: empty\r\n\r\n", "no header"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n", "more than 200 headers"),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n", "bytes of headers"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b\x08", "--compressed"),
        (b"HTTP/1.1 100 C\r\n\r\n" * 30, "more than 20 responses"),
    ],
)
def test_what_is_no_saved_response_is_refused_with_what_to_do(data: bytes, says: str) -> None:
    with pytest.raises(Refused, match=says):
        files.parse_response(data, "f")


@given(st.binary(max_size=300).map(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail))
def test_any_bytes_are_an_answer_or_a_refusal(data: bytes) -> None:
    try:
        answer = files.parse_response(data, "f")
    except Refused:
        return
    assert 200 <= answer.status <= 599


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 11)
    with pytest.raises(Refused, match="more than 10 bytes"):
        files.read_bytes(str(path), "--file", 10)


def test_a_missing_file_a_folder_and_a_device_are_refused_by_name(tmp_path: Path) -> None:
    for name in (str(tmp_path / "none"), str(tmp_path), os.devnull, "a\0b", "\ud800"):
        with pytest.raises(Refused, match="--file"):
            files.read_bytes(name, "--file", 10)


def test_a_fifo_without_a_writer_is_empty_and_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert files.read_bytes(str(tmp_path / "pipe"), "--file", 10) == b""


def test_a_pipe_of_a_shell_is_read_to_its_end() -> None:
    read, write = os.pipe()

    def feed() -> None:
        os.write(write, b"abc")
        os.close(write)

    writer = threading.Thread(target=feed)
    writer.start()
    try:
        assert files.read_bytes(f"/dev/fd/{read}", "--file", 10) == b"abc"
    finally:
        writer.join(5)
        os.close(read)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("there", "link"):
        with pytest.raises(Refused, match="exists already"):
            files.writable(str(tmp_path / name))
    assert files.writable(str(tmp_path / "new")) == tmp_path / "new"
