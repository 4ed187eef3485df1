"""Makes what is generated of the wire models and the method table: `python -m generator` writes all of it.

Owns `protocol.json`, the types of the clients, and the marked parts of the pages. Not shipped.
"""
