"""The wire contract of graphd. Owns every name on the wire; does no IO."""

PROTOCOL_MIN = 1
PROTOCOL_MAX = 1
