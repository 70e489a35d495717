"""`provider check` names what a contract says to no effect, and what the operator is asked about all the same."""

from __future__ import annotations

import pytest
from tests.core.contract.test_contract_findings import BASE, told

from pollcore.contract import check, parse
from pollcore.contract.expressions import compile_expression

LIMITS = "[limits]\n"
RESULT = '[result]\nurl = "{result.url}"\n'
LINK = '[[success.requires]]\npath = "body.url"\nformat = "url"\nhosts = ["HOST"]\n'


def noted(*changes: tuple[str, str]) -> list[str]:
    text = BASE
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return [f"{one.key}: {one.message}" for one in check(parse(text, "acme.toml")) if one.level == "note"]


@pytest.mark.rule("S4", "E5")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (LIMITS, f'[[hints]]\npath = \'http.headers."X-After"\'\nunit = "seconds"\ncap = "1h"\n{LIMITS}', '"x-after"'),
        (LIMITS, f"[params.region]\n{LIMITS}", "params.region: nothing reads it"),
        (LIMITS, RESULT + LINK.replace("HOST", "files.acme.test") + LIMITS, '"files.acme.test" is in no origin'),
        (LIMITS, RESULT + LINK.replace("HOST", "*.acme.test") + LIMITS, '"*.acme.test" is in no origin'),
        (
            "[[success.requires]]",
            '[success]\npermits = "fetch_reslt"\n[[success.requires]]',
            'did you mean "fetch_result"?',
        ),
        ('consequences = "it stops"\n', "", "cancel: without consequences it is never offered"),
        ('leads_to = "cancelled"', 'leads_to = "canceled, soon"', "is no state that this contract lists"),
    ],
)
def test_what_can_have_no_effect_is_one_warning(old: str, new: str, said: str) -> None:
    found = told((old, new))
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.rule("E5")
def test_a_cancel_without_consequences_is_told_before_its_server_is_named() -> None:
    server = ('base_url = "https://api.acme.test"', "requires_base_url = true")
    assert any("without consequences" in line for line in told(server, ('consequences = "it stops"\n', "")))
    assert not any("consequences" in line for line in told(server))


@pytest.mark.rule("S4", "E5")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LIMITS, f'[[hints]]\npath = \'http.headers."x-after"\'\nunit = "seconds"\ncap = "1h"\n{LIMITS}'),
        (LIMITS, f'[params.region]\n[status.query]\nr = "{{params.region|optional}}"\n{LIMITS}'),
        (
            LIMITS,
            f'[params.region]\n[[rules]]\nwhen = "submitted.params.region == \'eu\'"\ncategory = "failed"\n{LIMITS}',
        ),
        (LIMITS, RESULT + LINK.replace("HOST", "api.acme.test") + LIMITS),
        (LIMITS, LINK.replace("HOST", "files.acme.test") + LIMITS),
        ("[[success.requires]]", '[success]\npermits = "use_model"\n[[success.requires]]'),
        ('leads_to = "cancelled"', 'leads_to = "cancelled, within 5 minutes"'),
    ],
)
def test_what_has_an_effect_is_no_warning(old: str, new: str) -> None:
    assert told((old, new)) == []


@pytest.mark.rule("X7")
def test_the_question_of_the_first_use_is_noted_for_as_long_as_it_would_be_asked() -> None:
    status = ("[state]", 'observation = "read_only"\nevidence = "docs"\n[state]')
    assert any(line.startswith("status.observation: not declared") for line in noted())
    assert any(line.startswith("status.observation: read_only alone") for line in noted(status))
    untried = noted(status, ("schema = 1", 'schema = 1\ntested_live = "no"'))
    assert any(line.startswith("status.observation: read_only alone") for line in untried)
    assert any(line.startswith('tested_live: "no"') for line in untried)
    tried = noted(status, ("schema = 1", 'schema = 1\ntested_live = "v1, 2026-03-02"'))
    assert not any(line.startswith(("status.observation", "tested_live")) for line in tried)


@pytest.mark.rule("S9")
def test_a_result_that_is_never_fetched_is_noted_and_a_qualifier_of_a_failure_is_not() -> None:
    found = noted(('failed = ["failed"]', 'failed = ["failed", { value = "odd", qualifier = "partial" }]'))
    assert not any("qualifier" in line for line in found)
    found = noted(
        ("[[success.requires]]", '[success]\npermits = "use_result"\n[[success.requires]]'),
        (LIMITS, '[result]\nurl = "{base_url}/x"\n' + LIMITS),
    )
    assert any("[result] is never asked" in line for line in found)
    assert not any("[result]" in line for line in noted())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('body.code == "000604"', "a text takes single quotes: '000604'"),
        ("body.job-id", 'a name with "-" stands in double quotes, as body."job-id"'),
        ("body.a &&", "no JMESPath expression: Incomplete expression"),
        ("bdoy.status", 'did you mean "body"?'),
        ("code", "write body.code for a field"),
    ],
)
def test_an_expression_that_does_not_read_says_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"none of|no JMESPath") as caught:
        compile_expression(text)
    assert said in str(caught.value)
    assert not str(caught.value).endswith((":", ",", " "))
