"""A home that asks moto under a shipped AWS contract, signed, with a credential and a polling core: for tests/live.

It knows no contract and no service: a *job* brings `contract`, `base_url` and, where the contract wants more than the
region, `params`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pollcore.actions import SubmitSpec
from pollcore.adapters.contract_files import ContractFiles
from pollcore.adapters.credential_ops import set_credential
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.assembly import Core, open_core
from pollcore.facts import Answer, Choice, EventName, Operation, Secret, Status
from tests.live import aws
from tests.live.test_real_servers import OPERATOR
from tests.support.servers import JobServer

SECRET = "testing:testing-secret"
PACE = {
    "aws-sfn": [('base_delay = "5s"', 'base_delay = "400ms"'), ('delay = "10s"', 'delay = "1s"')],
    "aws-athena": [('base_delay = "2s"', 'base_delay = "400ms"')],
    "aws-batch": [('base_delay = "15s"', 'base_delay = "400ms"')],
    "aws-glue": [('base_delay = "15s"', 'base_delay = "400ms"')],
    "aws-codebuild": [('base_delay = "5s"', 'base_delay = "400ms"')],
    "aws-redshift": [('base_delay = "2s"', 'base_delay = "400ms"')],
    "aws-textract": [('base_delay = "5s"', 'base_delay = "400ms"')],
}
"""The shipped text but for its pace: nobody waits for moto."""
Get = Callable[[str], JobServer]


def write_home(home: Path, job: Any) -> None:
    """A home whose instance `live` asks moto under the shipped contract."""
    providers = home / "providers"
    providers.mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    text, _ = ContractFiles(None).text(job.contract)
    for old, new in (*PACE[job.contract], ('max_delay = "', 'max_delay = "2s" # was "')):
        assert old in text, old
        text = text.replace(old, new, 1)
    (providers / f"{job.contract}.toml").write_text(text)
    (home / "config.toml").write_text(
        f'[providers.live]\ncontract = "{job.contract}"\nbase_url = "{job.base_url}"\ncredential = "aws"\n'
        'account = "123456789012"\n'
    )


async def with_core(
    home: Path, job: Any, body: Callable[[Core], Awaitable[None]], *, secret: str = SECRET
) -> MemoryBackend:
    """Run *body* beside a polling core whose credential `aws` is *secret*."""
    write_home(home, job)
    backend = MemoryBackend()
    async with open_core(home, kind="run", backend=backend) as core:
        await set_credential(
            core.vault,
            core.credential_admin.meta,
            name="aws",
            kind="sigv4",
            names=(),
            origins=[job.base_url],
            secret=Secret(secret),
            now=core.clock.now().wall,
        )
        stop = asyncio.Event()
        running = asyncio.create_task(core.controller().run(stop))
        try:
            await body(core)
            assert list(await core.store.check()) == []
        finally:
            stop.set()
            await running
    return backend


async def handed_over(core: Core, answered: dict[str, Any], job: Any = None) -> Operation:
    """`submit --from-response`: the job's id out of the answer; then an operator's word on the first use."""
    now = core.clock.now().wall
    headers = (("content-type", "application/x-amz-json-1.1"), ("date", aws.now_text()))
    answer = Answer(200, headers, json.dumps(answered).encode(), now, now)
    params = {"region": aws.REGION, **getattr(job, "params", {})}
    spec = SubmitSpec(provider="live", params=params, response=answer)
    operation = (await core.actions.submit(spec)).operation
    assert operation.status is Status.AWAITING_APPROVAL  # nobody has tried these contracts on an account
    await decided(core, operation.operation_id, lambda choice: choice.label.startswith("approve: it is read-only"))
    return operation


async def decided(core: Core, operation_id: str, wanted: Callable[[Choice], bool]) -> Choice:
    shown = await core.actions.card(operation_id)
    choice = next(one for one in shown.choices if wanted(one))
    await core.actions.decide(
        operation_id, shown.question.escalation_id, choice.key, shown.digest, {"kind": "test"}, OPERATOR
    )
    return choice


async def states_of(core: Core, operation_id: str) -> list[str]:
    """The states that were told, without repetitions."""
    events = [event for _, event in await core.store.events(operation_id) if event.event is EventName.POLLED]
    return list(dict.fromkeys(event.state for event in events if event.state is not None))
