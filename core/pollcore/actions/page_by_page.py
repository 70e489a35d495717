"""A result in pages: the pages after the first, one request each, into the same file.

Job: ask for page after page until the contract says that there is none, within its cap. Must not know: how an answer
says so (`reading.next_page`), whether the fetch was permitted. All pages are one fetch: when one cannot be had, nothing
is kept and the outcome is unknown, because the provider may give the others once only (O5).
Source: contract need R32.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from pollcore import reading
from pollcore.actions import perform
from pollcore.actions.desk import Desk
from pollcore.contract import Contract
from pollcore.facts import ActionOutcome, Answer, CredentialUnavailable, Fault, Operation, Refused, Request

MAX_RESULT_BYTES: Final = 1 << 30
"""Of all pages together."""
OK: Final = frozenset({200, 203, 206})

Kept = tuple[ActionOutcome, str, Answer | Fault]


async def fetch_rest(
    desk: Desk, contract: Contract, operation: Operation, request: Request, first: Answer, file: int, purpose: str
) -> Kept:
    """Append the pages after *first* to the open *file*: (outcome, detail, what the last request brought).

    Pages stand one after another, each ended by a line break, as they came.
    """
    assert contract.pages is not None
    page, brought, size = 1, first, len(first.body)
    while True:
        try:
            following = reading.next_page(contract, operation, request, brought)
            if following is None:
                return ActionOutcome.DONE, f"{size} bytes in {page} {'page' if page == 1 else 'pages'}", brought
            if page >= contract.pages.most:
                return *_failed(f"more than {page} pages (result.pages.most)"), brought
            request = following
            secret = await perform.secret_for(desk, contract, operation, request, purpose, None)
        except (Refused, CredentialUnavailable) as error:
            return *_failed(f"page {page + 1}: {error}"), brought
        got = await perform.send(desk, request, secret)
        page += 1
        if not isinstance(got, Answer):
            return *_failed(f"page {page}: {got.kind.value}"), got
        if got.status not in OK:
            return *_failed(f"page {page}: the provider answered {got.status}"), got
        size += len(got.body)
        if size > MAX_RESULT_BYTES:
            return *_failed(f"page {page}: more than {MAX_RESULT_BYTES >> 20} MiB together"), got
        before, brought = brought, got
        try:
            await asyncio.to_thread(_append, file, before.body, got.body)
        except OSError as error:
            return *_failed(f"page {page} could not be written: {error.strerror}"), got


def _failed(why: str) -> tuple[ActionOutcome, str]:
    return ActionOutcome.UNKNOWN, f"{why}; nothing of the result is kept"


def _append(file: int, before: bytes, body: bytes) -> None:
    with os.fdopen(file, "wb", closefd=False) as out:
        if not before.endswith(b"\n"):
            out.write(b"\n")
        out.write(body)
