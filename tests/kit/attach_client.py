"""One client process of the start race: attaches, prints what it found. JITTER_S pauses between refusal and action.

ALONE=1 leaves the economy of `starting` out, so that every client starts a daemon and the daemon's lock alone decides.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from graphd.client import attach as module
from graphd.client.greeting import Greeting
from graphd.client.paths import AttachFailure

start = module._Search.start


def start_late(search: module._Search) -> None:
    time.sleep(random.random() * float(os.environ.get("JITTER_S", "0")))
    start(search)


module._Search.start = start_late  # type: ignore[method-assign,assignment]
if os.environ.get("ALONE"):
    module.STARTER_PATIENCE_S = 0.0
try:
    attached = module.attach(os.path.realpath(sys.argv[1]), Greeting("race"))
    attached.connection.close()
    print(json.dumps({"pid": attached.hello["daemon"]["pid"]}))
except AttachFailure as failure:
    print(json.dumps({"failure": failure.message, "hint": failure.hint}))
