"""Measurements of graphd against a floor scheduler, raw SQLite loops and the machine's own tools."""
