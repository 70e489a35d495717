"""docs/contracts.md is enough to write a contract: its example reads, and every key of the language stands in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pollcore.adapters.contract_files import ContractFiles
from pollcore.contract import check, parse
from pollcore.contract.keys import keys_of
from pollcore.contract.tables import Table

DOCS = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text("utf-8")
EVERYTHING = """
[long_poll]
parameter = "wait"
wait = 5
[settle]
delay = 5
[[steps]]
name = "next"
url = "https://api.acme.example/next"
[[status.then]]
when = "body.next"
step = "next"
[[rules]]
status = [404]
category = "not_found"
[redirect]
statuses = [303]
[forbidden]
grace_seconds = 5
[caps]
concurrency = 2
[[expiry]]
path = "body.until"
unit = "iso"
[[success.qualifiers]]
name = "empty"
when = "body.rows == `0`"
[progress]
value = "body.done"
[request_id]
path = "body.rid"
[submission]
method = "POST"
url = "{base_url}/v1/exports"
idempotency = { header = "Idempotency-Key" }
[submission.answer]
job_id = "body.id"
[params.region]
[urls.admin]
[status.item]
entries = "body.jobs"
job_id = "item.id"
[[steps]]
name = "parts"
url = "https://api.acme.example/part/{each}"
[steps.each]
children = "body.parts[].id"
most = 5
[[status.then]]
when = "body.parts"
step = "parts"
[steps.item]
entries = "body.table"
[[caps.scopes]]
scope = "account"
requests = 100
per = "1h"
[[cancel.by_step]]
step = "parts"
method = "POST"
url = "https://api.acme.example/part/cancel"
[cancel.force]
method = "POST"
url = "https://api.acme.example/force-cancel"
after = "5m"
available_at = "body.force_at"
consequences = "it is killed"
confirm = { minutes = 5, checks = 4 }
[[cancel.force.by_step]]
step = "parts"
method = "POST"
url = "https://api.acme.example/part/force-cancel"
[result.pages]
next = "http.links.next"
most = 10
[not_found]
"""


def example() -> str:
    found = re.search(r"```toml\n(schema = 1\n.*?)```", DOCS, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.rule("B1")
def test_the_example_of_the_documentation_reads_without_findings() -> None:
    contract = parse(example(), "acme.toml")
    assert contract.name == "acme"
    assert [str(one) for one in check(contract) if one.level == "warning"] == []


@pytest.mark.slow
def test_every_key_that_the_reader_asks_for_stands_in_the_documentation(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    plain = Table.raw

    def raw(self: Table, key: str) -> Any:
        # names that a contract's author chooses are no keys of the language
        if keys_of(self.path) is not None:
            asked.add(key)
        return plain(self, key)

    monkeypatch.setattr(Table, "raw", raw)
    parse(example() + EVERYTHING, "acme.toml")
    for name in ContractFiles(None).names():
        parse(ContractFiles(None).text(name)[0], name)
    missing = sorted(key for key in asked if not re.search(rf"\b{re.escape(key)}\b", DOCS))
    assert len(asked) > 100
    assert missing == []
