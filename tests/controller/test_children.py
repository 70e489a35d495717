"""Status of several resources, whole lives: every child's request is counted, and limits by scope hold them back."""

from __future__ import annotations

from pathlib import Path

import pytest

from pollcore.facts import Status
from tests.controller.bank import Bank, refuses, says
from tests.controller.house import house

LISTS = says("created", parts=["p1", "p2"])
STEP = """
[[status.then]]
when = "body.parts"
step = "part"
[[steps]]
name = "part"
url = "{url}/v1/parts/{{each}}"
each = {{ children = "body.parts", most = 5, together = "{together}" }}
"""


def with_parts(bank: Bank, together: str) -> tuple[str, str]:
    made = STEP.format(url=bank.url, together=together)
    return ("[state]\n", f"{made}[state]\n")


NO_GUARD = ('[[success.requires]]\npath = "body.result.url"\nformat = "url"\n', "")


@pytest.mark.rule("B2", "S3")
async def test_every_child_costs_a_request_and_only_those_that_have_not_ended_are_asked_again(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.write_contract(with_parts(h.bank, "worst"), NO_GUARD)
        h.bank.scripts |= {"p1": [says("done")], "p2": [says("running"), says("done")]}
        await h.submit("job-1", LISTS)
        await h.run()
        after = await h.op()
        asked = [seen.job for seen in h.bank.status_seen]
        assert asked == ["job-1", "p1", "p2", "job-1", "p2"]
        assert (after.status, after.status_requests_used) == (Status.SUCCEEDED, 5)
        assert after.last_known_state == "done"


@pytest.mark.rule("B2", "E2")
async def test_a_round_stops_at_the_budget_in_the_middle_of_the_children(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.write_contract(with_parts(h.bank, "all"), NO_GUARD)
        h.bank.scripts |= {"p1": [says("running")], "p2": [says("running")]}
        await h.submit("job-1", LISTS, max_status_requests=2)
        await h.run()
        after = await h.op()
        assert (after.status, after.status_requests_used) == (Status.ESCALATED, 2)
        assert [seen.job for seen in h.bank.status_seen] == ["job-1", "p1"]


@pytest.mark.rule("H5", "B2")
async def test_a_child_that_cannot_be_read_once_is_asked_again_and_the_others_are_not(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.write_contract(with_parts(h.bank, "all"), NO_GUARD)
        h.bank.scripts |= {"p1": [says("done")], "p2": [refuses(503), says("failed")]}
        await h.submit("job-1", LISTS)
        await h.run()
        after = await h.op()
        assert after.status is Status.FAILED
        assert [seen.job for seen in h.bank.status_seen] == ["job-1", "p1", "p2", "p2"]


@pytest.mark.rule("T8", "B2")
async def test_a_limit_by_account_holds_requests_back_uncounted_until_there_is_room(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        scope = '[[caps.scopes]]\nscope = "account"\nrequests = 2\nper = "1m"\n'
        h.write_contract(("[state]\n", f"{scope}[state]\n"))
        for n in range(3):
            await h.submit(f"job-{n}", says("running"))
        await h.run(60_000)
        times = sorted(seen.boot for seen in h.bank.status_seen)
        assert len(times) >= 2
        assert all(later - first >= 60_000 for first, later in zip(times, times[2:], strict=False))
        used = [(await h.op(f"op-job-{n}")).status_requests_used for n in range(3)]
        assert sum(used) == len(times)
