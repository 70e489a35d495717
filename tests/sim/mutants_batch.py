"""Seeded bugs of requests for several operations (R39): who is charged, who is asked for, an answer about none of them,
what failures cost.

Job: break one thing each. Must not know: how a bug is found. A survivor means a missing invariant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import msgspec

from pollcore.adapters.store.claims import Claims
from pollcore.contract import batch_requests
from pollcore.controller import Controller
from pollcore.ports import Claimed
from pollcore.reading import observe
from tests.sim.mutant import mutant

SEEDS = 400
"""About one world in five asks for several jobs at once."""


@mutant(SEEDS)
def members_refused_in_the_claim_are_asked_for_nevertheless() -> Iterator[None]:
    real = Controller._start

    def start(self: Controller, group: Any, claimed: list[Any], now: Any) -> None:
        taken = next((one for one in claimed if one is not None), None)
        if taken is not None:
            claimed = [
                Claimed(one.claim.operation, (one.claim.operation.status_requests_used + 1,), taken.charged_at)
                if is_ is None
                else is_
                for one, is_ in zip(group, claimed, strict=True)
            ]
        real(self, group, claimed, now)

    with mock.patch.object(Controller, "_start", start):
        yield


@mutant(SEEDS)
def only_the_first_of_a_request_is_charged() -> Iterator[None]:
    real = Claims.take

    def take(self: Claims, claim: Any) -> Claimed | None:
        if claim.group is None or claim.group not in self._joined:
            return real(self, claim)
        used = claim.operation.status_requests_used + 1
        after = msgspec.structs.replace(claim.operation, status_requests_used=used)
        return Claimed(after, (used,), self._tx.now)

    with mock.patch.object(Claims, "take", take):
        yield


@mutant(SEEDS)
def a_request_for_several_is_counted_against_no_cap() -> Iterator[None]:
    real = Claims._has_room

    def has_room(self: Claims, claim: Any, charges: int) -> bool:
        return claim.group is not None or real(self, claim, charges)

    with mock.patch.object(Claims, "_has_room", has_room):
        yield


@mutant(SEEDS)
def an_answer_about_none_is_read_as_if_it_were_about_each() -> Iterator[None]:
    with mock.patch.object(observe, "set_apart", lambda look, draft: draft):
        yield


@mutant(SEEDS)
def what_was_set_apart_is_forgotten() -> Iterator[None]:
    real = observe.remember

    def remember(look: Any, draft: Any) -> Any:
        return msgspec.structs.replace(real(look, draft), alone=False)

    with mock.patch.object(observe, "remember", remember):
        yield


@mutant(SEEDS)
def the_last_failure_of_a_budget_is_risked_on_a_request_for_several() -> Iterator[None]:
    with mock.patch.object(batch_requests, "KEPT_FAILURES", 0):
        yield
