"""The parts of the keeper: loop, tree, journal, agent, peers. Standard library alone, all imported before it spawns.

They are modules of their own for their readers' sake. Nothing here imports another package of ours; the daemon's side
takes the formats and the `/proc` readers from here, so that both agree.

A node costs one start of a keeper, so imports are chosen by their price: no `typing` at run time (`TYPE_CHECKING` is a
plain False, which type checkers know), `_signal` for `signal` with its enums, `_ctypes`, JSON by `wire`.
"""
