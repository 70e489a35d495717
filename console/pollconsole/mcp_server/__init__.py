"""`pollconsole mcp`: the tools of agents that speak the Model Context Protocol, over standard input and output.

Nothing here approves, cancels, resubmits, fetches or reads a credential; nothing asks a provider anything (G5, K6, S3).
"""
