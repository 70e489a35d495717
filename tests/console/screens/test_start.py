"""A start imports what the first rows need, and no more; the door to the core gives the same names all the same."""

from __future__ import annotations

import ast
import gc
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pollconsole import bridge, collector

LIMIT_S = 60
NOT_NEEDED = (
    *("hashlib", "secrets", "httpx", "sqlite3", "keyring", "importlib.resources"),
    *("pollconsole.bridge.contracts", "pollconsole.bridge.handing_over", "pollconsole.bridge.health"),
    *("pollconsole.core_feed", "pollconsole.help_keys", "pollconsole.screens.card", "pollconsole.screens.detail"),
)


def test_the_console_imports_nothing_that_its_first_rows_do_not_need() -> None:
    code = (
        "import sys; import pollconsole.cli.entry; from pollconsole import app, bridge; bridge.harden();"
        f"print([name for name in {NOT_NEEDED!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert done.stdout.strip() == "[]"


def test_each_name_of_the_bridge_is_what_its_file_defines_whichever_is_imported_first() -> None:
    source = ast.parse(Path(bridge.__file__).read_text("utf-8"))
    named = [
        (each.module or "", alias.name)
        for each in ast.walk(source)
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("pollconsole.bridge.")
        for alias in each.names
    ]
    assert len(named) > 70
    for module in {module for module, _ in named}:
        importlib.import_module(module)  # as whoever wants something of one file does: it puts the file's name there
    for module, name in named:
        found = getattr(bridge, name)
        assert not isinstance(found, ModuleType), name
        assert found is getattr(importlib.import_module(module), name), name
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_ours'"):
        _ = bridge.nothing_of_ours  # type: ignore[attr-defined]


def test_no_file_of_the_bridge_bears_a_name_that_the_bridge_hands_on() -> None:
    """Whoever imports such a file puts the module where its function was looked for: not callable, at a key."""
    folder = Path(bridge.__file__).parent
    handed_on = {name for names in bridge._LATER.values() for name in names}
    assert handed_on
    assert not handed_on & {each.stem for each in folder.glob("*.py")}


def test_the_collector_that_rested_wakes_and_one_that_is_awake_is_left_alone() -> None:
    frozen = gc.get_freeze_count()
    collector.wake()
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
    collector.rest()
    try:
        assert not gc.isenabled()
        collector.wake()
        assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
    finally:
        gc.enable()
        gc.unfreeze()
