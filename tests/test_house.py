"""What the house itself promises: its layout, its packaging, its walls, and the guards that hold for every test."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import tokenize
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = frozenset(
    (
        *("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "ARCHITECTURE.md", "SECURITY.md", "check"),
        *("core", "console", "themes", "screenshots", "tests", "docs"),
    )
)
#: Floors that may not read a clock; the linter forbids `time`, but `datetime` is theirs for dates.
ACTING_FLOORS = ("assembly", "controller", "actions", "adapters")
#: What only one kind of file in core/pollcore/adapters may import.
OWNED_BY = {"httpx": "transport", "sqlite3": "store", "sqlite_utils": "store", "pysqlite3": "store"}
#: Rooms of the console that must start without a screen: command line, guards at start, bridge.
SCREENLESS = ("cli", "safe", "environment", "bridge")
LIMIT_S = 120


@functools.cache
def tree() -> tuple[str, ...]:
    """Every file of the project, relative to its root, by git or by what git would ignore."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=LIMIT_S).stdout
        return tuple(sorted(f for f in listed.decode().split("\0") if f and (ROOT / f).is_file()))
    ignored = {"__pycache__", "dist", ".git", ".venv"} | {line.strip("/") for line in _gitignore()}
    files = (f for f in ROOT.rglob("*") if f.is_file() and not ignored.intersection(f.relative_to(ROOT).parts))
    return tuple(sorted(str(f.relative_to(ROOT)) for f in files))


def _gitignore() -> list[str]:
    return (ROOT / ".gitignore").read_text("utf-8").split()


def python_files(*tops: str) -> list[str]:
    return [f for f in tree() if f.endswith(".py") and f.split("/")[0] in tops]


@functools.cache
def text_of(file: str) -> str:
    """Several tests look at the same files."""
    return (ROOT / file).read_text("utf-8")


@functools.cache
def parsed(file: str) -> ast.Module:
    return ast.parse(text_of(file), file)


def _begins_with_words(file: str) -> bool:
    """The first statement, if there is one, is a text: read up to it, not parsed whole."""
    with (ROOT / file).open("rb") as lines:
        beside = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER}
        first = next((token for token in tokenize.tokenize(lines.readline) if token.type not in beside), None)
    return first is None or first.type == tokenize.STRING


def imported(file: str) -> Iterator[str]:
    """The top-level names of every module that *file* imports, also inside functions."""
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_every_rule_mark_names_a_rule() -> None:
    promises = set((ROOT / "tests/promises.txt").read_text("utf-8").split())
    marked = set()
    for file in python_files("tests"):
        if file != "tests/test_house.py":  # holds a wrong one on purpose
            for arguments in re.findall(r"mark\.rule\(([^)]*)\)", (ROOT / file).read_text("utf-8")):
                marked |= set(re.findall(r"[\"']([^\"']+)[\"']", arguments))
    assert len(promises) == 84
    assert marked - promises == set()


def test_the_version_is_the_same_everywhere() -> None:
    import pollconsole
    import pollcore

    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert {pollcore.__version__, pollconsole.__version__} == {version}


def test_the_top_level_holds_nothing_else() -> None:
    found = {file.split("/")[0] for file in tree()}
    assert {name for name in found if not name.startswith(".")} - TOP_LEVEL == set()


def test_every_python_file_states_its_job() -> None:
    silent = []
    for file in python_files("core", "console", "tests"):
        if not _begins_with_words(file):
            silent.append(file)
    assert silent == []


def test_the_tree_speaks_of_its_own_files_alone() -> None:
    # in pieces, so that this file does not speak of them
    places = re.compile("|".join(re.escape("/" + p) for p in ("work/main", "work/shared", "tmp/w/", "root/")))
    names = {Path(file).name for file in tree()}
    strange = []
    for file in tree():
        if not file.endswith((".py", ".md", ".toml", ".sh", ".tcss", ".json", ".txt", "check", "run")):
            continue
        text = (ROOT / file).read_text("utf-8")
        strange += [f"{file}: {place}" for place in set(places.findall(text))]
        if not file.endswith((".json", ".toml")):  # those cite documents of providers
            documents = set(re.findall(r"(?<![\w./:-])[\w-]+\.md\b", text))
            strange += [f"{file}: {document}" for document in sorted(documents - names)]
    assert strange == []


def test_every_relative_link_of_the_documents_leads_to_a_file() -> None:
    dead = []
    for file in (f for f in tree() if f.endswith(".md")):
        for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / file).read_text("utf-8")):
            if "://" not in target and not (ROOT / file).parent.joinpath(target).exists():
                dead.append(f"{file}: {target}")
    assert dead == []


@pytest.mark.parametrize("script", ["check", ".ci/run"])
def test_the_scripts_are_sound_bash(script: str) -> None:
    parsed = subprocess.run(["bash", "-n", str(ROOT / script)], capture_output=True, text=True, timeout=LIMIT_S)
    assert (parsed.returncode, parsed.stderr) == (0, "")
    assert os.access(ROOT / script, os.X_OK)


def test_each_outside_library_is_touched_by_its_own_adapter() -> None:
    strange = []
    for file in python_files("core", "console"):
        named = [library for library in OWNED_BY if library in text_of(file)]
        if not named:  # parsing all files would take seconds
            continue
        for library in set(imported(file)).intersection(named):
            # adapters/store.py, adapters/store_x.py or adapters/store/x.py
            if not file.startswith(f"core/pollcore/adapters/{OWNED_BY[library]}"):
                strange.append(f"{file} imports {library}")
    assert strange == []


def test_the_pure_floors_ask_no_clock() -> None:
    asking = []
    for file in python_files("core"):
        if Path(file).with_suffix("").parts[2] in ACTING_FLOORS:
            continue
        if not re.search(r"\.(now|utcnow|today)\b", text_of(file)):
            continue
        for node in ast.walk(parsed(file)):
            if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today"):
                owner = ast.unparse(node.value)
                if owner.rpartition(".")[2] in ("datetime", "date"):
                    asking.append(f"{file}:{node.lineno} {owner}.{node.attr}")
    assert asking == []


def test_what_needs_no_screen_imports_no_textual() -> None:
    rooms = tuple(f"console/pollconsole/{room}" for room in SCREENLESS)
    files = [
        f
        for f in python_files("console")
        if f.removesuffix(".py") in rooms or f.startswith(tuple(r + "/" for r in rooms))
    ]
    assert files, "neither command line nor bridge found: has a room been renamed?"
    assert [f for f in files if "textual" in text_of(f) and "textual" in imported(f)] == []


@pytest.mark.slow
def test_the_wheel_holds_themes_and_shipped_contracts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"pollconsole/{f}" for f in tree() if f.startswith("themes/")}
    shipped = {f.partition("/")[2] for f in tree() if f.startswith(("core/pollcore/", "console/pollconsole/"))}
    contracts = {f for f in shipped if f.endswith(".toml")}
    assert wanted, "no theme in themes/"
    assert contracts, "no contract in the packages"
    assert (wanted | shipped) - inside == set()
    assert not [f for f in inside if f.startswith("tests/")]


@pytest.fixture
def small_house(tmp_path: Path) -> Path:
    """A folder with our conftest and its support, for tests that must fail there."""
    tests = tmp_path / "tests"
    tests.mkdir()
    for name in ("__init__.py", "conftest.py", "promises.txt"):
        shutil.copy(ROOT / "tests" / name, tests / name)
    shutil.copytree(ROOT / "tests/support", tests / "support", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  rule(*ids)\n  server(*names)\n")
    return tmp_path


def run_in(house: Path, source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (house / "tests/test_it.py").write_text(source)
    unset = ("CI", "POLLCONSOLE_TEST_SERVERS", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
    env = {
        **{k: v for k, v in os.environ.items() if k not in unset},
        **environment,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=no", "tests/test_it.py"]
    return subprocess.run(command, cwd=house, env=env, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.mark.slow
def test_a_mark_that_names_no_rule_or_server_ends_the_run(small_house: Path) -> None:
    source = "import pytest\n@pytest.mark.rule('Z' '99')\ndef test_a():\n    assert 1\n"
    run = run_in(small_house, source + "@pytest.mark.server('nobody')\ndef test_b():\n    assert 1\n")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "rule('Z99',): not in tests/promises.txt" in run.stderr
    assert "server('nobody',): known are" in run.stderr


GUARDED = """
import contextlib, os, socket, threading, pytest

def reach(*address):
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(address)

def test_beyond(): reach("192.0.2.1", 9)
def test_thread():
    t = threading.Thread(target=reach, args=("192.0.2.1", 9)); t.start(); t.join()
def test_resolve():
    with contextlib.suppress(OSError): socket.getaddrinfo("pollconsole-guard.net", 80)
@pytest.mark.parametrize("name", ["pollconsole.db", "pollconsole.db-wal", "pollconsole.db-shm"])
def test_store(tmp_path, name):
    with contextlib.suppress(OSError): os.close(os.open(tmp_path / name, os.O_CREAT | os.O_RDWR))
def test_inside(tmp_path):
    reach("127.0.0.1", 9)
    reach("127.1.2.3", 9)
    (tmp_path / "other.db").write_text("x")
    with pytest.raises(socket.gaierror): socket.getaddrinfo("provider.invalid", 80)
"""


@pytest.mark.slow
def test_reaching_out_and_opening_the_store_fail_a_test_that_hides_it(small_house: Path) -> None:
    out = run_in(small_house, GUARDED).stdout
    for name in (
        "test_beyond",
        "test_thread",
        "test_resolve",
        "test_store[pollconsole.db-wal]",
        "test_store[pollconsole.db]",
    ):
        assert f"FAILED tests/test_it.py::{name}" in out
    assert "PASSED tests/test_it.py::test_inside" in out
    assert "6 failed, 1 passed" in out


NEEDS_SERVER = """
import pytest
@pytest.mark.server("aria2")
def test_it(job_server):
    assert job_server("aria2").url == "http://127.0.0.1:1"
"""


@pytest.mark.slow
def test_a_missing_server_skips_at_home_and_fails_in_ci(small_house: Path) -> None:
    at_home = run_in(small_house, NEEDS_SERVER)
    in_ci = run_in(small_house, NEEDS_SERVER, CI="true")
    announced = run_in(small_house, NEEDS_SERVER, CI="true", POLLCONSOLE_TEST_SERVERS='{"aria2": "http://127.0.0.1:1"}')
    assert (at_home.returncode, in_ci.returncode, announced.returncode) == (0, 1, 0)
    assert "no aria2 server" in at_home.stdout
    assert "1 passed" in announced.stdout
