"""The program that becomes a keeper: stdlib-only, the owner of one attempt's tree, stdio, journal and exit record.

Run as `python -I -S keeper.py` with the attempt's folder as working directory and a launch spec (JSON) on stdin, read
to its end. It outlives daemons and their upgrades: it imports the standard library and its own parts (`keeping/`)
alone. This file is short because Python compiles a program anew at each start; its parts are compiled once.
"""

import os
import sys

if __name__ == "__main__":  # by path and without site: our own parts come from here, all else from the library
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    from graphd.children.keeping.keeper import main

    os._exit(main())  # nothing is left to flush: an orderly end would take the interpreter apart, object by object
