"""`graphd mcp`: our tools as a Model Context Protocol server over stdio. A client like any other, over the same socket.

It starts with every attempt, so it is the standard library alone. Source: spec protocol.md, MCP and plugin package.
"""
