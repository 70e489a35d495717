"""A result that comes in pages: all of them in one file, within the contract's cap, or none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pollcore.adapters.credential_ops import change_mode
from pollcore.facts import ActionOutcome, CredentialMode, EventName, Refused, Status
from tests.controller.bank import DONE
from tests.controller.house import House, house

RESULT = '[result]\nurl = "{url}/files/{{job_id}}"\n'
TOKEN = '[result.pages]\ntoken = "body.next"\nparameter = "page"\nmost = 3\n'
LINK = '[result.pages]\nnext = "http.links.next"\nmost = 3\n'


def page(text: str, following: str | None, **headers: str) -> dict[str, Any]:
    return {"status": 200, "headers": headers, "body": {"rows": text, "next": following}}


@asynccontextmanager
async def paged(tmp_path: Path, plan: str, pages: dict[str, dict[str, Any]], **spec: Any) -> AsyncIterator[House]:
    """A house whose `job-1` succeeded; *pages*: query of `/files/` -> answer."""
    async with house(tmp_path) as h:
        plain = h.bank._answer_to

        async def answer(seen: Any) -> dict[str, Any]:
            if not seen.path.startswith("/files/"):
                return await plain(seen)
            h.bank.fetches += 1
            return pages[seen.path.partition("?")[2]]

        h.bank._answer_to = answer  # type: ignore[method-assign]
        before = RESULT.format(url=h.bank.url)
        h.write_contract((before, before + plan))
        await h.submit("job-1", DONE, **spec)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        yield h


@pytest.mark.rule("O5", "S4")
async def test_pages_by_token_lie_in_one_file_in_their_order_and_are_one_fetch(tmp_path: Path) -> None:
    pages = {"": page("a", "t 2"), "page=t%202": page("b", "t3"), "page=t3": page("c", None)}
    async with paged(tmp_path, TOKEN, pages, credential="key") as h:
        done = await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert (done.outcome, h.bank.fetches) == (ActionOutcome.DONE, 3)
        assert done.detail is not None
        assert done.detail.endswith("bytes in 3 pages")
        lines = (tmp_path / "out").read_text().split("\n")
        assert [line.partition('"rows": ')[2][1] for line in lines] == ["a", "b", "c"]
        assert len(await h.events(EventName.RESULT_FETCHED)) == 1
        assert (await h.op()).status_requests_used == 1
        assert {seen.secret is not None for seen in h.bank.requests if seen.path.startswith("/files/")} == {True}


@pytest.mark.rule("K3")
async def test_a_page_on_a_foreign_origin_is_never_asked_and_nothing_is_kept(tmp_path: Path) -> None:
    pages = {"": page("a", None, link='</files/job-1?n=2>; rel="next"'), "n=2": page("b", None)}
    pages["n=2"]["headers"] = {"link": '<https://elsewhere.test/3>; rel="next"'}
    async with paged(tmp_path, LINK, pages) as h:
        done = await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert (done.outcome, h.bank.fetches) == (ActionOutcome.UNKNOWN, 2)
        assert "elsewhere.test" in str(done.detail)
        assert not (tmp_path / "out").exists()


@pytest.mark.rule("O5")
async def test_more_pages_than_the_cap_are_told_and_not_asked_for(tmp_path: Path) -> None:
    pages = {query: page("x", str(n)) for n, query in enumerate(("", "page=0", "page=1", "page=2"))}
    async with paged(tmp_path, TOKEN, pages) as h:
        done = await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert (done.outcome, h.bank.fetches) == (ActionOutcome.UNKNOWN, 3)
        assert str(done.detail).startswith("more than 3 pages (result.pages.most)")
        assert not (tmp_path / "out").exists()
        with pytest.raises(Refused, match="already fetched"):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")


@pytest.mark.rule("O5")
async def test_a_refused_page_leaves_the_fetch_unknown(tmp_path: Path) -> None:
    pages = {"": page("a", "2"), "page=2": {"status": 404, "headers": {}, "body": {}}}
    async with paged(tmp_path, TOKEN, pages) as h:
        done = await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert (done.outcome, done.http_code) == (ActionOutcome.UNKNOWN, 404)
        assert "page 2: the provider answered 404; nothing of the result is kept" in str(done.detail)


@pytest.mark.rule("G6")
async def test_a_credential_that_is_asked_for_each_call_is_not_used_for_pages(tmp_path: Path) -> None:
    async with paged(tmp_path, TOKEN, {"": page("a", None)}, credential="key") as h:
        await change_mode(h.core.credential_admin.meta, "key", CredentialMode.PER_CALL)
        with pytest.raises(Refused, match="a request each"):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert h.bank.fetches == 0
