"""The handlers behind the route table, one file a group.

Each turns params into a read or a command, and state into a result.
"""
