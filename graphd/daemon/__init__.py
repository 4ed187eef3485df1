"""Wires core, store and children to one running daemon. Owns recovery, supervision and settings; decides nothing."""
