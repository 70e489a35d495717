"""`provider check` names what a readable contract still gets wrong: what is never reached, mixed up, left open."""

from __future__ import annotations

import pytest
from tests.core.contract.test_contract_mistakes import warnings

from pollcore.contract import parse
from pollcore.facts import ContractError

BASE = """
schema = 1
name = "acme"
sources = ["here"]
base_url = "https://api.acme.test"
[credential]
kind = "none"
[status]
url = "{base_url}/jobs/{job_id}"
[state]
value = "body.status"
[states]
waiting = ["queued", "running"]
succeeded = ["done"]
failed = ["failed"]
cancelled = ["cancelled"]
[[success.requires]]
path = "body.id"
[cancel]
method = "POST"
url = "{base_url}/jobs/{job_id}/cancel"
consequences = "it stops"
confirm = { minutes = 5, checks = 2 }
leads_to = "cancelled"
allowed_states = ["running"]
[limits]
deadline_basis = "decide-by: noon"
extend = [{ minutes = 15, checks = 4 }]
[limits.default]
deadline = "40m"
max_status_requests = 25
max_transport_failures = 3
max_rate_limited = 3
[limits.max]
deadline = "8h"
max_status_requests = 300
max_transport_failures = 20
max_rate_limited = 20
"""


def told(*changes: tuple[str, str]) -> list[str]:
    text = BASE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return warnings(text)


@pytest.mark.rule("B1")
def test_the_base_has_no_warning() -> None:
    assert told() == []


@pytest.mark.rule("S2", "B1")
@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("[state]", '[[rules]]\nstatus = ["2xx"]\ncategory = "waiting"\n[state]', "never looked at"),
        (
            "[state]",
            '[[rules]]\nstatus = [409]\nwhen = "body.a"\ncategory = "failed"\n[[rules]]\nstatus = [409]\n'
            'category = "waiting"\n[[rules]]\nstatus = [409]\nwhen = "body.b"\ncategory = "failed"\n[state]',
            "is never reached",
        ),
        ('failed = ["failed"]', 'failed = ["failed", "Running"]', "look alike and mean different things"),
        ('leads_to = "cancelled"', 'leads_to = "canceled"', 'did you mean "cancelled"?'),
        ('allowed_states = ["running"]', 'allowed_states = ["runing"]', 'did you mean "running"?'),
        ('consequences = "it stops"\n', "", "without consequences it is never offered"),
        ('deadline_basis = "decide-by: noon"', 'deadline_basis = "TODO: x"', "placeholder"),
        ('sources = ["here"]', 'sources = ["TODO: x"]', "placeholder"),
        ("https://api.acme.test", "https://api.acme.invalid", "nothing answers under"),
        (
            "[limits]",
            '[[hints]]\npath = "body.after"\nunit = "seconds"\n[limits]',
            "has no cap of its own",
        ),
    ],
)
def test_one_mistake_is_one_warning(old: str, new: str, line: str) -> None:
    found = told((old, new))
    assert len(found) == 1, found
    assert line in found[0]


@pytest.mark.rule("S2")
def test_a_rule_with_a_condition_or_of_a_step_hides_no_table() -> None:
    assert told(("[state]", '[[rules]]\nwhen = "body.error"\ncategory = "failed"\n[state]')) == []
    assert told(("[state]", '[[rules]]\nstatus = [404]\ncategory = "waiting"\n[state]')) == []


@pytest.mark.rule("S2")
@pytest.mark.parametrize("name", ["waiting", "failed"])
def test_what_an_api_never_says_is_no_warning_where_the_evidence_is_given(name: str) -> None:
    listed = {"waiting": 'waiting = ["queued", "running"]\n', "failed": 'failed = ["failed"]\n'}[name]
    more = ('allowed_states = ["running"]\n', "")  # the state is listed no more
    assert any(f"states: nothing means {name};" in line for line in told((listed, ""), more))
    never = f'{listed}[states.never]\n{name} = "not in the enumeration of jobs.yaml at 3f1a"\n'
    text = BASE.replace('cancelled = ["cancelled"]\n', f'cancelled = ["cancelled"]\n{never.removeprefix(listed)}')
    assert not [line for line in warnings(text.replace(listed, "").replace(*more)) if "nothing means" in line]
    with pytest.raises(ContractError, match=rf"states.never.{name}: states.{name} means {name}: take one"):
        parse(text, "acme.toml")


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("never", "says"),
    [
        ('succeeded = "x"', "states.never.succeeded: unknown key"),
        ("failed = true", "states.never.failed: must be a string"),
        ('failed = " "', "states.never.failed: is empty"),
    ],
)
def test_never_wants_evidence_and_no_api_never_succeeds(never: str, says: str) -> None:
    text = BASE.replace('failed = ["failed"]\n', "").replace(
        'cancelled = ["cancelled"]\n', f'cancelled = ["cancelled"]\n[states.never]\n{never}\n'
    )
    with pytest.raises(ContractError, match=says):
        parse(text, "acme.toml")
