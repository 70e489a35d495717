"""A contract file that is begun reads whatever its author said, and puts no state where its author did not."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.contract import check, parse
from pollcore.contract.beginning import LISTS, Begun, quoted, text
from pollcore.contract.proposing import Field, proposal, seen_at
from pollcore.facts import ContractError

STATES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)


@pytest.mark.rule("B1", "S2")
def test_a_file_begun_with_a_name_alone_reads_and_lists_no_state() -> None:
    contract = parse(text(Begun(name="acme")), "acme.toml")
    assert contract.table.shown == ()
    assert (contract.observation, contract.tried, contract.asks_first_use) == (None, False, True)
    told = {one.key for one in check(contract) if one.level == "warning"}
    assert {"states", "success", "limits.deadline_basis", "sources[1]", "base_url"} <= told
    assert contract.cancel is None


@pytest.mark.rule("S2")
@given(
    states=st.dictionaries(st.sampled_from(sorted(LISTS)), st.lists(STATES, max_size=2), max_size=3),
    seen=st.lists(STATES, max_size=3, unique=True),
    source=STATES,
)
def test_whatever_was_said_and_seen_the_lists_hold_what_was_said_alone(
    states: dict[str, list[str]], seen: list[str], source: str
) -> None:
    once: dict[str, list[str]] = {}
    for name, values in states.items():
        once[name] = [v for v in dict.fromkeys(values) if not any(v in other for other in once.values())]
    made = text(Begun(name="acme", states=once, seen=tuple(seen), source=source, also=(Field("body.a", seen),)))
    listed = tomllib.loads(made)["states"]
    assert {name: found for name, found in listed.items() if found} == {k: v for k, v in once.items() if v}
    assert tomllib.loads(made)["sources"] == [source]
    parse(made, "acme.toml")


@pytest.mark.rule("G4")
@given(STATES)
def test_a_quoted_text_is_one_line_and_reads_back(value: str) -> None:
    written = quoted(value)
    assert written.isprintable()
    assert tomllib.loads(f"x = {written}")["x"] == value


@pytest.mark.rule("S2")
def test_states_are_read_where_the_author_says_and_a_number_that_was_seen_is_written_as_one() -> None:
    scopes = [{"http": {"status": 202}, "body": body} for body in ({"code": 7}, {"code": 8}, {"code": 7}, None, {})]
    assert seen_at("body.code", scopes) == (7, 8)
    assert seen_at("http.status", scopes) == (202,)
    assert seen_at("length(body.code)", scopes) == ()
    assert seen_at("body.[", scopes) == ()
    made = text(Begun(name="acme", state="body.code", states={"waiting": ["7", "9"]}, seen=(7, 8)))
    assert tomllib.loads(made)["states"]["waiting"] == [7, "9"]
    assert "# seen in a saved answer: 8." in made
    assert "answer: 7." not in made
    by_status = text(Begun(name="acme", state="http.status", states={"succeeded": ["200"]}))
    assert tomllib.loads(by_status)["states"]["succeeded"] == [200]


@pytest.mark.rule("E5", "G4")
def test_what_a_new_file_guesses_of_header_and_cancel_is_marked_and_follows_the_path() -> None:
    made = text(Begun(name="acme", credential="header", path="/v2/x/{job_id}?view=full"))
    assert 'names = ["X-Api-Key"]   # TODO:' in made
    assert '# url = "{base_url}/v2/x/{job_id}/cancel"   # TODO:' in made
    assert 'X-Key"]\n' in text(Begun(name="acme", credential="header", credential_names=("X-Key",)))


UNCOMMENTED = (
    ('# observation = "read_only"', 'observation = "read_only"'),
    ("# evidence = ", "evidence = "),
    ('tested_live = "no"', 'tested_live = "v2, today"'),
    ("# [cancel]", "[cancel]"),
    ('# method = "POST"', 'method = "POST"'),
    ("# url = ", "url = "),
    ("# consequences = ", "consequences = "),
    ("# confirm = ", "confirm = "),
)


@pytest.mark.rule("X7", "E5")
@pytest.mark.parametrize("mark", ["TODO: ", ""])
def test_what_a_new_file_holds_is_evidence_of_nothing_with_or_without_its_mark(mark: str) -> None:
    made = text(Begun(name="acme", base_url="https://api.acme.test"))
    for old, new in UNCOMMENTED:
        assert made.count(old) == 1
        made = made.replace(old, new)
    made = made.replace("TODO: ", mark)
    contract = parse(made, "acme.toml")
    assert contract.asks_first_use
    assert (contract.evidence, contract.sources) == (None, ())
    assert contract.policy.cancel is None
    told = {one.key: one.message for one in check(contract) if one.level == "warning"}
    for key in ("status.evidence", "cancel.consequences", "limits.deadline_basis", "sources[1]"):
        assert told[key].startswith("placeholder left: "), key
    assert "asked at the first use" in told["status.evidence"]
    assert "none is offered" in told["cancel.consequences"]


@pytest.mark.rule("X7", "E5")
def test_what_the_author_wrote_in_their_place_counts() -> None:
    made = text(Begun(name="acme", base_url="https://api.acme.test"))
    for old, new in UNCOMMENTED:
        made = made.replace(old, new)
    made = made.replace("TODO: where it says so, when", "docs.acme.test/jobs, read today, when")
    made = made.replace("TODO: what becomes", "The job ends. What becomes")
    contract = parse(made, "acme.toml")
    assert not contract.asks_first_use
    assert contract.policy.cancel is not None
    assert contract.policy.cancel.consequences == "The job ends. What becomes of the job and of what it wrote"


@pytest.mark.rule("B1", "H1")
def test_a_parameter_in_the_path_is_declared_once_and_left_open_until_its_author_says_what_it_is() -> None:
    path = "/v1/{params.index}/{params.name|path}/tasks/{job_id}?index={params.index}"
    made = text(Begun(name="acme", path=path))
    contract = parse(made, "acme.toml")
    assert [(one.name, one.required) for one in contract.params] == [("index", True), ("name", True)]
    told = {one.key for one in check(contract) if one.level == "warning"}
    assert {"params.index.about", "params.name.about"} <= told
    filled = parse(made.replace("TODO: what a submission names here", "which task"), "acme.toml")
    assert not any(one.key.startswith("params.") for one in check(filled))


@pytest.mark.rule("S2")
def test_a_state_towards_a_cancelled_end_has_its_list_in_a_new_file() -> None:
    made = text(Begun(name="acme", states={"cancelling": ["ABORTING"], "cancelled": ["ABORTED"]}))
    assert tomllib.loads(made)["states"]["cancelling"] == ["ABORTING"]
    parse(made, "acme.toml")


@pytest.mark.rule("B1")
def test_a_parameter_that_nobody_declared_is_told_with_the_table_that_declares_it() -> None:
    made = text(Begun(name="acme", path="/v1/{params.index}/{job_id}")).replace("[params.index]", "[params.indices]")
    with pytest.raises(ContractError, match=r"has no value here.*\[params\.index\] declares a parameter"):
        parse(made, "acme.toml")


@pytest.mark.parametrize("kind", ["bearer", "basic", "header", "query", "none"])
def test_every_credential_kind_that_is_offered_reads(kind: str) -> None:
    begun = Begun(
        name="acme", credential=kind, base_url="https://api.acme.test/v2", path="jobs/{job_id}", method="POST"
    )
    contract = parse(text(begun), "acme.toml")
    assert (contract.credential_kind, contract.steps[0].request.method) == (kind, "POST")
    assert contract.steps[0].request.url is not None
    assert contract.steps[0].request.url.source == "{base_url}/jobs/{job_id}"


BODY: Any = {
    "job": {"id": "j-7", "phase": "copy", "status": "in_progress"},
    "id": 455,
    "status_url": "https://x.test/?sig=1",
    "items": [{"status": "no"}],
    "x-state": {"state": "odd one"},
    "state": True,
}


@pytest.mark.rule("S2")
def test_paths_are_proposed_by_the_names_of_fields_and_lists_are_left_alone() -> None:
    found = proposal([BODY])
    assert [one.path for one in found.state_paths] == ["body.job.status", 'body."x-state".state', "body.job.phase"]
    assert [one.path for one in found.job_id_paths] == ["body.id", "body.job.id"]
    assert found.states == ("in_progress",)


@pytest.mark.rule("S2", "S6")
def test_the_id_that_its_author_names_goes_before_every_name() -> None:
    found = proposal([BODY], "j-7")
    assert found.job_id_paths[0].path == "body.job.id"
    assert proposal([{"ref": {"n": 455}}], "455").job_id_paths[0].path == "body.ref.n"


@pytest.mark.rule("S2")
def test_states_of_several_answers_are_told_once_and_in_order() -> None:
    bodies = [{"status": state} for state in ("queued", "running", "queued", "done")]
    assert proposal(bodies).states == ("queued", "running", "done")


@pytest.mark.rule("S2")
@pytest.mark.parametrize(
    "body", [None, [], "x", 3, {}, {"status": {"a": {"b": {"c": {"d": {"e": "x"}}}}}}, {"status": 4}]
)
def test_an_answer_without_such_fields_proposes_nothing(body: Any) -> None:
    assert proposal([body]).state_paths == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_a_proposal_s_paths_are_expressions_that_read_what_they_name(body: Any) -> None:
    from pollcore.contract.expressions import compile_expression

    found = proposal([{"status": "s", "inner": body}])
    for one in (*found.state_paths, *found.job_id_paths):
        assert compile_expression(one.path).read({"body": {"status": "s", "inner": body}}) == one.value
