"""`provider explain` decides as the core does, and shows no secret part of a link; messages about foreign places."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.core.reading.helpers import HEAD, LIMITS, STATE, STATES, answer, contract, look, moment, operation

from pollconsole.bridge import explaining as bridge
from pollcore.decide import decide
from pollcore.facts import Answer, Escalate, Refused, StopDetail, Submitted, Verdict
from pollcore.reading import explain, from_response, reread

TEXT = HEAD + STATE + STATES + LIMITS
GRACE = "[not_found]\ngrace_seconds = 60\n"
FORBIDDEN = "[forbidden]\ngrace_seconds = 60\nmax_requests = 2\n"


def told(got: Answer, text: str = TEXT, job_id: str | None = "job-1", **more: Any) -> dict[str, Any]:
    core = cast(Any, SimpleNamespace(clock=SimpleNamespace(now=moment)))
    return bridge.explain(core, "./acme.toml", text, got, job_id, more.pop("params", {}), **more)


@pytest.mark.rule("H7", "X5")
def test_an_answer_that_no_poll_takes_is_explained_as_too_large_and_one_that_was_unpacked_by_its_own_limit() -> None:
    body = {"status": "succeeded", "parts": ["x" * 60_000] * 4}
    assert told(answer(200, body))["decision"]["decision"] == "succeed"
    body["parts"] = ["x" * 60_000] * 5
    view = told(answer(200, body))
    assert (view["observation"], view["fault"]["kind"]) == (None, "too_large")
    assert (view["decision"]["reason"], view["decision"]["detail"]) == ("integration_failure", "response_too_large")
    assert view["card"][0] == "External job needs a decision"
    packed = {"Content-Encoding": "br"}
    assert told(answer(200, body, packed))["decision"]["decision"] == "succeed"
    body["parts"] = ["x" * 60_000] * 20
    assert told(answer(200, body, packed))["decision"]["detail"] == "response_too_large"
    assert told(answer(200, body, {f"X-{n}": "" for n in range(101)}))["fault"]["kind"] == "too_large"


@pytest.mark.rule("S7")
def test_a_parameter_that_no_submission_takes_is_refused_here_as_well() -> None:
    text = TEXT + '[params.region]\npattern = "[a-z]+"\nrequired = true\n'
    for params in ({"nope": "1"}, {"region": "A1"}):
        with pytest.raises(Refused) as caught:
            told(answer(200, {"status": "running"}), text, params=params)
        assert caught.value.code == "bad_parameter"
    assert told(answer(200, {"status": "running"}), text)["decision"]["decision"] == "wait"


@pytest.mark.rule("S3")
def test_an_example_job_that_is_taken_for_another_says_which_flag_is_missing() -> None:
    text, got = TEXT + '[identity]\njob_id = "body.id"\n', answer(200, {"status": "running", "id": "7"})
    view = told(got, text, None)
    assert (view["decision"]["detail"], "--job-id" in view["hint"]) == ("wrong_job", True)
    assert "hint" not in told(got, text, "8")
    assert "hint" not in told(got, text, "7")


@pytest.mark.rule("H4", "E5")
def test_a_404_reads_by_the_state_that_was_seen_and_its_cancel_is_offered_by_that_state() -> None:
    cancel = (
        '[cancel]\nmethod = "DELETE"\nurl = "https://api.example.test/v1/jobs/{job_id}"\nconsequences = "gone"\n'
        'confirm = { minutes = 5, checks = 2 }\nirreversible = true\nallowed_states = ["running"]\n'
    )
    assert told(answer(404), TEXT + '[not_found]\nonce_seen = "expired"\n', state="running")["decision"]["reason"] == (
        "job_expired"
    )
    for state, why in (
        (None, "the last state is not known"),
        ("queued", "the last state is another"),
        ("running", None),
    ):
        card = "\n".join(told(answer(404), TEXT + cancel, state=state)["card"])
        assert (f"Last state: {state or 'none yet'}" in card, "cannot be chosen" in card) == (True, why is not None)
        assert why is None or why in card


@pytest.mark.rule("O5", "E5")
def test_the_answer_to_a_cancel_is_read_as_the_core_reads_it() -> None:
    text = TEXT + '[cancel]\nmethod = "DELETE"\nurl = "https://api.example.test/v1/jobs/{job_id}"\nconsequences = "x"\n'
    text += "confirm = { minutes = 5, checks = 2 }\ndone_statuses = [202]\n"
    got = [told(answer(code), text, step="cancel")["cancel"]["outcome"] for code in (202, 409, 500)]
    assert got == ["done", "refused", "unknown"]
    with pytest.raises(Refused) as caught:
        told(answer(202), step="cancel")
    assert caught.value.code == "not_documented"


@pytest.mark.rule("H4")
def test_a_404_without_grace_stops_even_in_the_millisecond_of_the_start() -> None:
    view = told(answer(404))
    assert (view["rule"], view["observation"]["verdict"]) == ("not_found", "integration")
    assert (view["decision"]["decision"], view["decision"]["detail"]) == ("stop", "not_found")
    assert told(answer(404), TEXT + GRACE)["decision"]["decision"] == "wait"


@pytest.mark.rule("H4", "H3")
@pytest.mark.parametrize("after", [0, 1, 60_000, 60_001])
@pytest.mark.parametrize("status", [403, 404])
def test_a_grace_is_there_only_where_the_contract_gives_one(status: int, after: int) -> None:
    plain, _ = look(contract(), answer(status, after=after))
    assert plain.verdict is (Verdict.DENIED if status == 403 else Verdict.INTEGRATION)
    graced, _ = look(contract(GRACE + FORBIDDEN), answer(status, after=after))
    inside = {403: Verdict.TRANSPORT_FAILURE, 404: Verdict.WAITING}[status]
    assert (graced.verdict is inside) == (after <= 60_000)


@pytest.mark.rule("S1", "H2")
@pytest.mark.parametrize(
    "got",
    [
        answer(200, {"status": "running"}),
        answer(200, {"status": "odd"}),
        answer(202, {"status": "running"}, {"Location": "/v1/jobs/job-1"}),
        answer(202, {"status": "running"}, {"Location": "https://other.test/"}),
        answer(401),
        answer(403),
        answer(404),
        answer(410),
        answer(429, None, {"Retry-After": "1000000000"}),
        answer(503),
    ],
)
def test_explain_decides_as_the_core_decides_for_an_operation_just_begun(got: Answer) -> None:
    made = contract()
    seen, _ = look(made, got)
    live = decide(operation(), seen, policy=made.policy, now=moment(), draw=0.5)
    view = told(got)
    assert view["observation"]["verdict"] == seen.verdict.value
    if isinstance(live, Escalate):
        detail = live.detail.value if live.detail else None
        assert (view["decision"]["reason"], view["decision"]["detail"]) == (live.reason.value, detail)
    else:
        assert view["decision"]["decision"] == "wait"


@pytest.mark.rule("K4")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("body.u", {"u": "https://files.example.test/x?sig=TOPSECRET&se=1"}),
        ("body.u", {"u": "https://user:TOPSECRET@files.example.test/x"}),
        ("body.u", {"u": "/x?sig=TOPSECRET"}),
        ("body.u", {"u": "see https://files.example.test/x?sig=TOPSECRET for it"}),
        ("body.u", {"u": {"deep": ["https://files.example.test/x#sig=TOPSECRET"]}}),
        ("body", {"u": "https://files.example.test/x?a=1&sig=TOPSECRET"}),
    ],
)
def test_links_that_explain_has_read_are_shown_without_what_signs_them(path: str, body: dict[str, Any]) -> None:
    text = TEXT + f'[success]\nfields = {{ u = "{path}" }}\n'
    view = told(answer(200, {"status": "succeeded", **body}), text)
    assert any(line.startswith(f"{path}: ") and "/x" in line for line in view["read"])
    assert "TOPSECRET" not in str(view)


def test_text_that_is_no_link_is_shown_as_it_is() -> None:
    seen = explain(contract(), operation(), answer(200, {"status": "done? yes = no"}))
    assert seen.read == (("body.status", "done? yes = no"),)


@pytest.mark.rule("K3", "H2")
def test_a_foreign_location_is_named_with_scheme_and_port_beside_the_contracts_origins() -> None:
    seen, _ = look(contract(), answer(202, {"status": "running"}, {"Location": "http://api.example.test:81/x?k=1"}))
    assert seen.detail is StopDetail.FOREIGN_ORIGIN
    assert seen.explanation == (
        "Location points to http://api.example.test:81, which is none of the contract's origins "
        "(https://api.example.test:443)"
    )


@pytest.mark.rule("K3")
def test_a_foreign_next_address_and_a_foreign_result_are_named_in_full() -> None:
    head = HEAD.replace("evidence", 'next_url = "body.next"\nevidence')
    onward, _ = look(contract(head=head), answer(200, {"status": "running", "next": "https://b.test/n"}))
    assert "on https://b.test:443, which is none of" in str(onward.explanation)
    assert "(https://api.example.test:443)" in str(onward.explanation)
    made = contract('[redirect]\nstatuses = [303]\nhosts = ["files.test"]\n')
    seen, _ = look(made, answer(303, None, {"Location": "https://b.test/r"}))
    assert "https://b.test:443" in str(seen.explanation)
    assert "or hosts (files.test)" in str(seen.explanation)


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    ("state", "known", "named"),
    [
        ("f\u0430iled", "failed", "U+0430 CYRILLIC SMALL LETTER A"),
        ("\uff46ailed", "failed", "U+FF46 FULLWIDTH LATIN SMALL LETTER F"),
        ("fai\u200bled", "failed", "U+200B ZERO WIDTH SPACE"),
        ("p\u03b1us\u0435d", "paused", "U+03B1 GREEK SMALL LETTER ALPHA, U+0435 CYRILLIC SMALL LETTER IE"),
    ],
)
def test_a_state_in_lookalike_letters_stays_unknown_and_the_hint_names_them(state: str, known: str, named: str) -> None:
    seen, _ = look(contract(), answer(200, {"status": state}))
    assert (seen.verdict, seen.state, seen.near_match) == (Verdict.UNKNOWN, state, known)
    assert seen.explanation == (
        f'the contract does not list this state; it looks like "{known}" but is written with {named}'
    )


@pytest.mark.rule("H1")
def test_a_contract_that_reads_no_submission_names_the_way_out_that_is_left() -> None:
    for job_id, way in (
        ("", "hand the job id over with --job-id"),
        ("job-1", "leave the answer (--from-response) out"),
    ):
        given = Submitted(provider="acme", account="a", job_id=job_id)
        with pytest.raises(Refused) as caught:
            from_response(contract(), given, answer(201, {"id": "job-1"}), "https://api.example.test/")
        assert caught.value.code == "no_submission_reading"
        assert way in str(caught.value)


@pytest.mark.rule("S8", "E7")
def test_an_answer_that_is_read_again_leaves_the_memory_of_the_new_contract_and_counts_no_second_poll() -> None:
    seen, before = look(contract(), answer(200, {"status": "running", "n": 7}))
    head = HEAD.replace("evidence", "remember = { n = 'body.n' }\nevidence")
    changed = contract('[progress]\nvalue = "body.n"\n', head=head)
    found = reread(changed, operation(before), seen.envelope or b"", moment(9_000))
    again, after = found.observation, found.memory
    assert again.verdict is Verdict.WAITING
    assert (before.polls, after.polls, before.in_a_row, after.in_a_row) == (1, 1, 1, 1)
    assert (after.values, after.progress) == ({"n": 7}, "7")
    found = reread(changed, operation(before), b"", moment())
    unread, same = found.observation, found.memory
    assert not found.whole
    assert (unread.detail, same) == (StopDetail.UNREADABLE, before)
