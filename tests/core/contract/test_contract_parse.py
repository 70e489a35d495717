"""Reading contract files: every mistake is told with file, line, key and the way out; nothing is ignored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import HEAD, LIMITS, STATE, STATES, contract

from pollcore.contract import parse
from pollcore.contract.lines import key_lines
from pollcore.contract.patterns import glob, regex
from pollcore.facts import MINUTE, ContractError, Verdict

FULL = HEAD + STATE + STATES + LIMITS


def error(text: str) -> str:
    with pytest.raises(ContractError) as caught:
        parse(text, "acme.toml")
    return str(caught.value)


def broken(more: str) -> str:
    return error(FULL + more)


@pytest.mark.rule("S2")
def test_a_state_in_two_lists_names_both_and_the_line() -> None:
    text = FULL.replace('failed = ["failed"]', 'failed = ["failed", "running"]')
    line = text.split("\n").index('failed = ["failed", "running"]') + 1
    assert error(text).startswith(f'acme.toml:{line}: states.failed: "running" is also in states.waiting; ')


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ("[schedule]\nbase_dealy = 5\n", 2, 'schedule.base_dealy: unknown key (did you mean "base_delay"?)'),
        ("[sucess]\n", 1, 'sucess: unknown key (did you mean "success"?)'),
        ('[[rules]]\nstatus = [404]\ncategory = "gone"\n', 3, 'rules[1].category: "gone" is not one of'),
        ('[[rules]]\nstatus = [401]\ncategory = "waiting"\n', 2, "rules[1].status: 401: 401 always means"),
        ('[[rules]]\ncategory = "failed"\n', 1, "rules[1]: needs when, status or step"),
        ('[[rules]]\nwhen = "status"\ncategory = "failed"\n', 2, 'rules[1].when: "status" is none of'),
        ('[[rules]]\nwhen = "body.a ||"\ncategory = "failed"\n', 2, "rules[1].when: no JMESPath expression"),
        (
            '[[success.requires]]\npath = "body.u"\nformat = "uri"\n',
            3,
            'success.requires[1].format: "uri" is not one of',
        ),
        ('[[hints]]\npath = "body.w"\n', 1, "hints[1].unit: missing; one of milliseconds"),
        (
            '[cancel]\nmethod = "POST"\nurl = "https://other.test/c"\n',
            3,
            "cancel.url: https://other.test:443 is not in",
        ),
        ('[result]\nurl = "https://api.example.test/{jobid}"\n', 2, 'result.url: "{jobid}" has no value here'),
        ('[result]\nurl = "/v1/x"\n', 2, 'result.url: a URL starts with "https://"'),
        ('[result]\nheaders = { Authorization = "x" }\nurl = "https://api.example.test"\n', 2, "credentials live in"),
    ],
)
def test_mistakes_are_told_with_line_and_key(more: str, line: int, said: str) -> None:
    message = broken(more)
    first = FULL.count("\n")
    assert message.startswith(f"acme.toml:{first + line}: ")
    assert said in message


@pytest.mark.rule("B1")
@pytest.mark.parametrize(
    "limits",
    [
        "deadline = 0",
        "deadline = -5",
        "deadline = 1e12",
        "deadline = nan",
        "deadline = inf",
        "deadline = true",
        'deadline = "1 hour"',
        "deadline = 2026-01-01",
        "deadline = 2026-01-01T00:00:00",
        'deadline = "367d"',
        "max_status_requests = 0",
        "max_status_requests = 100001",
        "max_status_requests = 1.5",
        "max_transport_failures = 1001",
        'max_rate_limited = "3"',
    ],
)
def test_absurd_limits_are_refused_at_their_line(limits: str) -> None:
    message = broken(f"[limits.default]\n{limits}\n")
    line = FULL.count("\n") + 2
    assert message.startswith(f"acme.toml:{line}: limits.default.{limits.split(' ')[0]}: ")


@pytest.mark.rule("B1", "E4")
def test_default_and_max_are_told_apart_and_retention_bounds_both() -> None:
    made = contract('[limits.default]\ndeadline = "10m"\n[limits.max]\ndeadline = "1h"\nmax_status_requests = 9\n')
    assert made.policy.default.deadline == 10 * MINUTE
    assert made.policy.ceiling.deadline == 60 * MINUTE
    assert made.policy.ceiling.max_status_requests == 9
    assert made.policy.default.max_status_requests is None
    assert made.deadline_basis == "test"
    assert "is above limits.max.deadline" in broken(
        '[limits.default]\ndeadline = "2h"\n[limits.max]\ndeadline = "1h"\n'
    )
    text = FULL.replace('deadline_basis = "test"', 'deadline_basis = "test"\nretention = "1h"')
    assert "beyond the provider's retention 1 h" in error(text + '[limits.max]\ndeadline = "2h"\n')
    assert "deadline_basis: missing" in error(FULL.replace('deadline_basis = "test"\n', ""))
    for sizes in ("[{ minutes = 0, checks = 1 }]", "[{ minutes = 1, checks = 0 }]", "[{ minutes = 1 }]"):
        text = FULL.replace('deadline_basis = "test"', f'deadline_basis = "test"\nextend = {sizes}')
        assert "limits.extend[1]" in error(text)
    five = ", ".join(f"{{ minutes = {n}, checks = 1 }}" for n in range(1, 6))
    assert "more than 4 sizes" in error(FULL.replace('basis = "test"', f'basis = "test"\nextend = [{five}]'))


@pytest.mark.rule("X7")
def test_read_only_needs_its_evidence_and_without_it_the_operator_decides() -> None:
    assert "status.evidence: missing" in error(FULL.replace('evidence = "test"\n', ""))
    plain = parse(FULL.replace('evidence = "test"\n', "").replace('observation = "read_only"\n', ""), "a.toml")
    assert plain.policy.observation_read_only is False
    assert contract().policy.observation_read_only is True


@pytest.mark.rule("E5", "E6")
def test_cancel_and_resubmit_are_there_only_when_documented() -> None:
    cancel = '[cancel]\nmethod = "POST"\nurl = "https://api.example.test/c"\nconfirm = { minutes = 5, checks = 4 }\n'
    assert contract(cancel).policy.cancel is None
    said = contract(cancel + 'consequences = "stops it"\nirreversible = true\nbest_effort = true\n').policy.cancel
    assert said is not None
    assert (said.confirm.minutes, said.confirm.checks, said.irreversible, said.best_effort) == (5, 4, True, True)
    assert "cancel.confirm: missing" in broken('[cancel]\nurl = "https://api.example.test/c"\nmethod = "POST"\n')
    template = '[submission]\nmethod = "POST"\nurl = "https://api.example.test/j"\n'
    assert contract(template).policy.can_resubmit is False
    assert contract(template + 'idempotency = { header = "Idempotency-Key" }\n').policy.can_resubmit is True
    assert "needs the submission's template" in broken('[submission]\nidempotency = { header = "K" }\n')
    assert "say where the key goes, once" in broken(template + "idempotency = { max_length = 9 }\n")


def test_sizes_of_files_lines_depth_and_rules_are_limited() -> None:
    assert "larger than 256 KiB" in error("#" * 300_000)
    assert "line longer than 4096" in error("a = 1\n" + "#" * 5_000)
    assert "nested deeper than 12" in error(FULL + "[notes." + ".".join("abcdefghijklmn") + "]\n")
    assert "nested deeper" in error("a = " + "[" * 1_500 + "]" * 1_500)
    assert "more than 5000 values" in error("".join(f"k{n} = 1\n" for n in range(5_001)))
    rule = '[[rules]]\nstatus = [404]\ncategory = "failed"\n'
    assert "more than 100 rules" in broken(rule * 101)
    assert "expression longer than 1000" in broken(f'[error]\ncode = "body.{"a" * 1_000}"\n')
    assert "nested deeper than 40" in broken(f'[error]\ncode = "{"!" * 60}body"\n')
    assert "more than 160 parts" in broken(f'[error]\ncode = "[{", ".join(["body.a"] * 60)}]"\n')
    many = " | ".join(["[@,@,@]"] * 8)
    assert "multiplies its input" in broken(f'[error]\ncode = "body | {many}"\n')
    assert error('a = "\n').startswith("acme.toml:1: not TOML: ")
    assert "schema must be 1" in error("name = 'x'\n")


@pytest.mark.parametrize(
    "text",
    [
        *("(a+)+", "(a|a)*b", "(?=a)", r"(a)\1", "a*a*a*a*", "a" * 300, "a{1,999}", "(ab){2}", "a**", "[", "("),
        *("a?" * 24 + "a" * 24, "(?:ab|a|b)" * 12 + "c", "(?:a|b(?:c|d)?)?" * 4),
    ],
)
def test_patterns_that_could_run_away_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        regex(text)


def test_the_safe_subset_and_globs_do_what_contracts_need() -> None:
    assert regex(r"https://[a-z.]+/jobs/([^/?]+)").first_group("https://a.example/jobs/j-1") == "j-1"
    assert regex("[0-9a-f]{16}").matches("00000000000000b1")
    assert not regex("[0-9]+").matches("1\n")
    assert not regex("[0-9]+").matches("1" * 5_000)
    assert regex("a+").matches("a" * 2_000)
    assert not regex("a*a*a*b").matches("a" * 2_000)
    assert not regex("a*a*a*b").matches("a" * 500)
    assert regex("|".join(f"s{n}" for n in range(40))).matches("s39")
    assert not regex("a?" * 7 + "a" * 7).matches("a" * 20)
    assert not regex("(?:ab|a|b)" * 3 + "[ab]*[ab]*[ab]*c").matches("ab" * 250)
    assert glob("False/*").matches("False/Timeout")
    assert not glob("False/*").matches("Falsehood")
    assert not glob("a.c").matches("abc")
    with pytest.raises(ValueError):
        glob("*a*b*c*")


@pytest.mark.rule("S2")
def test_values_keep_their_type_and_patterns_limits_and_absence_have_their_place() -> None:
    states = """
[states]
waiting = [4, { pattern = "run-*" }, { value = "UNKNOWN", limit = 3 }, { absent = true }]
succeeded = [1, "1", true, ["a", 1], { value = "part", qualifier = "partial" }]
failed = [-1, 1.5]
"""
    table = contract(state=STATE + states).table
    assert {text: one.verdict for text, one in table.others.items()} == {
        "4": Verdict.WAITING,
        "1": Verdict.SUCCEEDED,
        "true": Verdict.SUCCEEDED,
        '["a",1]': Verdict.SUCCEEDED,
        "-1": Verdict.FAILED,
        "1.5": Verdict.FAILED,
    }
    assert table.texts["part"].qualifiers == ("partial",)
    assert table.texts["UNKNOWN"].limit == 3
    assert table.absent is not None
    assert "qualifies an end" in error(FULL.replace('"queued"', '{ value = "q", qualifier = "partial" }'))
    assert "belongs to a waiting state" in error(FULL.replace('["failed"]', '[{ value = "f", limit = 3 }]'))
    folded = FULL.replace(STATE, STATE + "fold_case = true\n").replace('["failed"]', '["failed", "RUNNING"]')
    assert '"RUNNING" is also in states.waiting' in error(folded)


@given(st.lists(st.sampled_from(["a", "b.c", '"d e"', "'f'"]), min_size=1, max_size=4, unique=True), st.integers(0, 3))
def test_lines_of_keys_are_found_whatever_the_values_hold(keys: list[str], gap: int) -> None:
    value = '["x # [y]", """\n= ] \\" \n""", { k = 1 }, # ] comment\n]'
    text = "# head\n" * gap + "".join(f"{key} = {value}\n" for key in keys) + "[[t]]\nz = 1\n[[t]]\nz = 2\n"
    found = key_lines(text)
    for n, key in enumerate(keys):
        path = tuple(part.strip("\"'") for part in key.split("."))
        assert found[path] == gap + 1 + 4 * n
    assert found["t", 1, "z"] == text.rstrip("\n").count("\n") + 1


@given(st.text(max_size=200))
def test_any_text_is_a_contract_or_a_contract_error(text: str) -> None:
    for whole in (text, FULL + text, text + FULL):
        try:
            parse(whole, "any.toml")
            said = "any.toml"
        except ContractError as problem:
            said = str(problem)
        assert said.startswith("any.toml")
