"""`simulate`: figures, document, chart and refusals from the command line, without home, store, secret or network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.console.cli.conftest import Outcome

from pollconsole import bars

Call = Callable[..., Outcome]
ROOT = Path(__file__).parents[3]
ASKED = ("simulate", "--provider", "mux-asset", "--operations", "200", "--duration", "2h", "--job-time", "10m/2")


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that does not exist."""
    home = tmp_path / "none"
    monkeypatch.setenv("POLLCONSOLE_HOME", str(home))
    return home


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_it_tells_figures_and_draws_the_chart_that_reports_draw(call: Call, nowhere: Path) -> None:
    told, found = call(*ASKED), call(*ASKED, "--json").json
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == ("mux-asset: 200 operations evenly over 2 h; jobs of 10 min in the middle, spread 2; seed 1")
    value = found["planned"]["requests"]["value"]
    assert re.search(rf"^requests +{value:,} ", told.out, re.MULTILINE)
    counts = [part["requests"] for part in found["by_time"]]
    assert sum(counts) == value
    drawn = lines[lines.index("requests by 5 min, from the beginning") + 1 :][: len(counts)]
    assert [line.split()[-1] for line in drawn] == [
        line.split()[-1] for line in bars.bars([("x", count) for count in counts])
    ]
    assert not nowhere.exists()
    assert "only contracts that ship with pollconsole are known" in told.err


def test_the_same_seed_gives_the_same_document_and_another_seed_another(call: Call) -> None:
    one = call(*ASKED, "--json").out
    assert call(*ASKED, "--json", "--seed", "1").out == one
    assert call(*ASKED, "--json", "--seed", "2").out != one


def test_every_option_reaches_the_simulation(call: Call) -> None:
    more = (
        *("--arrivals", "burst", "--failure-rate", "2%", "--rate-limit-per-minute", "500", "--no-retry-after"),
        *("--guidance", "1m", "--outage", "5m+10m", "--deadline", "1h", "--max-requests", "40"),
        *("--compare-interval", "1m", "--seed", "9"),
    )
    found = call(*ASKED, *more, "--json").json
    assert found["asked"] == {
        "operations": 200,
        "duration_ms": 7_200_000,
        "arrivals": "burst",
        "job_time": {"shape": "lognormal", "median_ms": 600_000, "spread": 2.0},
        "failure_rate": 0.02,
        "rate_limit_per_minute": 500,
        "retry_after": False,
        "guidance_ms": 60_000,
        "outage": {"start_ms": 300_000, "span_ms": 600_000},
        "compare_interval_ms": 60_000,
        "seed": 9,
    }
    assert (found["limits"]["deadline_ms"], found["limits"]["max_status_requests"]) == (3_600_000, 40)
    assert found["shared"]


def test_a_contract_file_and_a_configured_provider_can_be_played(call: Call, real_home: Path) -> None:
    asked = ("--operations", "20", "--duration", "1h", "--job-time", "5m..20m", "--json")
    text = (ROOT / "core/pollcore/contracts/mux-asset.toml").read_text().replace('"2m"', '"30s"')
    (real_home / "mine.toml").write_text(text)
    found = call("simulate", "--provider", str(real_home / "mine.toml"), *asked).json
    assert found["schedule"]["max_delay_ms"] == 30_000
    assert found["asked"]["job_time"] == {"shape": "uniform", "low_ms": 300_000, "high_ms": 1_200_000}
    lab = call("simulate", "--provider", "lab", *asked, "--home", str(real_home)).json
    assert (lab["provider"], lab["contract"]) == ("lab", "example-jobs")
    assert not (real_home / "pollconsole.db").exists()


def test_a_cap_of_a_configured_provider_holds(call: Call, real_home: Path) -> None:
    asked = ("simulate", "--operations", "50", "--duration", "1m", "--arrivals", "burst", "--job-time", "5m", "--json")
    home = ("--home", str(real_home), "--provider", "lab")
    free = call(*asked, *home).json
    config = real_home / "config.toml"
    config.write_text(config.read_text().replace('base_url = "', 'per_minute = 20\nbase_url = "'))
    capped = call(*asked, *home).json
    assert free["planned"]["per_minute"]["value"] > 100
    assert capped["planned"]["per_minute"]["value"] <= 40  # windows of the cap slide, the told minutes do not
    assert capped["planned"]["requests"]["value"] < free["planned"]["requests"]["value"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--operations", "1000001"), "--operations: 1,000,001 is not in 1 to 1,000,000"),
        (("--duration", "367d"), "at most 366 days"),
        (("--duration", "-1h"), "is negative"),
        (("--job-time", "20m..5m"), "write the lower first"),
        (("--job-time", "10m/"), "the spread '' is not a number"),
        (("--job-time", "10m/1e999"), "a spread of inf is not in 1 to 100"),
        (("--job-time", "\u0661\u0660m"), "not a span of time"),
        (("--failure-rate", "nan"), "--failure-rate: nan is not in 0 to 0.99"),
        (("--failure-rate", "x"), "the share 'x' is not a number"),
        (("--outage", "5m"), "write START+SPAN"),
        (("--guidance", "0"), "not a span of time"),
        (("--rate-limit-per-minute", "2000000"), "is not in 1 to 1,000,000"),
        (("--deadline", "25h"), "limits.max.deadline of the contract"),
        (("--provider", "mux-aset"), "mux-asset"),
    ],
)
def test_hostile_arguments_are_refused_with_the_limit(more: tuple[str, str], said: str, call: Call) -> None:
    arguments = list(ASKED)
    if more[0] in arguments:
        arguments[arguments.index(more[0]) + 1] = more[1]
    else:
        arguments += more
    told = call(*arguments)
    assert told.code == 2
    assert said in told.err
    assert told.out == ""


def test_a_scaled_run_says_so_and_names_its_intervals(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from pollcore import whatif

    plain = whatif.Parameters
    monkeypatch.setattr(whatif, "Parameters", lambda **asked: plain(**asked, sample=50))
    told = call(*ASKED, "--failure-rate", "0.01")
    assert "scaled from 50 operations; in brackets 99% intervals" in told.out
    assert "shared by all operations" in told.out
    assert re.search(r"^requests +[0-9,]+ \([0-9,]+ to [0-9,]+\)", told.out, re.MULTILINE)


def test_every_field_stands_in_the_reference(call: Call) -> None:
    text = (ROOT / "docs/reference.md").read_text("utf-8").partition("## JSON: a simulation\n")[2].partition("\n## ")[0]
    found: set[str] = set()
    for more in (("--outage", "5m+1h"), ("--job-time", "5m..20m", "--deadline", "15m"), ("--job-time", "5m")):
        arguments = list(ASKED[:7]) + list(more if "--job-time" in more else (*ASKED[7:], *more))
        found |= set(keys(call(*arguments, "--json").json))
    ticked = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert found - ticked == set()


def test_the_worked_example_of_the_documents_is_what_the_program_says(call: Call) -> None:
    text = (ROOT / "docs/contracts.md").read_text("utf-8").partition("### What would this schedule cost\n")[2]
    shown = re.search(r"```sh\npollconsole (.*?)\n```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    told = call(*shown[1].split()).out
    assert shown[2].strip("\n") in told
