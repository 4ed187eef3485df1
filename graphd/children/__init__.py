"""Every process that we start: keepers, journals, drivers, identity and proof of death, environments, profiles.

Owns the attempt folders and what runs in them. Never touches the database, never decides what a graph does next: it is
given an `Order`, reports facts and answers with an `AttemptEnded`. `keeper.py` is a program of its own that imports the
standard library alone.
"""
