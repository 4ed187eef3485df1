"""The parts of the keeper: loop, tree, journal, agent, peers. Standard library alone, all imported before it spawns.

They are modules of their own for their readers' sake. Nothing here imports another package of ours; the daemon's side
takes the formats and the `/proc` readers from here, so that both agree.
"""
