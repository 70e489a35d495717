"""What holds for every test: marks that name rules, guards over the process, real servers, effort of property tests.

It must not know any part of the product: a fixture of one floor belongs into the conftest of that floor's folder.
"""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import guards, servers

IN_CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
PROMISES = frozenset((Path(__file__).parent / "promises.txt").read_text("utf-8").split())
ROOT = Path(__file__).parent
#: Real terminals, real processes, whole lives over HTTP, every value of every shipped contract: outside the fast loop.
SLOW_PLACES = (
    "actions/",
    "audit/test_archive",
    "audit/test_damage.py",
    "audit/test_evidence.py",
    "audit/test_followed.py",
    "audit/test_home.py",
    "audit/test_report.py",
    "audit/test_restored.py",
    "audit/test_show.py",
    "adapters/store/test_failing.py",
    "adapters/store/test_processes.py",
    "adapters/test_keyring",
    "adapters/test_token_exchange.py",
    "adapters/test_transport_",
    "cases/",
    "catalogue/test_answers.py",
    "catalogue/test_complete.py",
    "catalogue/test_guards.py",
    "catalogue/test_requests.py",
    "catalogue/test_states.py",
    "console/cli/test_gate_questions.py",
    "console/cli/test_keeping.py",
    "console/cli/test_own_keys.py",
    "console/cli/test_plain.py",
    "console/cli/test_process.py",
    "console/cli/test_provider_author.py",
    "console/cli/test_read_only.py",
    "console/cli/test_real.py",
    "console/cli/test_run.py",
    "console/cli/test_simulate.py",
    "console/cli/test_streams.py",
    "console/demo/",
    "console/guard/test_pilot.py",
    "console/guard/test_pty.py",
    "console/screens/",
    "console/screenshots/",
    "console/themes/test_theme_files.py",
    "console/themes/test_theme_screen",
    "controller/",
    "core/reading/test_reading_moto.py",
    "core/whatif/",
    "live/",
    "outside/test_notices_pure.py",
    "processes/",
    "trust/test_every_grant.py",
)
#: In them, but quick: pure functions.
FAST_PLACES = ("console/screens/test_frame_diff.py", "console/screens/test_screen_pure.py")
#: A test that forgets to name its home fails on this path; it never touches the developer's own data.
NO_HOME = "/dev/null/a-test-must-name-its-home"

#: Two slow cores make no test wrong: no deadline, no complaint about slow generation.
_PATIENT = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
# of `./check fast`; the whole run tries more
settings.register_profile("quick", _PATIENT, max_examples=5, database=None)
settings.register_profile("fast", _PATIENT, max_examples=25)
settings.register_profile("ci", _PATIENT, max_examples=200)

guards.install()
gc.disable()  # until all is imported
_started = pytest.StashKey[Sequence["subprocess.Popen[bytes]"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--servers",
        default="",
        metavar="NAMES",
        help="start these real job servers for the run: 'all' or a list like aria2,restate (installed on first use)",
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if IN_CI else "fast"))
    os.environ["POLLCONSOLE_HOME"] = NO_HOME
    asked = str(config.getoption("--servers"))
    # with xdist only the controlling process starts them; its workers inherit the environment
    if asked and not hasattr(config, "workerinput"):
        names = servers.JOB_SERVERS if asked == "all" else tuple(asked.split(","))
        unknown = sorted(set(names) - set(servers.JOB_SERVERS))
        if unknown:
            raise pytest.UsageError(f"--servers: unknown {unknown}; known are {', '.join(servers.JOB_SERVERS)}")
        cache = getattr(config, "cache", None)  # none with -p no:cacheprovider
        folder = Path(cache.mkdir("servers")) if cache else Path(".pytest_cache/servers").resolve()
        config.stash[_started] = servers.start(names, folder)
        os.environ[servers.VARIABLE] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _started in config.stash:
        servers.stop(config.stash[_started])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In the fast loop slow places are not even imported; what they hold would be left out one by one."""
    if not str(config.option.markexpr).startswith("not slow") or not collection_path.is_relative_to(ROOT):
        return None
    return True if is_slow(collection_path) else None


def is_slow(path: Path) -> bool:
    place = path.relative_to(ROOT).as_posix()
    return place.startswith(SLOW_PLACES) and not place.startswith(FAST_PLACES)


def pytest_collection_finish() -> None:
    """What is imported by now lives to the end: no collection of garbage looks through it again."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse the run if a mark proves nothing: a rule that does not exist, or a server that nobody can start."""
    wrong = []
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")
        for mark in item.iter_markers("rule"):
            if not mark.args or not PROMISES.issuperset(mark.args):
                wrong.append(f"{item.nodeid}: rule{mark.args}: not in tests/promises.txt")
        for mark in item.iter_markers("server"):
            if not mark.args or not set(servers.JOB_SERVERS + servers.TOOLS).issuperset(mark.args):
                wrong.append(f"{item.nodeid}: server{mark.args}: known are {servers.JOB_SERVERS + servers.TOOLS}")
    if wrong:
        raise pytest.UsageError("\n".join(wrong))


def _guarded() -> Generator[None, object, object]:
    """Fail the phase in which a guard was breached, also by a thread and also if the code under test hid the error."""
    outcome = yield
    breaches = guards.take()
    if breaches:
        pytest.fail("guard of the tests:\n" + "\n".join(breaches), pytrace=False)
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    for mark in item.iter_markers("server"):
        for name in mark.args:
            reason = servers.why_missing(name)
            if reason and IN_CI:
                pytest.fail(f"{reason} (in CI this test must run)", pytrace=False)
            elif reason:
                pytest.skip(reason)
    return (yield from _guarded())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _guarded())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _guarded())


@pytest.fixture
def job_server(request: pytest.FixtureRequest) -> Callable[[str], servers.JobServer]:
    """Give `job_server("aria2")`: the running server's url and facts. The test is marked `server("aria2")`."""
    marked = {name for mark in request.node.iter_markers("server") for name in mark.args}

    def get(name: str) -> servers.JobServer:
        if name not in marked:
            raise pytest.UsageError(f"{request.node.nodeid}: mark it with @pytest.mark.server({name!r})")
        found = servers.find(name)
        assert found, servers.why_missing(name)
        return found

    return get
