"""Mistakes of contract authors: a misspelt key is told first, and what can never work is told by `provider check`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.contract.test_contract_docs import EVERYTHING, example
from tests.core.reading.helpers import HEAD, LIMITS, STATE, STATES

from pollcore.adapters.contract_files import ContractFiles
from pollcore.contract import check, instance, parse
from pollcore.contract.keys import KEYS, pattern_of
from pollcore.contract.near import near
from pollcore.contract.tables import Table
from pollcore.facts import ContractError

FULL = HEAD + STATE + STATES + LIMITS
BATCH = """
schema = 1
name = "acme"
[credential]
kind = "none"
[status]
method = "POST"
url = "https://api.acme.example/jobs/{job_id}"
[status.item]
entries = "body.jobs"
job_id = "item.id"
[status.batch]
max = 50
gather = "5s"
separator = ";"
url = "https://api.acme.example/jobs"
query = { ids = "{job_ids}" }
body = { ids = ["{job_ids}"] }
[state]
value = "item.status"
[states]
waiting = ["running"]
[states.never]
failed = "no such state in the documentation"
[limits]
deadline_basis = "test"
"""
STEP_THEN = """url = "https://api.acme.example/next"
[[steps.then]]
when = "body.more"
step = "status"
"""


def error(text: str) -> str:
    with pytest.raises(ContractError) as caught:
        parse(text, "acme.toml")
    return str(caught.value)


def warnings(text: str, filename: str = "acme.toml") -> list[str]:
    return [f"{one.line}: {one.key}: {one.message}" for one in check(parse(text, filename)) if one.level == "warning"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('value = "body.status"', 'valeu = "body.status"', 'state.valeu: unknown key (did you mean "value"?)'),
        ("deadline_basis", "deadline_bases", 'limits.deadline_bases: unknown key (did you mean "deadline_basis"?)'),
        ("evidence", "evidense", 'status.evidense: unknown key (did you mean "evidence"?)'),
        ('kind = "bearer"', 'knd = "bearer"', 'credential.knd: unknown key (did you mean "kind"?)'),
        ("[status]", "[statsu]", 'statsu: unknown key (did you mean "status"?)'),
        ("[limits]", "[limit]", 'limit: unknown key (did you mean "limits"?)'),
        ('name = "acme"', 'nmae = "acme"', 'nmae: unknown key (did you mean "name"?)'),
        ("url =", "ulr =", 'status.ulr: unknown key (did you mean "url"?)'),
        ('["paused"]', '[{ valeu = "paused" }]', 'states.needs_human[1].valeu: unknown key (did you mean "value"?)'),
        (
            '["https://api.example.test"]',
            '[{ orgin = "https://api.example.test" }]',
            'origins: unknown key "orgin" (did you mean "origin"?)',
        ),
    ],
)
def test_a_misspelt_required_key_reads_as_unknown_and_not_as_missing(old: str, new: str, said: str) -> None:
    text = FULL.replace(old, new, 1)
    assert text != FULL
    assert said in error(text)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[[hints]]\npaht = "body.x"\nunit = "seconds"\n', "hints[1].paht: unknown key"),
        ('[[rules]]\nwhen = "foo("\ncategry = "failed"\n', "rules[1].categry: unknown key"),
        ('[[success.requires]]\npth = "body.u"\n', "success.requires[1].pth: unknown key"),
        ('[long_poll]\nparamter = "wait"\nwait = 5\n', "long_poll.paramter: unknown key"),
        ("[settle]\ndealy = 5\n", "settle.dealy: unknown key"),
        ('[submission.answer]\njobid = "body.id"\n', "submission.answer.jobid: unknown key"),
        ("[[limits.extend]]\nminutse = 5\nchecks = 2\n", "limits.extend[1].minutse: unknown key"),
        ("[params.region]\nrequierd = 1\n", "params.region.requierd: unknown key"),
        ('[cancel]\nmethd = "POST"\n', "cancel.methd: unknown key"),
        ('[[caps.scopes]]\nscop = "account"\n', 'caps.scopes[1].scop: unknown key (did you mean "scope"?)'),
        (
            '[result]\nurl = "https://api.example.test"\n[result.pages]\nnxt = "body.next"\n',
            "result.pages.nxt: unknown",
        ),
        ('[identity]\nstep = ["status"]\n', 'identity.step: unknown key (did you mean "steps"?)'),
        ('[submission.answer]\nformt = "xml"\n', "submission.answer.formt: unknown key"),
        ('[[steps]]\nname = "x"\nfromat = "xml"\n', 'steps[1].fromat: unknown key (did you mean "format"?)'),
        (
            '[[steps]]\nname = "x"\nurl = "https://api.example.test"\neach = { childern = "body.a" }\n',
            'steps[1].each.childern: unknown key (did you mean "children"?)',
        ),
        (
            '[[steps]]\nname = "x"\nurl = "https://api.example.test"\nitem = { entires = "body.a" }\n',
            'steps[1].item.entires: unknown key (did you mean "entries"?)',
        ),
    ],
)
def test_an_unknown_key_is_told_before_any_other_complaint_of_its_table(more: str, said: str) -> None:
    assert said in error(FULL + more)


STEP = '[[steps]]\nname = "part"\nurl = "https://api.example.test/{each}"\n'
RESULT = '[result]\nurl = "https://api.example.test/r"\n[result.pages]\n'
SCOPE = '[[caps.scopes]]\nscope = "account"\n'


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (STEP, 'steps[1].url: "{each}" has no value here'),
        (STEP + 'each = { children = "body.a" }\n', "steps[1].each.most: missing; give a whole number from 1 to 100"),
        (
            STEP + "each = { most = 3 }\n",
            'steps[1].each.children: missing; list the ids in the answer before, as "body',
        ),
        (STEP + 'each = { children = "body.a", most = 101 }\n', "steps[1].each.most: 101 is outside 1 to 100"),
        (
            STEP + 'each = { children = "body.a", most = 3, together = "wrost" }\n',
            'steps[1].each.together: "wrost" is not one of all, any, worst (did you mean "worst"?)',
        ),
        (
            STEP + 'each = { children = "body.a", most = 3 }\n',
            "steps: part needs exactly one step whose then leads to it",
        ),
        (RESULT + "most = 5\n", "result.pages: give next (the address of the next page) or token"),
        (RESULT + 'most = 1\nnext = "body.next"\n', "result.pages.most: 1 is outside 2 to 1000"),
        (RESULT + 'most = 5\ntoken = "body.next"\n', "result.pages.token: give parameter (of the query) or field"),
        (RESULT + 'most = 5\ntoken = "body.n"\nfield = "x"\n', "result.pages.field: needs a JSON body of result"),
        (RESULT + 'most = 5\nnext = "body.n"\nparameter = "x"\n', "result.pages.parameter: belongs to token"),
        (SCOPE + 'requests = 5\nper = "1 hour"\n', 'caps.scopes[1].per: "1 hour" is no span'),
        (SCOPE + "requests = 5\n", "caps.scopes[1].per: missing; give a span"),
        (SCOPE + 'requests = 5\nper = "1h"\nstep = "status"\n', 'caps.scopes[1].step: belongs to scope = "route"'),
        (SCOPE.replace("account", "acount") + "requests = 5\n", '"acount" is not one of'),
        ('[identity]\nsteps = ["stauts"]\n', 'identity.steps: "stauts" is no step (did you mean "status"?)'),
        (
            '[submission.answer]\nformat = "xlm"\njob_id = "body.a"\n',
            '"xlm" is not one of json, ndjson, xml, form, text',
        ),
        ('[submission.answer]\nlists = ["A"]\njob_id = "body.a"\n', 'lists: belongs to format = "xml"'),
        ('[[rules]]\nwhen = "!body.a"\ncategory = "failed"\n', "so this is always null: write !(body.error)"),
        (
            '[[rules]]\nwhen = "match(body.a, body.b)"\ncategory = "failed"\n',
            "takes its pattern as a text of the contract",
        ),
        ('[[rules]]\nwhen = "match(body.a, \'(a+)+\')"\ncategory = "failed"\n', "repeating a group"),
        (
            '[[rules]]\nwhen = "time_sm(body.a)"\ncategory = "failed"\n',
            'no JMESPath function (did you mean "time_ms"?)',
        ),
        (
            '[cancel]\nmethod = "POST"\nurl = "https://api.example.test/c"\nbody = { id = "x{job_id|number}" }\n',
            'cancel.body: "|number" makes a number of the whole string',
        ),
    ],
)
def test_mistakes_in_chains_pages_scopes_and_formats_say_what_and_the_way_out(more: str, said: str) -> None:
    told = error(FULL + more)
    assert said in told
    assert told.startswith("acme.toml:")


@pytest.mark.rule("B1")
def test_a_round_of_children_that_the_budget_cannot_pay_is_told_with_its_numbers() -> None:
    then = '[[status.then]]\nwhen = "body.a"\nstep = "part"\n'
    text = FULL + then + STEP + 'each = { children = "body.a", most = 20 }\n[limits.default]\nmax_status_requests = '
    said = "one round of part may cost 21 requests (each.most and the list), all are 20"
    assert any(said in one for one in warnings(text + "20\n"))
    assert not any("one round of part" in one for one in warnings(text + "21\n"))


def test_the_list_of_keys_is_exactly_what_the_readers_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[tuple[str, ...], set[str]] = {}
    plain_raw = Table.raw

    def raw(self: Table, key: str) -> object:
        asked.setdefault(pattern_of(self.path), set()).add(key)
        return plain_raw(self, key)

    monkeypatch.setattr(Table, "raw", raw)
    after_steps = EVERYTHING.replace('url = "https://api.acme.example/next"\n', STEP_THEN)
    assert after_steps != EVERYTHING
    parse(example() + after_steps, "acme.toml")
    # a batch cannot stand beside steps
    parse(BATCH, "acme.toml")
    assert {path: sorted(keys) for path, keys in asked.items() if path in KEYS} == {
        path: sorted(keys) for path, keys in KEYS.items()
    }


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("foo(body)", "no JMESPath function"),
        ("lenght(body.a) > `1`", 'no JMESPath function (did you mean "length"?)'),
        ("body.a[?bar(@)]", "no JMESPath function"),
        ("length()", "length() takes 1 arguments, not 0"),
        ("contains(body.a)", "contains() takes 2 arguments, not 1"),
        ("not_null()", "not_null() takes at least 1 arguments, not 0"),
    ],
)
def test_a_call_that_can_never_work_is_an_error_of_the_file_with_its_line(expression: str, said: str) -> None:
    told = error(FULL + f'[[rules]]\nwhen = "{expression}"\ncategory = "failed"\n')
    assert told.startswith(f"acme.toml:{FULL.count(chr(10)) + 2}: rules[1].when: ")
    assert said in told
    works = FULL + '[[rules]]\nwhen = "not_null(body.a, body.b, length(keys(body)))"\ncategory = "failed"\n'
    assert len(parse(works, "acme.toml").rules) == 1


@pytest.mark.rule("H2")
def test_http_beyond_loopback_is_a_finding_until_the_instance_allows_it() -> None:
    text = 'base_url = "http://api.acme.example"\n'.join(FULL.split('origins = ["https://api.example.test"]\n'))
    text = text.replace("https://api.example.test", "{base_url}")
    found = warnings(text)
    assert any(one.startswith("3: base_url: http beyond this machine") and "allow_http" in one for one in found)
    allowed = instance(parse(text, "acme.toml"), allow_http=True)
    assert not any(one.key == "base_url" for one in check(allowed))
    for base in ("http://127.0.0.1:8080", "http://localhost", "https://api.acme.example"):
        assert not any("base_url" in one for one in warnings(text.replace("http://api.acme.example", base)))
    assert any("urls.admin" in one for one in warnings(FULL + '[urls.admin]\ndefault = "http://admin.example"\n'))


def test_allow_http_in_a_contract_names_the_place_where_it_belongs() -> None:
    assert "allow_http: is set in [providers.NAME] of config.toml" in error("allow_http = true\n" + FULL)


@pytest.mark.parametrize("filename", ["other.toml", "./providers/other.toml"])
def test_a_name_that_is_not_the_files_is_a_finding_with_its_line(filename: str, tmp_path: Path) -> None:
    assert any(one.startswith('2: name: "acme" is not the file\'s name "other"') for one in warnings(FULL, filename))
    for same in ("acme.toml", "/x/acme.toml", "-", "stdin"):
        assert not any("file's name" in one for one in warnings(FULL, same))
    (tmp_path / "other.toml").write_text(FULL)
    with pytest.raises(ContractError, match=r"^other\.toml:2: name: ") as caught:
        ContractFiles(tmp_path).load("other")
    assert caught.value.line == 2


@pytest.mark.rule("E6", "K1")
@pytest.mark.parametrize("header", ["Authorization", "cookie", "Content-Length", "X-Api-Key"])
def test_the_idempotency_key_never_takes_the_place_of_a_credential(header: str) -> None:
    text = FULL.replace('kind = "bearer"', 'kind = "header"\nnames = ["X-API-Key"]')
    text += '[submission]\nmethod = "POST"\nurl = "https://api.example.test/v1/jobs"\n'
    key = f'[submission.idempotency]\nheader = "{header}"\n'
    assert "submission.idempotency.header: " in error(text + key)
    assert parse(text + key.replace(header, "Idempotency-Key"), "acme.toml").submission is not None


def test_spans_in_messages_have_their_unit() -> None:
    limits = '[limits.default]\ndeadline = "2h"\n[limits.max]\ndeadline = 300\n'
    assert "deadline 2 h is above limits.max.deadline 5 min" in error(FULL + limits)
    assert "schedule.base_delay: 0.05 s is outside 100 ms to 1 d" in error(FULL + "[schedule]\nbase_delay = 0.05\n")


@pytest.mark.rule("T4")
def test_a_cap_above_max_hint_is_a_finding() -> None:
    hint = '[[hints]]\npath = "body.n"\nunit = "seconds"\ncap = "2d"\n'
    assert any("hints[1].cap: 2 d is above schedule.max_hint 1 d" in one for one in warnings(FULL + hint))
    assert not any("cap" in one for one in warnings(FULL + hint + '[schedule]\nmax_hint = "2d"\n'))


@pytest.mark.rule("S2")
def test_a_lookalike_goes_before_a_word_that_is_one_letter_away() -> None:
    assert near("d\u043ene", ["dane", "done"]) == "done"
    assert near("D\u041eNE", ["done"]) == "done"
    assert near("d\u00f6ne", ["gone"]) is None
