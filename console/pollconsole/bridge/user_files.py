"""Files that a user or a folder names, opened as the core opens them.

Job: the core's two functions by name. Must not know: what is in a file.
"""

from pollcore.adapters.user_files import open_plain as open_plain
from pollcore.adapters.user_files import read_plain as read_plain
