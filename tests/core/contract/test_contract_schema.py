"""The schema that editors get says what the parser does: same keys, same kinds, same words, same refusals."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from tests.core.contract.needs import completed, examples
from tests.core.contract.test_contract_docs import EVERYTHING, example
from tests.core.contract.test_contract_mistakes import BATCH, STEP_THEN

from pollcore.adapters.contract_files import ContractFiles
from pollcore.contract import build_answers, build_states, json_schema, parse
from pollcore.contract.keys import KINDS, pattern_of
from pollcore.contract.schema import REQUIRED
from pollcore.contract.tables import Table
from pollcore.facts import ContractError

SCHEMA = json_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
READ_AS = {
    "text": {"text", "expr"},
    "flag": {"flag"},
    "whole": {"whole"},
    "number": {"number"},
    "span": {"span"},
    "texts": {"texts", "exprs"},
    "array": {"texts", "exprs", "statuses", "states", "origins", "tables"},
    "pairs": {"pairs"},
    "table": {"table", "exprs_by_name", "tables_by_name"},
    "tables": {"tables"},
}
"""Reader of a Table -> the kinds that it can read."""


def faults(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))]


def whole() -> str:
    return example() + EVERYTHING.replace('url = "https://api.acme.example/next"\n', STEP_THEN)


def test_the_schema_is_a_schema_and_takes_every_contract_that_ships() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    files = ContractFiles(None)
    assert files.names()
    for name in files.names():
        assert faults(files.text(name)[0]) == [], name


def test_the_schema_takes_every_example_of_the_documentation() -> None:
    assert faults(whole()) == faults(BATCH) == []
    for one in examples():
        assert faults(completed(one.toml).snapshot_text) == [], one.title


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("schema = 1", "schema = 2"),
        ('kind = "bearer"', 'kind = "beerer"'),
        ('value = "body.status"', 'valeu = "body.status"'),
        ("checks = 4", 'checks = "4"'),
        ('method = "POST"', 'method = "post"'),
        ('base_delay = "5s"', 'base_delay = "5 seconds"'),
        ("timeout_statuses", "timeout"),
        ('unit = "seconds"', 'unit = "sec"'),
        ("deadline_basis", "basis"),
        ('waiting = ["queued", "running"]', "waiting = [{ vlaue = 1 }]"),
        ("status = [404]", "status = [401]"),
        ("[urls.admin]", "[urls.admin]\nurl = 1"),
        ('observation = "read_only"', 'observation = "read_only"\nbatch = true'),
    ],
)
def test_what_the_parser_refuses_the_schema_refuses_too(old: str, new: str) -> None:
    text = whole().replace("wait = 5\n", "wait = 5\ntimeout_statuses = [408]\n", 1)
    assert faults(text) == []
    bad = text.replace(old, new, 1)
    assert bad != text
    with pytest.raises(ContractError):
        parse(bad, "acme.toml")
    assert faults(bad) != []


def test_the_kinds_and_words_of_the_schema_are_those_that_the_parser_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    read: dict[tuple[tuple[str, ...], str], set[str]] = {}
    words: dict[tuple[tuple[str, ...], str], tuple[str, ...]] = {}

    def watched(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def get(self: Table, key: str, *args: Any, **more: Any) -> Any:
            place = (pattern_of(self.path), key)
            if name == "choice":
                words[place] = tuple(args[0])
            else:
                read.setdefault(place, set()).add(name)
            return plain(self, key, *args, **more)

        return get

    for name in (*READ_AS, "choice"):
        monkeypatch.setattr(Table, name, watched(name, getattr(Table, name)))
    parse(whole(), "acme.toml")
    parse(BATCH, "acme.toml")
    for (path, key), names in read.items():
        kind = KINDS[path].get(key) if path in KINDS else None
        if kind is not None and "|" not in kind and kind not in ("any", "scalar"):
            assert any(kind in READ_AS[name] for name in names), (path, key, kind, names)
    for (path, key), allowed in words.items():
        said = tuple(KINDS[path][key].split("|"))
        assert set(allowed) <= set(said), (path, key)
        assert set(allowed) == set(said) or key == "method", (path, key)
    assert len(read) > 150
    assert len(words) > 20


def test_words_that_the_parser_checks_by_itself_are_the_schemas_too() -> None:
    def said(*path: str) -> set[str]:
        return set(KINDS[path[:-1]][path[-1]].split("|"))

    assert said("rules", "*", "category") == set(build_states._CATEGORIES)
    assert said("success", "requires", "*", "format") == set(build_answers.FORMATS)
    assert said("success", "requires", "*", "type") == set(build_answers.TYPES)
    for path in (("rules", "*"), ("states", "*", "*")):
        assert said(*path, "qualifier") == set(build_states.QUALIFIERS)
    assert said("success", "qualifiers", "*", "name") == set(build_states.QUALIFIERS)


@pytest.mark.slow
def test_what_the_schema_requires_the_parser_requires() -> None:
    for path, keys in REQUIRED.items():
        for key in keys:
            document = tomllib.loads(BATCH if "batch" in path else whole())
            tables = list(_tables(document, path))
            assert tables, path
            for table in tables:
                table.pop(key, None)
            with pytest.raises(ContractError):
                parse(_toml(document), "acme.toml")
            assert list(VALIDATOR.iter_errors(document)), (path, key)


def _tables(document: Any, path: tuple[str, ...]) -> Any:
    if not path:
        yield document
    elif isinstance(document, list):
        for one in document:
            yield from _tables(one, path[1:] if path[0] == "*" else path)
    elif isinstance(document, dict) and path[0] in document:
        yield from _tables(document[path[0]], path[1:])


def _toml(value: dict[str, Any]) -> str:
    return "".join(f"{key} = {_value(inner)}\n" for key, inner in value.items())


def _value(value: Any) -> str:
    import json

    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    return json.dumps(value)
