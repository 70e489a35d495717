"""`pollconsole mcp`: open the home, serve one client.

Job: the command, and the way out where the library is not installed. Must not know: tools, the protocol.
"""

from __future__ import annotations

import importlib.util
from typing import Final

from pollconsole.cli import calls
from pollconsole.cli.base import Common, command, pass_common
from pollcore.facts import Refused, extra_missing

MISSING: Final = (
    f"{extra_missing('mcp', 'mcp')}; 'pollconsole submit' and 'pollconsole wait --json' do the same without it"
)


@command(
    "mcp",
    "pollconsole mcp --home ~/.local/share/pollconsole",
    short_help="Serve agents that speak the Model Context Protocol.",
)
@pass_common
def mcp(common: Common) -> None:
    """Serve one client of the Model Context Protocol over standard input and output, until it leaves.

    Tools hand waits over, wait, read and ask for extensions. None approves, cancels, resubmits, fetches or reads a
    credential, and none asks a provider anything: a console, or 'pollconsole run', polls on the same home.

    Needs the extra 'mcp', or the library alone: pip install mcp.
    """
    if importlib.util.find_spec("mcp") is None:
        raise Refused(MISSING, code="extra_missing")
    from pollconsole.mcp_server import server

    server.prepare_logging()
    calls.with_core(common, server.serve, makes=True)
