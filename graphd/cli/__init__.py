"""The command line: one file a group of commands, talking to the daemon through `graphd.client` alone.

It owns what people see in a terminal and the exit codes (spec product.md). It decides nothing: every rule is the
core's, every answer the daemon's. Command modules and `rich` are imported when they are needed, so that `graphd status`
is quick.
"""
