"""Every number of shipped contracts that a document states is the number there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pollcore.adapters.contract_files import ContractFiles
from tests.catalogue.facts import RESEARCHED, apis

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = sorted((*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")))
WHOLE = re.compile(r"(\d+) contracts ship[^.;]*?: for (\d+) documented job APIs and (\d+) more \(([^)]*)\)")


@pytest.mark.parametrize("name", ["README.md", "docs/contracts.md"])
def test_the_number_of_contracts_that_ship_is_the_number_of_files(name: str) -> None:
    text = " ".join((REPOSITORY / name).read_text("utf-8").split())
    stated = WHOLE.findall(text.replace("`core/pollcore/contracts/NAME.toml`", ""))
    assert len(stated) == 1, "one sentence says how many contracts ship, and of which kinds"
    shipped = set(ContractFiles(None).names())
    more = shipped - {api.contract for api in apis()[:RESEARCHED]}
    total, researched, others, names = stated[0]
    assert (int(total), int(researched), int(others)) == (len(shipped), RESEARCHED, len(more))
    assert set(re.findall(r"`([a-z0-9-]+)`", names)) == more


def test_no_document_states_another_number_of_job_apis() -> None:
    told = {
        (path.name, int(found[1]))
        for path in DOCUMENTS
        for found in re.finditer(r"\b(\d+)(?:\s+\w+)?\s+job\s+APIs", path.read_text("utf-8"))
    }
    assert told
    assert {(name, number) for name, number in told if number != RESEARCHED} == set()
