"""What clients reach: socket, frames, hello, routes, subscriptions, and the daemon's own process.

Owns everything between bytes on the socket and requests to `graphd.daemon`. Never decides anything about a graph, never
writes state, and starts no process. On the way to the first hello nothing heavy is imported.
"""
