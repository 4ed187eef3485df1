"""The pure core: state, commands, events, rules. Owns every decision about a graph; never does IO, never
reads a clock.
"""
