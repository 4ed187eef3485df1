"""The language server that each editor has to itself: one pygls server per connection, behind our reader and writer.

Owns everything LSP between a whole message and an answer: documents, positions, features, lenses, progress. Holds no
graph and decides nothing: commands go through the same routes as everybody's. Only `glue` and what it imports load
pygls and lsprotocol, and only once an editor has been answered.
"""
