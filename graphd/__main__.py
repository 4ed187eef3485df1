"""The command `graphd`. `connect` is served before anything but the standard library is imported."""

import sys


def main() -> None:
    """Run the command line; the byte pipe of `connect` and `mcp` take a path of their own."""
    if len(sys.argv) > 1 and sys.argv[1] in ("connect", "stdio") and not {"--help", "-h"} & set(sys.argv[2:]):
        from graphd.client.attach import connect_main

        sys.exit(connect_main(sys.argv[2:]))
    if sys.argv[1:2] == ["mcp"] and not {"--help", "-h"} & set(sys.argv[2:]):
        from graphd.mcp.attempt import main as mcp_main

        sys.exit(mcp_main(sys.argv[2:]))
    from graphd.cli.main import main as cli_main

    cli_main()


if __name__ == "__main__":
    main()
