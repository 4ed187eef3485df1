"""A line-speaking agent: each line it gets goes to an O_APPEND file and is answered by updates and an ask, until `bye`.

Usage: talk.py ORACLE ROUNDS. One round: two updates, one ask; the next line it reads is the answer.
"""

import json
import os
import sys
import time

oracle = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
for count, line in enumerate(sys.stdin):
    os.write(oracle, line.encode())
    if count == int(sys.argv[2]):
        print(json.dumps({"kind": "result", "count": count}), flush=True)
        sys.exit(0)
    for number in range(2):
        print(json.dumps({"kind": "update", "count": count, "number": number}), flush=True)
        time.sleep(0.005)
    sys.stdout.write('{"kind": "ask", ')
    sys.stdout.flush()
    time.sleep(0.005)
    print(f'"count": {count}}}', flush=True)
