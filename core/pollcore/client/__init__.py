"""Hand a wait over, wait for its end, watch changes: for programs that started a provider's job.

Job: what such a program may name: `client` has the calls over one open store, `shared` the calls that open it. Must not
know: how a status request is sent; nothing here sends one.
Source: spec S3, G5, K6, O4, O8.

    from datetime import timedelta
    from pollcore import submit, wait

    op = await submit("jobs", "good-7", operation_id="export-good-7", deadline=timedelta(minutes=40), max_requests=12)
    outcome = await wait(op, timeout=timedelta(minutes=10))
    print(outcome.ended, outcome.next)

A core sends the requests: the console, or `pollconsole run`, on the same home, in any process of the same user.
"""

from pollcore.client.client import Client
from pollcore.client.feed import Feed, changed
from pollcore.client.shared import submit, submit_sync, wait, wait_sync, watch
from pollcore.client.shown import OperationView, Outcome, Result
from pollcore.facts import Refused, Status
from pollcore.waiting import WaitEnd

__all__ = [
    "Client",
    "Feed",
    "OperationView",
    "Outcome",
    "Refused",
    "Result",
    "Status",
    "WaitEnd",
    "changed",
    "submit",
    "submit_sync",
    "wait",
    "wait_sync",
    "watch",
]
