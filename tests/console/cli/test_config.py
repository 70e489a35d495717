"""`config.toml`: what it gives, and errors that name file, line, key and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollconsole import bridge
from pollcore.adapters.config import Config, Instance, UsePolicy, line_of, load_config, parse_config
from pollcore.adapters.contract_files import ContractFiles
from pollcore.adapters.instances import Providers
from pollcore.facts import HOUR, Limits, Refused

WHOLE = """
[providers.acme]
contract = "acme"
base_url = "https://acme.example/api"
credential = "acme-key"
account = "team 4"
caps = { concurrency = 4, per_minute = 60 }
urls = { admin = "https://admin.acme.example" }

[providers.lab]
contract = "aria2"
base_url = "http://lab.example:6800"
allow_http = true
concurrency = 2

[ceilings]
deadline = "2h"
max_status_requests = 100

[policy]
open_operations = 50
requests_per_hour = 1000

[audit]
key_file = "reading.key"

[operator]
name = "on-call 2"

[keyring]
backend = "keyrings.alt.file.PlaintextKeyring"

[network]
ca_file = "/etc/ssl/own.pem"
proxy = "http://proxy.example:3128"
"""


@pytest.mark.rule("B1", "T8", "H2")
def test_every_setting_is_read() -> None:
    config = parse_config(WHOLE, Path("/home/x"))
    assert config.providers["acme"] == Instance(
        contract="acme", base_url="https://acme.example/api", credential="acme-key", account="team 4",
        concurrency=4, per_minute=60, urls={"admin": "https://admin.acme.example"},
    )  # fmt: skip
    assert config.providers["lab"].allow_http
    assert config.providers["lab"].concurrency == 2
    assert config.ceilings == Limits(deadline=2 * HOUR, max_status_requests=100)
    assert config.policy == UsePolicy(50, 1000)
    assert config.audit_key_file == Path("/home/x/reading.key")
    assert (config.operator_name, config.keyring_backend) == ("on-call 2", "keyrings.alt.file.PlaintextKeyring")
    assert (config.network.ca_file, config.network.proxy) == (Path("/etc/ssl/own.pem"), "http://proxy.example:3128")


def test_no_file_is_the_empty_configuration(tmp_path: Path) -> None:
    assert load_config(tmp_path) == Config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[ceiling]\n", r"config.toml:1: ceiling: unknown key; did you mean ceilings\?"),
        ('\n[providers.acme]\ncontrct = "a"\n', r"config.toml:3: providers.acme.contrct: unknown .* contract\?"),
        ("[providers.acme]\n", r"config.toml:1: providers.acme: contract is missing"),
        ('[providers."a b"]\ncontract="x"\n', r"config.toml:1: providers.a b: a provider's name"),
        ('[providers.a]\ncontract="x"\nbase_url="http://far.example"\n', r"config.toml:3: .*base_url.* allow_http"),
        ('[providers.a]\ncontract="x"\nbase_url="https://u:pw@far.example"\n', r"config.toml:3: .*secrets go into"),
        ('[providers.a]\ncontract="x"\nbase_url="https://far.example?a=1"\n', "query or fragment"),
        ('[providers.a]\ncontract="x"\nbase_url="https://[::1"\n', "not a URL"),
        ('[providers.a]\ncontract="x"\nbase_url="https://h:99999"\n', "not a URL"),
        ('[providers.a]\ncontract="x"\nallow_http="yes"\n', "true or false"),
        ('[providers.a]\ncontract="x"\nconcurrency=2\ncaps={concurrency=3}\n', "keep one of them"),
        (
            '[providers.a]\ncontract="x"\n[providers.a.urls]\nadmin="http://far.example"\n',
            r"config.toml:4: .* allow_http",
        ),
        ('[providers.a]\ncontract="x"\nurls={admin=3}\n', "must be a text"),
        ('[providers.a]\ncontract="x"\nurls=3\n', "must be a table"),
        ('[providers.a]\ncontract="x"\ncaps={conc=3}\n', r"config.toml:3: providers.a.caps.conc: unknown key"),
        ("[providers]\na = 3\n", r"config.toml:2: providers.a: must be a table"),
        ("[ceilings]\nmax_status_requests = 0\n", r"config.toml:2: .* 1 to 100000"),
        ("[ceilings]\nmax_status_requests = true\n", "whole number"),
        ("[ceilings]\nmax_status_requests = 1.5\n", "whole number"),
        ("[ceilings]\nmax_transport_failures = 1001\n", "1 to 1000"),
        ('[ceilings]\ndeadline = "400d"\n', "366 days"),
        ("[ceilings]\ndeadline = nan\n", "span of time"),
        ('[keyring]\nbackend = "import os; os"\n', "dotted name"),
        ('[network]\nproxy = "http://u:p@proxy.example"\n', "secrets go into"),
        ('[operator]\nname = "a\\u001b[31m"\n', "control characters"),
        ("a = \n", r"config.toml:1: not TOML"),
        ("a = 1\na = 2\n", r"config.toml:2: not TOML"),
        ("a = " + "9" * 5_000 + "\n", "not TOML"),
        ("a = " + "[" * 100_000 + "\n", "not TOML"),
    ],
)
@pytest.mark.rule("B1", "K1")
def test_a_wrong_setting_is_refused_with_its_line_and_key(text: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        parse_config(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            'contract = "exmple-jobs"\n',
            r"config.toml:4: providers.lab.contract: no contract 'exmple-jobs' \(did you mean",
        ),
        ('contract = "example"\n', r'config.toml:4: providers.lab.contract: .*did you mean "example-jobs"\?'),
        ('contract = "qqq"\n', r"config.toml:4: providers.lab.contract: .*'pollconsole provider list' shows all"),
        ('contract = "example-jobs"\n', r'config.toml:3: providers.lab.base_url: is missing; .*base_url = "https://'),
        (
            'contract = "restate"\nbase_url = "https://a.example"\nurls = { admn = "https://b.example" }\n',
            r"config.toml:6: providers.lab.urls.admn: .*\(known: admin\) \(contract restate\)",
        ),
    ],
)
@pytest.mark.rule("H2")
def test_an_instance_that_fits_no_contract_is_told_with_its_line_key_and_near_names(text: str, says: str) -> None:
    config = parse_config(f'[operator]\nname = "ana"\n[providers.lab]\n{text}')
    with pytest.raises(Refused, match=says) as refused:
        Providers(ContractFiles(None), config).find("lab")
    assert refused.value.details["key"].startswith("providers.lab.")  # type: ignore[attr-defined]


def test_what_the_settings_name_outside_themselves_is_told_with_its_line(tmp_path: Path) -> None:
    text = '[network]\nca_file = "/nowhere.pem"\n\n[log]\nfile = "no/such.log"\n[audit]\nkey_file = "k"\n'
    (tmp_path / "config.toml").write_text(text)
    roots, log = bridge.settings_faults(bridge.config(tmp_path))
    assert roots.startswith("config.toml:2: network.ca_file: no readable certificates in /nowhere.pem; ")
    assert log.startswith(f"config.toml:5: log.file: {tmp_path}/no/such.log cannot be written; ")
    assert bridge.key_file_named(tmp_path) == "config.toml:7: audit.key_file names the file; "


def test_http_to_loopback_needs_no_leave() -> None:
    for host in ("127.0.0.1:8080", "localhost", "[::1]:9"):
        config = parse_config(f'[providers.a]\ncontract = "x"\nbase_url = "http://{host}"\n')
        assert config.providers["a"].base_url == f"http://{host}"


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(Refused, match=r"config.toml:1: not UTF-8 at byte 0; save it as UTF-8"):
        load_config(tmp_path)


def test_a_key_is_found_behind_dots_and_quotes() -> None:
    assert line_of('a.b = 1\n["x y".z]\n"k" = 2\n', ("x y", "z", "k")) == 3
    assert line_of("a.b = 1\n", ("a", "b")) == 1
    assert line_of("[a]\n[a.c]\n[a.b]\nd = 1\n", ("a", "b", "e")) == 3
    assert line_of("[x]\ny = 1\n", ("a", "b")) is None


@given(st.text(max_size=200))
def test_any_text_is_a_configuration_or_a_refusal(text: str) -> None:
    try:
        told = parse_config(text)
    except Refused as error:
        told = str(error)
    assert isinstance(told, Config) or told.startswith("config.toml")
