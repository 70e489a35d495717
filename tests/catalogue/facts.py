"""The documented facts of job APIs, and what each says an answer must read as.

Job: provider-facts.json, further-facts.json and extra/ID.json -> Api. Must not know: contracts, how they read. Nothing
here is taken from a contract, so that a contract can be wrong. What is marked unconfirmed grants nothing: such a state
must stop as unknown.
"""

from __future__ import annotations

import fnmatch
import functools
import json
from pathlib import Path
from typing import Any, Final

import jmespath
import msgspec

from pollcore.facts import Verdict

HERE: Final = Path(__file__).parent
FACTS: Final = HERE / "provider-facts.json"
FURTHER: Final = HERE / "further-facts.json"
"""APIs that came after them, in the same form."""
EXTRA: Final = HERE / "extra"
OTHER_NAMES: Final = {"prefect_run": "prefect"}
"""Contracts that are not called as their API's id with hyphens."""
RESEARCHED: Final = 68
"""How many APIs provider-facts.json holds."""
STOPS: Final = frozenset({Verdict.UNKNOWN, Verdict.INTEGRATION})
"""What an answer that nobody documented must read as."""


class State(msgspec.Struct, frozen=True):
    """One documented value. *qualifiers*: what the facts say of it beside its category."""

    value: Any
    verdict: Verdict
    pattern: bool = False
    unconfirmed: bool = False
    derived: bool = False
    qualifiers: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.value if isinstance(self.value, str) else json.dumps(self.value)


class Api(msgspec.Struct, frozen=True):
    """One API. *extra*: what the facts alone cannot say (keys: __init__.py of this folder)."""

    id: str
    raw: dict[str, Any]
    states: tuple[State, ...]
    extra: dict[str, Any]

    @property
    def contract(self) -> str:
        return OTHER_NAMES.get(self.id, self.id.replace("_", "-"))

    @property
    def folds(self) -> bool:
        return bool(self.raw["state"].get("fold_case"))

    def derive(self, body: Any) -> Any:
        """The state value that the documented expression reads from *body*. Raises what JMESPath raises."""
        return _compiled(self.raw["state"]["expr"]).search(body)

    def documented(self, value: Any) -> State | None:
        """The state of that exact type and spelling; patterns after listed values; None: nobody documented it."""
        for state in self.states:
            if not state.pattern and same(state.value, value, fold=self.folds):
                return state
        for state in self.states:
            if state.pattern and isinstance(value, str) and fnmatch.fnmatchcase(value, state.value):
                return state
        return None

    def expected(self, value: Any) -> Verdict:
        """The verdict that the facts ask for. Deviations, each with its reason, stand in extra."""
        found = self.documented(value)
        if found is None or found.unconfirmed:
            return Verdict.UNKNOWN
        return self.deviation(found) or found.verdict

    def deviation(self, state: State) -> Verdict | None:
        """Where the contract reads a value otherwise than the facts' category, and why that is more right."""
        found = self.extra.get("deviations", {}).get(state.label)
        return Verdict(found["verdict"]) if found else None

    def answers(self) -> dict[str, dict[str, Any]]:
        """Whole answers written by hand, by state label."""
        found: dict[str, dict[str, Any]] = self.extra.get("answers", {})
        return found


def same(left: Any, right: Any, *, fold: bool = False) -> bool:
    """Equal in JSON's eyes: 1 is not true, "1" is not 1."""
    if isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold() if fold else left == right
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@functools.cache
def apis() -> tuple[Api, ...]:
    """All of them, in the files' order."""
    return tuple(_api(raw) for file in (FACTS, FURTHER) for raw in json.loads(file.read_text("utf-8")))


@functools.cache
def shipped() -> tuple[Api, ...]:
    """Those that have a contract so far."""
    folder = HERE.parents[1] / "core" / "pollcore" / "contracts"
    return tuple(api for api in apis() if (folder / f"{api.contract}.toml").is_file())


def _api(raw: dict[str, Any]) -> Api:
    path = EXTRA / f"{raw['id']}.json"
    extra = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return Api(raw["id"], raw, tuple(_state(one) for one in raw["states"]), extra)


def _state(one: dict[str, Any]) -> State:
    qualifiers = tuple(name for name in ("partial", "did_not_run") if one.get(name))
    return State(
        one["value"],
        Verdict(one["category"]),
        pattern=bool(one.get("pattern")),
        unconfirmed=bool(one.get("unconfirmed")),
        derived=bool(one.get("derived")),
        qualifiers=qualifiers,
    )


@functools.cache
def _compiled(text: str) -> Any:
    return jmespath.compile(text)


def confirmed(value: Any) -> Any:
    """The fact, or None where it is marked unconfirmed."""
    if isinstance(value, dict) and value.get("unconfirmed"):
        return None
    return value


def plain(value: Any) -> Any:
    """The fact, confirmed or not."""
    return value["value"] if isinstance(value, dict) and "value" in value else value
