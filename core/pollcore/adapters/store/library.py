"""The one SQLite library of this process: the one that sqlite-utils takes (pysqlite3 where it is installed).

Job: give it out under one name, set up for fast binding, and know its bugs. Must not know: files, tables. A second
SQLite library on the same file would drop the first one's locks, so nothing else of the product imports one.
sqlite-utils itself costs a tenth of a second to import and is needed for migrations alone: `utilities` brings it, and
proves that both chose alike.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from pollcore.facts import StoreUnusable

if TYPE_CHECKING:
    from sqlite_utils import Database


def _chosen() -> Any:
    try:
        found = importlib.import_module("pysqlite3")
        importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        return importlib.import_module("sqlite3")
    return found


sqlite3: Final[Any] = _chosen()


def has_wal_reset_bug(version: tuple[int, ...]) -> bool:
    """3.7.0 to 3.51.2, but for the fixed 3.44.6 and 3.50.7; 3.52.0 was withdrawn (sqlite.org, "WAL-reset bug")."""
    if version[:2] == (3, 44):
        return version < (3, 44, 6)
    if version[:2] == (3, 50):
        return version < (3, 50, 7)
    return (3, 7, 0) <= version < (3, 51, 3) or version[:2] == (3, 52)


def utilities(conn: Any) -> Database:
    """sqlite-utils on *conn*, for schema and migrations.

    Raises:
        StoreUnusable: it took another SQLite library than this module; two on one file would damage it.
    """
    from sqlite_utils import Database, utils

    if vars(utils)["sqlite3"] is not sqlite3:
        raise StoreUnusable(
            f"two SQLite libraries in one process ({sqlite3.__name__} and {vars(utils)['sqlite3'].__name__}): "
            "reinstall pollconsole in a fresh environment"
        )
    return Database(conn, execute_plugins=False)


# A value that is no exact int, float or str goes through the adapter protocol: 1.1 microseconds each without an adapter
# of its own, 0.13 with one (measured; rows are full of NULL). These change nothing but that.
for _plain in (type(None), bytes, bool):
    sqlite3.register_adapter(_plain, lambda value: value)
