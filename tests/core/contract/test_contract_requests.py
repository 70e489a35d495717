"""Requests out of contracts: encoding, origins, slots, fingerprints, instances."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import HEAD, LIMITS, STATE, STATES, contract, operation

from pollcore.adapters.contract_files import ContractFiles, read_text
from pollcore.contract import check, from_snapshot, instance, normalise_origin, parse, requests
from pollcore.contract.checks import budget_warnings, fitting_requests
from pollcore.facts import ContractError, Memory, NotFound, Refused, ResultPointer, Schedule, Slot, Submitted

BASED = HEAD.replace('origins = ["https://api.example.test"]', "requires_base_url = true").replace(
    '"https://api.example.test/v1', '"{base_url}/v1'
)


def refusal(call: object, *args: object, **named: object) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*args, **named)  # type: ignore[operator]
    return caught.value


@pytest.mark.rule("K3", "S7")
@given(st.text(min_size=1, max_size=40))
def test_whatever_a_job_is_called_it_stays_one_path_segment(job_id: str) -> None:
    made = contract()
    try:
        request = requests.status_request(made, operation(job_id=job_id), "cred")
    except Refused as error:
        refused = error.code
    else:
        refused = ""
    if refused:
        assert refused == "bad_parameter"
        return
    head, _, segment = request.url.rpartition("/")
    assert head == "https://api.example.test/v1/jobs"
    assert not set(segment) & set("/?#\\ \r\n")
    assert segment not in (".", "..")


@pytest.mark.rule("K3")
def test_slashes_stay_on_request_alone_and_typed_bodies_keep_their_types() -> None:
    more = """
[params.name]
[params.count]
[params.deep]
[result]
method = "POST"
url = "https://api.example.test/{params.name|path}/x?n={params.name}"
query = { c = "{params.count}" }
body = { n = "{params.count}", text = "n={params.count}", deep = "{params.deep}", query = "node { id }", b = "{{x}" }
"""
    given_params = {"name": "projects/a b/jobs", "count": 3, "deep": {"b": [1, None]}}
    request = requests.result_request(contract(more), operation(params=given_params), None)
    assert request.url == "https://api.example.test/projects/a%20b/jobs/x?n=projects%2Fa%20b%2Fjobs&c=3"
    assert json.loads(request.body or b"") == {
        "n": 3,
        "text": "n=3",
        "deep": {"b": [1, None]},
        "query": "node { id }",
        "b": "{x}",
    }
    assert ("Content-Type", "application/json") in request.headers
    for bad in ("../secret", "a/../b", "."):
        wrong = operation(params={**given_params, "name": bad})
        assert refusal(requests.result_request, contract(more), wrong, None).code == "bad_parameter"
    missing = operation(params={"count": 1})
    told = refusal(requests.result_request, contract(more), missing, None)
    assert told.code == "address_missing"
    assert "--param name=" in str(told)


@pytest.mark.rule("K3", "H2")
def test_provider_urls_go_verbatim_to_the_allowed_origins_and_bare_ones_get_no_credential() -> None:
    head = """
schema = 1
name = "acme"
origins = [
    "https://api.example.test",
    "https://*.blob.example.net",
    { origin = "https://mon.example.org", credential = false },
]
[credential]
kind = "header"
names = ["X-Key"]
[status]
provider_url = "require"
"""
    made = contract(head=head)
    with_key = requests.status_request(made, operation(status_url="https://api.example.test/op/1?v=2&x=%2F"), "c")
    assert with_key.url == "https://api.example.test/op/1?v=2&x=%2F"
    assert with_key.slot == Slot("c", "header", ("X-Key",))
    bare = requests.status_request(made, operation(status_url="https://mon.example.org/m"), "c")
    assert bare.slot is None
    wild = requests.status_request(made, operation(status_url="https://eu.blob.example.net/m"), "c")
    assert "https://eu.blob.example.net:443" in wild.origins
    for url in (
        "https://evil.test/",
        "http://api.example.test/",
        "https://api.example.test:8443/",
        "https://blob.example.net/",
    ):
        assert refusal(requests.status_request, made, operation(status_url=url), "c").code == "foreign_origin"
    for url in (
        "https://api.example.test@evil.test/",
        "file:///etc/passwd",
        "https://api.example.test\\@evil.test/",
        "//api.example.test/",
    ):
        assert refusal(requests.status_request, made, operation(status_url=url), "c").code == "bad_url"
    assert refusal(requests.status_request, made, operation(), "c").code == "address_missing"
    moved = operation(Memory(next_url="https://evil.test/next"))
    assert refusal(requests.status_request, made, moved, "c").code == "foreign_origin"


@pytest.mark.rule("K3")
def test_a_handed_over_url_is_not_asked_where_the_contract_has_its_own_template() -> None:
    request = requests.status_request(contract(), operation(status_url="https://api.example.test/delete"), "c")
    assert request.url == "https://api.example.test/v1/jobs/job-1"


@pytest.mark.rule("K1")
def test_no_request_carries_a_secret_only_a_slot() -> None:
    request = requests.status_request(contract(), operation(), "cred-1")
    assert request.slot == Slot("cred-1", "bearer", ())
    assert request.headers == (("Accept", "application/json"),)
    assert requests.status_request(contract(), operation(), None).slot is None


@pytest.mark.rule("S7", "E6")
def test_a_fingerprint_leaves_the_key_out_and_sorts_keys() -> None:
    more = """
[params.input]
[submission]
method = "POST"
url = "https://api.example.test/v1/jobs"
body = { z = 1, key = "{key}", input = "{params.input}" }
idempotency = { max_length = 12 }
"""
    made = contract(more)
    submitted = Submitted(provider="acme", account="a", job_id="j", params={"input": {"b": 1, "a": 2}})
    plain = b'POST\nhttps://api.example.test/v1/jobs\n{"input":{"a":2,"b":1},"z":1}'
    assert requests.fingerprint(made, submitted) == hashlib.sha256(plain).hexdigest()
    again = requests.submit_request(made, submitted, "key-7")
    assert json.loads(again.body or b"")["key"] == "key-7"
    assert refusal(requests.submit_request, made, submitted, "k" * 13).code == "bad_parameter"
    assert requests.fingerprint(made, Submitted(provider="acme", account="a", job_id="j")) is None
    assert requests.fingerprint(contract(), submitted) is None
    assert refusal(requests.submit_request, contract(), submitted, "k").code == "not_documented"


@pytest.mark.rule("S7", "S8")
def test_the_digest_covers_text_and_instance_and_a_snapshot_comes_back() -> None:
    text = BASED + STATE + STATES + LIMITS
    plain = parse(text, "acme.toml")
    one = instance(plain, base_url="https://a.example.test/api/")
    two = instance(plain, base_url="https://b.example.test/api")
    comment = instance(parse(text + "# x\n", "acme.toml"), base_url="https://a.example.test/api")
    assert len({plain.digest, one.digest, two.digest, comment.digest}) == 4
    assert one.digest == instance(plain, base_url="https://a.example.test/api").digest
    back = from_snapshot(one.snapshot)
    assert (back.digest, back.origins, back.base_url) == (one.digest, one.origins, "https://a.example.test/api")
    assert requests.status_request(back, operation(), None).url == "https://a.example.test/api/v1/jobs/job-1"
    import msgspec

    forged = msgspec.structs.replace(one.snapshot, text=text + "# y\n")
    with pytest.raises(ContractError, match="does not match its digest"):
        from_snapshot(forged)


@pytest.mark.rule("H2")
def test_http_is_for_loopback_or_an_instance_that_says_so() -> None:
    plain = parse(BASED + STATE + STATES + LIMITS, "acme.toml")
    assert plain.requires_base_url
    assert refusal(instance, plain).code == "instance"
    assert "allow_http" in str(refusal(instance, plain, base_url="http://10.0.0.7:4200"))
    assert instance(plain, base_url="http://127.0.0.1:8080").origins == ("http://127.0.0.1:8080",)
    open_one = instance(plain, base_url="http://10.0.0.7:4200", allow_http=True)
    assert requests.status_request(open_one, operation(), None).allow_http is True
    assert refusal(instance, plain, base_url="https://h/x?y=1").code == "instance"
    assert refusal(instance, plain, base_url="https://u:p@h/").code == "instance"


@pytest.mark.rule("E5")
def test_a_cancel_on_an_address_that_the_instance_does_not_know_is_not_offered() -> None:
    restate = ContractFiles(None).load("restate")
    without = instance(restate, base_url="http://127.0.0.1:8080")
    assert without.policy.cancel is None
    urls = {"admin": "http://127.0.0.1:9070"}
    with_admin = instance(restate, base_url="http://127.0.0.1:8080", urls=urls)
    assert with_admin.policy.cancel is not None
    assert requests.cancel_request(with_admin, operation(job_id="inv_1"), None).url == (
        "http://127.0.0.1:9070/invocations/inv_1/cancel"
    )
    assert from_snapshot(with_admin.snapshot).digest == with_admin.digest
    assert (
        refusal(instance, restate, base_url="http://127.0.0.1:1", urls={"admn": "http://127.0.0.1:2"}).code
        == "instance"
    )


@pytest.mark.rule("T10")
def test_a_long_poll_has_its_parameter_and_a_client_that_waits_longer() -> None:
    made = contract('[long_poll]\nparameter = "wait"\nwait = "50s"\nmax = "1m"\nunit = "span"\n')
    request = requests.status_request(made, operation(), None)
    assert request.url.endswith("/job-1?wait=50s")
    assert request.total_ms == 60_000
    with pytest.raises(ContractError, match="above the provider's maximum"):
        contract('[long_poll]\nparameter = "wait"\nwait = "2m"\nmax = "1m"\n')


def test_the_result_comes_from_the_fields_of_the_success() -> None:
    made = contract('[result]\nurl = "{result.url}"\ncredential = false\n')
    done = operation()
    assert refusal(requests.result_request, made, done, "c").code == "address_missing"
    import msgspec

    done = msgspec.structs.replace(done, result=ResultPointer({"url": "https://api.example.test/r/1"}))
    request = requests.result_request(made, done, "c")
    assert (request.url, request.slot) == ("https://api.example.test/r/1", None)


def test_parameters_are_declared_bounded_and_demanded() -> None:
    made = contract('[params.region]\nrequired = true\npattern = "[a-z0-9-]{1,20}"\n')
    assert requests.check_params(made, {"region": "eu-1"}) == {"region": "eu-1"}
    assert refusal(requests.check_params, made, {}).code == "address_missing"
    assert refusal(requests.check_params, made, {"region": "EU 1"}).code == "bad_parameter"
    assert 'did you mean "region"' in str(refusal(requests.check_params, made, {"regon": "x", "region": "a"}))


@given(st.text(max_size=60))
def test_an_origin_is_normalised_or_refused(text: str) -> None:
    for url in (text, f"https://{text}", f"http://h/{text}"):
        try:
            origin, code = normalise_origin(url), None
        except Refused as error:
            origin, code = "", error.code
        assert code in (None, "bad_url")
        if code is None:
            assert normalise_origin(origin) == origin
            assert origin.isascii()
            assert "@" not in origin


@pytest.mark.rule("B1", "E5", "S4", "T4")
def test_findings_name_hidden_rules_missing_consequences_caps_and_budgets() -> None:
    more = """
[[rules]]
status = [404, 500]
category = "failed"
[[rules]]
status = [404]
when = "body.x"
category = "expired"
[[rules]]
when = "http.status == `470`"
category = "failed"
[cancel]
method = "POST"
url = "https://api.example.test/c"
confirm = { minutes = 1, checks = 1 }
[[hints]]
path = "body.w"
unit = "seconds"
[limits.default]
deadline = "10m"
max_status_requests = 1000
"""
    told = [str(one) for one in check(contract(more))]
    for part in (
        "rules[2]: is never reached: rules[1]",
        "asks http.status, but without status",
        "cancel: without consequences",
        "hints[1]: body.w has no cap",
        "1000 requests need at least",
        "success: requires nothing",
        "max_transport_failures is not given",
    ):
        assert any(part in text for text in told), (part, told)
    assert budget_warnings(Schedule(), 40 * 60_000, 25) == []
    assert "in the first tenth" in budget_warnings(Schedule(), 366 * 86_400_000, 12)[0]
    assert fitting_requests(Schedule(base_delay=1_000, max_delay=1_000), 10_000, 0.5) == 20


def test_the_users_folder_wins_and_misses_name_near_contracts(tmp_path: Path) -> None:
    shipped = ContractFiles(None).text("aria2")[0]
    (tmp_path / "aria2.toml").write_text(shipped.replace('title = "aria2 (JSON-RPC)"', 'title = "mine"'))
    (tmp_path / "other.toml").write_text("schema = 1\n")
    (tmp_path / "big.toml").write_text("#" * 300_000)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    files = ContractFiles(tmp_path)
    assert files.load("aria2").title == "mine"
    rows = {one.name: one for one in files.listing()}
    assert rows["aria2"].shadows
    assert rows["aria2"].error is None
    assert rows["prefect"].source == "shipped"
    assert "other.toml" in (rows["other"].error or "")
    assert "larger than 256 KiB" in (rows["big"].error or "")
    assert "not UTF-8 at byte 2" in (rows["latin"].error or "")
    with pytest.raises(NotFound, match='did you mean "prefect"'):
        files.load("prefct")
    with pytest.raises(NotFound):
        files.load("../aria2")
    (tmp_path / "renamed.toml").write_text(shipped)
    with pytest.raises(ContractError, match="is not the file's name"):
        files.load("renamed")
    with pytest.raises(ContractError, match="cannot be read"):
        read_text(tmp_path / "none.toml")


@pytest.mark.rule("E9")
def test_the_providers_own_page_is_named_only_when_every_part_of_it_is_known() -> None:
    head = HEAD.replace(
        'name = "acme"', 'name = "acme"\nconsole_url = "https://app.example.test/{params.team}/{job_id}"'
    )
    made = contract("[params.team]\n", head=head)
    known = operation(params={"team": "a/b"}, job_id="j 1").submitted
    assert requests.console_url(made, known) == "https://app.example.test/a%2Fb/j%201"
    assert requests.console_url(made, operation().submitted) is None
    assert requests.console_url(contract(), known) is None
