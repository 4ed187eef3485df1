"""A bare daemon: asyncio, aiosqlite with an open database, and a unix socket that answers framed requests. No more.

The least that a daemon of graphd's kind must start and hold. Connections stay open; every frame is answered.

usage: python -m benchmarks.bare SOCKET DATABASE
"""

import asyncio
import json
import sys

import aiosqlite


async def main() -> None:
    """Serve until killed."""
    async with aiosqlite.connect(sys.argv[2], isolation_level=None) as db:
        await db.execute("PRAGMA journal_mode=WAL")
        await db.execute("CREATE TABLE IF NOT EXISTS t(a)")
        server = await asyncio.start_unix_server(answer, sys.argv[1])
        await server.serve_forever()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Echo the id of every request."""
    while True:
        try:
            header = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()
            return
        request = json.loads(await reader.readexactly(int(header.split(b":")[1])))
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}}).encode()
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(main())
