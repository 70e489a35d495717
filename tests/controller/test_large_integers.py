"""A job whose answers are full of integers beyond 64 bits lives its whole life; every document shows them exactly."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from pollcore.facts import Status
from pollcore.views import event_view, result_view
from tests.controller.bank import says
from tests.controller.house import house

LARGE = 2**256 - 1
READS = """[identity]
attempt = "body.attempt"
[progress]
value = "body.done"
[submission]"""


@pytest.mark.rule("S9", "S10", "H7")
async def test_large_integers_go_through_store_audit_and_views_unharmed(tmp_path: Path) -> None:
    reads = ("[submission]\nmethod", READS + "\nmethod")
    fields = ('permits = "fetch_result"', 'permits = "fetch_result"\nfields = { rows = "body.rows" }')
    remember = ('total = "2s"\n', 'total = "2s"\nremember = { build = "body.rows" }\n')
    async with house(tmp_path, reads, fields, remember) as h, h.open():
        running = says("running", rows=LARGE, attempt=LARGE, done=-LARGE, nobody=[LARGE])
        link = {"url": "https://files.example.test/r/1"}
        await h.submit("job-1", running, says("done", rows=LARGE, attempt=LARGE, done=LARGE, result=link, nobody=LARGE))
        await h.run()
        op = await h.op("op-job-1")
        assert op.status is Status.SUCCEEDED
        assert op.result is not None
        assert op.result.fields["rows"] == LARGE
        assert (op.memory.values["build"], op.memory.attempt) == (LARGE, str(LARGE))
        assert op.memory.progress == str(LARGE)
        result = msgspec.json.decode(msgspec.json.encode(result_view(op.result, reveal=True)))
        assert result["fields"]["rows"] == LARGE
        assert str(LARGE) in json.dumps(result_view(op.result, reveal=True))
        story = msgspec.json.encode([event_view(one) for one in await h.events()])
        assert b'"polled"' in story
