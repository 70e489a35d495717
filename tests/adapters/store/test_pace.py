"""Rate limits by scope: counted in the claim's transaction, for every process of the home."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.store.builders import at, claim, submit, take

from pollcore.adapters.store.pace import PARTS
from pollcore.facts import Operation, RateScope, Submitted
from pollcore.ports import Turn

MINUTE = 60_000


async def three(store: Any) -> list[Operation]:
    """Two of account `team` (credentials one and two), one of account `other` (credential one)."""
    other = Submitted(provider="acme", account="other", job_id="job-c")
    return [
        await submit(store, "op-a", credential="one"),
        await submit(store, "op-b", credential="two"),
        await submit(store, "op-c", credential="one", submitted=other),
    ]


async def taken(store: Any, scope: RateScope, steps: tuple[str, ...] = ("status",) * 3) -> list[bool]:
    found = []
    for n, (one, step) in enumerate(zip(await three(store), steps, strict=True)):
        wish = msgspec.structs.replace(claim(one, at(n), scopes=(scope,)), step=step)
        found.append((await store.turn(Turn(now=at(n), owner=f"w-{n}", claims=(wish,)))).claimed[0] is not None)
    return found


@pytest.mark.rule("T8")
@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("provider", [True, False, False]),
        ("account", [True, False, True]),
        ("credential", [True, True, False]),
        ("route", [True, False, False]),
    ],
)
async def test_a_limit_holds_for_each_value_of_its_scope(store: Any, scope: str, expected: list[bool]) -> None:
    assert await taken(store, RateScope(scope, 1, MINUTE)) == expected


@pytest.mark.rule("T8")
async def test_a_route_is_counted_by_step_and_a_named_step_holds_no_other(store: Any) -> None:
    assert await taken(store, RateScope("route", 1, MINUTE), ("status", "build", "status")) == [True, True, False]


@pytest.mark.rule("T8")
async def test_a_limit_of_one_step_lets_the_others_through(store: Any) -> None:
    scope = RateScope("route", 1, MINUTE, "build")
    assert await taken(store, scope, ("status", "status", "build")) == [True, True, True]


@pytest.mark.rule("T8")
async def test_room_comes_back_when_the_span_is_over_and_not_before(store: Any) -> None:
    a, b, _ = await three(store)
    scopes = (RateScope("provider", 1, MINUTE),)
    assert await take(store, a, at(0), scopes=scopes) is not None
    assert await take(store, b, at(MINUTE - 1), owner="w-2", scopes=scopes) is None
    late = MINUTE + MINUTE // PARTS + 1
    assert await take(store, b, at(late), owner="w-2", scopes=scopes) is not None


@pytest.mark.rule("T8", "T9")
async def test_a_step_of_the_wall_clock_frees_nothing(store: Any) -> None:
    a, b, _ = await three(store)
    scopes = (RateScope("provider", 1, MINUTE),)
    assert await take(store, a, at(0), scopes=scopes) is not None
    assert await take(store, b, at(5, step=10 * MINUTE), owner="w-2", scopes=scopes) is None


@pytest.mark.rule("B2", "T8")
async def test_a_claim_over_a_limit_charges_nothing(store: Any) -> None:
    a, b, _ = await three(store)
    scopes = (RateScope("provider", 1, MINUTE),)
    await take(store, a, at(0), scopes=scopes)
    await take(store, b, at(1), owner="w-2", scopes=scopes)
    assert (await store.operation("op-b")).status_requests_used == 0


@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=60), st.integers(1, 5), st.integers(1_000, 90_000))
@pytest.mark.rule("T8")
def test_no_span_of_any_length_ever_holds_more_than_the_limit(gaps: list[int], most: int, per: int) -> None:
    from types import SimpleNamespace

    from tests.adapters.store.builders import operation

    from pollcore.adapters.store.pace import Counted, Pace

    tx = SimpleNamespace(boot=1, now=SimpleNamespace(boot=0), conn=None)
    pace = Pace(tx)  # type: ignore[arg-type]
    scope = RateScope("provider", most, per)
    wish = claim(operation(), at(), scopes=(scope,))
    pace._of = lambda name: pace._counted.setdefault(name, Counted(1))  # type: ignore[method-assign]
    sent: list[int] = []
    for gap in gaps:
        tx.now.boot += gap
        if pace.has_room(wish, 1):
            pace.count(wish, 1)
            sent.append(tx.now.boot)
    assert all(sum(start <= one < start + per for one in sent) <= most for start in sent)
