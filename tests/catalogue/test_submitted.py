"""`submit --from-response` with each shipped contract: the answer, and what it cannot give, make a stored wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pollcore.actions import SubmitSpec
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.assembly import open_core
from pollcore.contract import Contract
from pollcore.facts import Answer, Refused, Status
from tests.catalogue.facts import Api, shipped
from tests.catalogue.reading import contract_of, operation_of
from tests.catalogue.test_handover import handed


def answered_params(contract: Contract) -> set[str]:
    """Parameters that the submission's answer gives by itself."""
    reading = contract.submission.answer if contract.submission is not None else None
    return {name for name, _ in reading.params} if reading is not None else set()


def config() -> str:
    """An instance of every shipped contract, as its author would configure it."""
    lines = []
    for api in shipped():
        contract = contract_of(api)
        lines += [f"[providers.the-{api.contract}]", f'contract = "{api.contract}"', 'account = "acct"']
        lines += [f"{key} = {json.dumps(value)}" for key, value in contract.settings.items() if key == "base_url"]
        lines += [f"urls.{key} = {json.dumps(url)}" for key, url in contract.settings.get("urls", {}).items()]
    return "\n".join(lines) + "\n"


def spec_of(api: Api) -> tuple[SubmitSpec, str] | None:
    """What a caller hands over who has the answer, and names only what the answer does not say; the job's id."""
    contract, told = contract_of(api), handed(api)
    given = api.extra.get("handover")
    if told is None and given is None:
        return None
    headers, body, job = (given["headers"], given["body"], given["job_id"]) if given else told or ({}, {}, "")
    code = next(iter(api.raw["submit"].get("expect", [200])))
    base = contract.base_url or (contract.request_origins or ("https://api.instance.example",))[0]
    params, answered = operation_of(api, contract).submitted.params, answered_params(contract)
    wanted = {param.name for param in contract.params if param.required} | set(api.extra.get("params", {}))
    kept = {name: value for name, value in params.items() if name in wanted and name not in answered}
    answer = Answer(code, tuple(headers.items()), json.dumps(body).encode(), 0, 0)  # type: ignore[arg-type]
    spec = SubmitSpec(
        provider=f"the-{api.contract}", params=kept, response=answer, response_url=f"{base}/submit"
    )  # fmt: skip
    return spec, job


@pytest.mark.slow
@pytest.mark.rule("H1", "B2", "S7")
async def test_every_contract_that_reads_a_submission_s_answer_takes_a_wait_from_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(config())
    tried, wrong = 0, []
    async with open_core(home, backend=MemoryBackend()) as core:
        for api in shipped():
            found = spec_of(api)
            if found is None:
                continue
            spec, job = found
            now = core.clock.now().wall
            assert spec.response is not None
            spec.response = Answer(spec.response.status, spec.response.headers, spec.response.body, now, now)
            tried += 1
            try:
                stored = (await core.actions.submit(spec)).operation
            except Refused as refused:
                wrong.append(f"{api.contract}: {refused}")
                continue
            if stored.submitted.job_id != job or stored.status not in (Status.WAITING, Status.AWAITING_APPROVAL):
                wrong.append(f"{api.contract}: {stored.status} {stored.submitted.job_id}")
    assert wrong == []
    assert tried >= len(shipped()) // 2
