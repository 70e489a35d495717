"""The list of seeded bugs, and what they are made with.

Job: register one small context manager a bug, with the number of seeds that it may live. Must not know: any bug.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest import mock

Mutant = Callable[[], contextlib.AbstractContextManager[Any]]
MUTANTS: Final[dict[str, Mutant]] = {}
SEEDS: Final[dict[str, int]] = {}
"""How many seeds a mutant may live."""


FOCUS: Final[dict[str, str]] = {}
"""Bugs that only a certain blow brings to light: worlds with another focus are left out."""


def mutant(seeds: int = 40, focus: str | None = None) -> Callable[[Callable[[], Iterator[None]]], Mutant]:
    """Register one."""

    def register(make: Callable[[], Iterator[None]]) -> Mutant:
        made = contextlib.contextmanager(make)
        MUTANTS[make.__name__], SEEDS[make.__name__] = made, seeds
        if focus is not None:
            FOCUS[make.__name__] = focus
        return made

    return register


def patched_sql(module: Any, name: str, *changes: tuple[str, str]) -> Any:
    """The statement *name* of *module* with each (old, new) put in; a statement that moved on fails loudly."""
    text = getattr(module, name)
    for old, new in changes:
        assert old in text, f"{name} no longer holds {old!r}: mend this mutant"
        text = text.replace(old, new)
    return mock.patch.object(module, name, text)


def always(value: Any) -> Callable[..., Any]:
    """A function that takes anything and gives *value*."""
    return lambda *_, **__: value
