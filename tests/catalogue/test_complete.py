"""The catalogue is whole: every API of the facts has a contract, and every documented state lands right."""

from __future__ import annotations

import json

from tests.catalogue.facts import FACTS, RESEARCHED, apis, shipped
from tests.catalogue.score import score


def test_all_are_shipped_and_every_documented_state_lands_right() -> None:
    assert len(json.loads(FACTS.read_text("utf-8"))) == RESEARCHED
    assert [api.contract for api in apis() if api not in shipped()] == []
    assert [text for api in apis() for text in score(api).wrong] == []


def test_what_is_shipped_lands_right() -> None:
    wrong = [f"{api.contract}: {text}" for api in shipped() for text in score(api).wrong]
    assert wrong == []
    assert len({api.contract for api in apis()}) == len(apis())
