"""Programs that hand waits over: Python, command line, MCP."""
