"""The documentation against the code: every value, field, key and code stands there, every command shown is one."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import click
import pytest

from pollconsole import crash, documents
from pollconsole.cli import errors
from pollconsole.cli.root import root
from pollconsole.cli.wait import EXIT, NO_CORE, STILL_WAITING
from pollcore.adapters.config import parse_config
from pollcore.chain.findings import Verdict
from pollcore.escalation.table import ALWAYS, PERMITTED, WHILE_HELD
from pollcore.facts import AuditEvent, Choice, ChoiceKind, EventName, Refused, StopReason, names
from pollcore.grants import open_question
from pollcore.ports import CredentialInfo
from pollcore.submission.limits import amounts
from pollcore.views import choice_view, event_view, operation_view, question_view
from tests.console.cli.conftest import NOW, make_operation

REPOSITORY = Path(__file__).parents[1]
REFERENCE = (REPOSITORY / "docs" / "reference.md").read_text("utf-8")
#: Pages with command lines as they are typed. design.md and promises.md show grammars.
WITH_COMMANDS = (
    *("README.md", "SECURITY.md", "CHANGELOG.md"),
    *("docs/agents.md", "docs/contracts.md", "docs/operators.md", "docs/reference.md"),
)
SECTIONS: dict[str, type[StrEnum]] = {
    "Status": names.Status,
    "Stop reasons": names.StopReason,
    "Stop details": names.StopDetail,
    "Delay sources": names.DelaySource,
    "Verdicts": names.Verdict,
    "Fault kinds": names.FaultKind,
    "Events": names.EventName,
    "Choices": names.ChoiceKind,
    "Credential modes": names.CredentialMode,
}


def section(title: str) -> str:
    """The text under one heading of the reference, to the next heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table rows, without the ruler."""
    lines = [line for line in section(title).splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def ticked(text: str) -> set[str]:
    """What stands between ticks, outside fenced blocks."""
    return set(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


# --- values and fields ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("title", SECTIONS)
def test_every_value_has_one_row_with_a_meaning_and_no_other_value_has(title: str) -> None:
    first = [row[0].strip("`") for row in rows(title) if row[0].startswith("`")]
    assert sorted(first) == sorted(value.value for value in SECTIONS[title])
    assert all(len(row) >= 3 and row[1] and row[2] for row in rows(title))


@pytest.mark.rule("E2")
def test_the_choices_told_of_a_reason_are_the_permitted_ones() -> None:
    known = {kind.value for kind in ChoiceKind}
    told = {row[0].strip("`"): ticked(row[2]) & known for row in rows("Stop reasons") if row[0].startswith("`")}
    permitted = {reason.value: {kind.value for kind in kinds} for reason, kinds in PERMITTED.items()}
    permitted[StopReason.OPERATOR_REQUEST.value] |= {kind.value for kind in WHILE_HELD}
    assert told == permitted
    assert all(kind.value in section("Stop reasons") for kind in ALWAYS)


def test_actions_stand_in_the_reference() -> None:
    values = {value.value for kind in (names.ActionKind, names.ActionOutcome) for value in kind}
    assert values <= ticked(section("Actions"))


@pytest.mark.rule("E1")
def test_every_reason_is_told_to_the_operator() -> None:
    told = ticked((REPOSITORY / "docs" / "operators.md").read_text("utf-8"))
    assert {reason.value for reason in StopReason} <= told


def test_every_json_field_stands_in_the_reference() -> None:
    operation = make_operation()
    question = open_question(
        operation, new_id="esc-1", reason=StopReason.EXTENSION_REQUESTED, detail=None, now=NOW, minutes=15, checks=4
    )
    choice = Choice(key="1", kind=ChoiceKind.CLOSE, label="close")
    info = CredentialInfo(name="c", kind="bearer", origins=("https://a.example",), created_at=NOW.wall)
    assert set(operation_view(operation)) | {"existed", "warnings"} <= ticked(section("JSON: one operation"))
    questions = set(question_view(question)) | {"card"} | set(choice_view(choice))
    assert questions <= ticked(section("JSON: questions"))
    event = AuditEvent(at=NOW.wall, event=EventName.POLLED)
    assert set(event_view(event)) <= ticked(section("JSON: events"))
    assert set(documents.credential(info)) <= ticked(section("JSON: providers and credentials"))


def test_every_exit_code_stands_in_the_reference_and_no_other() -> None:
    told = {row[0] for row in rows("Exit codes") if row[0].isdigit()}
    waiting = {*EXIT.values(), STILL_WAITING, NO_CORE}
    verifying = {verdict.exit_code for verdict in Verdict}
    every = {0, errors.OUR_FAULT, errors.REFUSED, errors.DOUBTFUL, errors.INTERRUPTED, errors.READER_LEFT}
    assert {int(code) for code in told} == waiting | verifying | every
    for codes, name in ((waiting, "`wait`"), (verifying, "`audit verify`")):
        for row in rows("Exit codes"):
            assert name in row[1] or row[0] == "0" or int_or_none(row[0]) not in codes


def int_or_none(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def test_what_is_said_of_an_excess_and_of_a_pause_stands_in_the_reference() -> None:
    assert {*amounts("deadline", 2, 1), *amounts("max_status_requests", 2, 1)} <= ticked(section("Exit codes"))
    fields = {"provider", "account", "until", "asked_until", "already_paused", "waiting_operations"}
    assert fields <= ticked(section("JSON: a pause"))


# --- settings ---------------------------------------------------------------------------------------------------------


def known_keys(text: str) -> set[str]:
    """The keys that the reader of `config.toml` knows where *text* has a wrong one, as its error names them."""
    with pytest.raises(Refused) as refused:
        parse_config(text)
    listed = str(refused.value).partition("known are ")[2]
    assert listed, refused.value
    return set(listed.split(", "))


def test_every_key_of_the_settings_stands_in_the_reference() -> None:
    tables = known_keys("[zzzz]\n")
    inside = {name: known_keys(f"[{name}]\n0 = 1\n") for name in tables - {"providers"}}
    inside["providers"] = known_keys('[providers.a]\ncontract = "a"\n0 = 1\n')
    inside["caps"] = known_keys('[providers.a]\ncontract = "a"\ncaps = { 0 = 1 }\n')
    told = section("config.toml")
    missing = [f"{table}.{key}" for table, keys in inside.items() for key in keys if not re.search(rf"\b{key}\b", told)]
    assert missing == []
    assert [name for name in tables if f"[{name}" not in told] == []


def test_the_settings_of_the_reference_are_accepted() -> None:
    found = re.search(r"```toml\n(.*?)```", section("config.toml"), re.DOTALL)
    assert found is not None
    config = parse_config(found[1])
    assert config.providers["jobs"].concurrency == 4
    with_backend = parse_config(found[1].replace("# [keyring]", "[keyring]").replace("# backend", "backend"))
    assert with_backend.keyring_backend == "package.module.Class"


def test_the_place_of_traces_stands_in_the_reference() -> None:
    assert f"`{crash.FOLDER}/*.txt`" in section("Files of the home")


# --- commands ---------------------------------------------------------------------------------------------------------


def shell_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines of code that hold commands, and whether each is whole: fenced, indented, or between ticks (not whole)."""
    plain: list[str] = []
    fence: str | None = None
    for line in text.replace("\\\n", " ").splitlines():
        opened = re.match(r"\s*```(\w*)\s*$", line)
        if opened:
            fence = opened[1] if fence is None else None
        elif fence is not None:
            if fence in ("sh", "bash", "console", "yaml", ""):
                yield line, True
        elif line.startswith("    "):
            yield line, True
        else:
            plain.append(line)
    # a span between ticks may run over the end of a line
    for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", "\n".join(plain)):
        yield " ".join(span.split()), False


def commands(text: str) -> Iterator[tuple[list[str], bool]]:
    """The arguments of every call of `pollconsole` in *text*."""
    for line, whole in shell_lines(text):
        for found in re.finditer(r"(?:^|[\s(;&|])pollconsole(?=\s|$|\))", line):
            lexer = shlex.shlex(line[found.end() :], posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words: list[str] = []
            try:
                for word in lexer:
                    if re.fullmatch(r"[();<>|&]+", word):
                        break
                    words.append(word)
            except ValueError:  # a sentence with an apostrophe after the command
                continue
            yield words, whole


def check_command(words: list[str], whole: bool) -> None:
    """Raises click.UsageError where *words* name no command of ours, or one with other options or arguments."""
    command: click.Command = root
    rest = list(words)
    path = ["pollconsole"]
    while True:
        context = click.Context(command, info_name=path[-1])
        values, rest, _ = command.make_parser(context).parse_args(args=rest)
        if not isinstance(command, click.Group):
            break
        if not rest:
            return
        found = command.get_command(context, rest[0])
        if found is None:
            raise click.UsageError(f"{' '.join(path)}: no command {rest[0]!r}")
        path.append(rest.pop(0))
        command = found
    if rest:
        raise click.UsageError(f"{' '.join(path)}: too many arguments: {rest}")
    for param in command.params:
        value = values.get(param.name or "")
        missing = value is None or value == () or not isinstance(value, str | list | tuple | bool | int)
        if whole and param.required and missing:
            raise click.UsageError(f"{' '.join(path)}: {param.name} is missing")
        if isinstance(param.type, click.Choice) and isinstance(value, str) and not value.isupper():
            param.type.convert(value, param, context)


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_every_command_shown_is_a_command_with_these_options(name: str) -> None:
    found = list(commands((REPOSITORY / name).read_text("utf-8")))
    wrong = []
    for words, whole in found:
        try:
            check_command(words, whole)
        except click.UsageError as error:
            wrong.append(f"pollconsole {' '.join(words)}: {error.format_message()}")
    assert found
    assert wrong == []


@pytest.mark.parametrize(
    "line",
    [
        "pollconsole sbmit --job-id 7",
        "pollconsole wait OP --timout 10m",
        "pollconsole wait",
        "pollconsole show OP OTHER",
        "pollconsole credential mode NAME sometimes",
        "x=$(pollconsole show --wrong OP)",
    ],
)
def test_the_check_of_commands_finds_what_is_wrong(line: str) -> None:
    (found,) = commands(f"```sh\n{line}\n```\n")
    with pytest.raises(click.UsageError):
        check_command(*found)


def test_the_table_of_fixed_commands_holds_every_command_and_no_other() -> None:
    design = (REPOSITORY / "docs" / "design.md").read_text("utf-8")
    table = re.findall(r"^\| (`pollconsole.*?) \| .* \|$", design, re.MULTILINE)
    parts = [part.removeprefix("pollconsole") for row in table for part in re.findall(r"`([^`]+)`", row)]
    named = {part.split()[0] for part in parts if re.match(r" ?[a-z]", part)}
    context = click.Context(root)
    found = {name: root.get_command(context, name) for name in root.list_commands(context)}
    inside = {name for one in found.values() if isinstance(one, click.Group) for name in one.list_commands(context)}
    assert sorted(set(found) - named) == []
    assert sorted(named - set(found) - inside) == []


@pytest.mark.rule("G5")
def test_the_page_for_agents_names_no_way_to_grant() -> None:
    text = (REPOSITORY / "docs" / "agents.md").read_text("utf-8")
    called = {words[0] for words, _ in commands(text) if words}
    raising = {"extend", "approve", "grant", "resubmit", "cancel", "adopt", "accept"}
    assert called
    assert called & raising == set()
    assert raising & set(root.list_commands(click.Context(root))) == set()


@pytest.mark.parametrize("name", ["docs/agents.md", "docs/reference.md"])
def test_json_shown_is_json(name: str) -> None:
    text = re.sub(r"(?m)^  (?=\S|  )", "", (REPOSITORY / name).read_text("utf-8"))
    for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL):
        decoder, rest = json.JSONDecoder(), block.strip()
        assert rest
        while rest:  # `jq -c` prints several documents
            _, end = decoder.raw_decode(rest)
            rest = rest[end:].lstrip()


# --- links ------------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


PAGES = sorted(page for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])


@pytest.mark.parametrize("page", [str(page.relative_to(REPOSITORY)) for page in PAGES])
def test_links_inside_the_repository_resolve(page: str) -> None:
    path = REPOSITORY / page
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        aimed = path if not file else (path.parent / file).resolve()
        if not aimed.exists() or (anchor and aimed.suffix == ".md" and anchor not in anchors(aimed)):
            broken.append(target)
    assert broken == []
