"""The one SQLite library of this process: the one that sqlite-utils took (pysqlite3 where it is installed).

Job: give it out under one name, set up for fast binding. Must not know: files, tables. A second SQLite library on the
same file would drop the first one's locks (reliability section 4), so nothing else of the product imports one.
"""

from __future__ import annotations

from typing import Any, Final

from sqlite_utils import utils

sqlite3: Final[Any] = vars(utils)["sqlite3"]

# A value that is no exact int, float or str goes through the adapter protocol: 1.1 microseconds each without an adapter
# of its own, 0.13 with one (measured; rows are full of NULL). These change nothing but that.
for _plain in (type(None), bytes, bool):
    sqlite3.register_adapter(_plain, lambda value: value)
