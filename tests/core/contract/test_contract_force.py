"""`[cancel.force]`: written like a cancel, refused with file, line and key, offered only where the cancel is."""

from __future__ import annotations

import pytest
from tests.core.contract.test_contract_findings import BASE, told
from tests.core.contract.test_contract_mistakes import error
from tests.core.reading.helpers import operation

from pollcore.contract import instance, json_schema, parse, requests
from pollcore.contract.parts import Unit
from pollcore.facts import FORCE, MINUTE, Confirm, ForceCancel, Memory, Refused

FORCED = """
[cancel.force]
method = "POST"
url = "{base_url}/jobs/{job_id}/force-cancel"
body = { reason = "stuck" }
consequences = "it is killed"
confirm = { minutes = 7, checks = 3 }
after = "2m"
available_at = "body.force_at"
unit = "unix_seconds"
needs_accepted = true
allowed_states = ["running"]
irreversible = true
leads_to = "cancelled"
"""
TEXT = BASE.replace("[limits]\n", FORCED + "[limits]\n")


def changed(*changes: tuple[str, str]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.rule("E5", "E8")
def test_a_force_cancel_reads_as_a_cancel_with_a_time_of_its_own() -> None:
    found = parse(TEXT, "acme.toml")
    assert told(("[limits]\n", FORCED + "[limits]\n")) == []
    assert found.policy.force_cancel == ForceCancel(
        "it is killed", Confirm(7, 3), irreversible=True, allowed_states=("running",),
        after=2 * MINUTE, names_time=True, needs_accepted=True,
    )  # fmt: skip
    assert found.cancel is not None
    assert found.cancel.force is not None
    assert (found.cancel.force.unit, found.cancel.force.force) == (Unit.UNIX_SECONDS, None)
    assert ("body", "force_at") in found.prefixes, "a large answer keeps the time"
    sent = requests.cancel_request(found, operation(Memory()), None, FORCE)
    assert (sent.url.rpartition("/")[2], sent.body) == ("force-cancel", b'{"reason":"stuck"}')
    assert requests.cancel_request(found, operation(Memory()), None).url.endswith("/cancel")


@pytest.mark.rule("E5")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('consequences = "it is killed"\n', "", "cancel.force.consequences: missing; give what it does beyond"),
        ("confirm = { minutes = 7, checks = 3 }\n", "", "cancel.force.confirm: missing; give { minutes = 5"),
        ("minutes = 7", "minutes = 0", "cancel.force.confirm.minutes: 0 is outside"),
        ("needs_accepted", "needs_acepted", 'cancel.force.needs_acepted: unknown key (did you mean "needs_accepted"?'),
        ('after = "2m"', 'after = "soon"', 'cancel.force.after: "soon" is no span; write it like'),
        ('available_at = "body.force_at"\n', "", "cancel.force.unit: belongs to available_at"),
        ('"unix_seconds"', '"seconds"', 'cancel.force.unit: "seconds" is not one of iso, http_date, unix_seconds'),
        ('available_at = "body.force_at"', 'available_at = "body."', "cancel.force.available_at: "),
        ("/force-cancel", "/{nobody}", "cancel.force.url: "),
        ('"{base_url}/jobs/{job_id}/force-cancel"', '"https://else.test/f"', "cancel.force.url: https://else.test:443"),
        ('"it is killed"\n', '"it is killed"\nforce = { method = "POST" }\n', "cancel.force.force: unknown key"),
    ],
)
def test_a_mistake_is_told_with_file_line_key_and_the_way_out(old: str, new: str, said: str) -> None:
    text = changed((old, new))
    found = error(text)
    name, line, _ = found.split(":", 2)
    assert (name, said in found) == ("acme.toml", True), found
    first = text[: text.index("[cancel.force]")].count("\n") + 1
    assert first <= int(line) <= first + 14, found


@pytest.mark.rule("E5")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('leads_to = "cancelled"\n[limits', 'leads_to = "canceled"\n[limits', "cancel.force.leads_to: "),
        ('allowed_states = ["running"]\nirr', 'allowed_states = ["runing"]\nirr', "cancel.force.allowed_states: "),
        ('force-cancel"\nbody = { reason = "stuck" }', 'cancel"', "cancel.force: sends the same request as [cancel]"),
    ],
)
def test_what_is_doubtful_in_it_is_one_warning(old: str, new: str, said: str) -> None:
    text = changed((old, new))
    found = told((BASE, text))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.rule("E5")
def test_without_an_offered_cancel_there_is_no_force_cancel_and_check_says_so() -> None:
    text = changed(('consequences = "it stops"\n', ""))
    assert parse(text, "acme.toml").policy.force_cancel is None
    assert any("cancel.force: follows a cancel, which is never offered" in one for one in told((BASE, text)))
    with pytest.raises(Refused, match=r"documents no force-cancel \(\[cancel\.force\]\)"):
        requests.cancel_request(parse(BASE, "acme.toml"), operation(Memory()), None, FORCE)


@pytest.mark.rule("E5")
def test_an_address_that_the_instance_does_not_know_offers_no_force_cancel() -> None:
    admin = ('"{base_url}/jobs/{job_id}/force-cancel"', '"{urls.admin}/kill/{job_id}"')
    text = changed(admin).replace("[credential]", "[urls.admin]\n[credential]")
    found = parse(text, "acme.toml")
    without = instance(found, base_url="https://own.acme.test")
    assert (without.policy.cancel is not None, without.policy.force_cancel) == (True, None)
    known = instance(found, base_url="https://own.acme.test", urls={"admin": "https://admin.acme.test"})
    assert known.policy.force_cancel is not None
    sent = requests.cancel_request(known, operation(Memory(), job_id="j1"), None, FORCE)
    assert sent.url == "https://admin.acme.test/kill/j1"


@pytest.mark.rule("E5")
def test_the_schema_knows_it_and_what_it_requires() -> None:
    force = json_schema()["properties"]["cancel"]["properties"]["force"]
    assert set(force["required"]) == {"consequences", "confirm"}
    assert {"after", "available_at", "needs_accepted", "by_step", "done_when"} <= set(force["properties"])
    assert "force" not in force["properties"]
