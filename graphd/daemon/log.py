"""The daemon's log: JSON lines on stderr, which is `daemon.log`. Facts with fields; never a frame, a prompt or
an environment value.

structlog is imported with the first line, not with the daemon: its import would be a third of the time to the
first answer.
"""

import sys
from typing import Any

_logger: Any = None


def log(event: str, **fields: Any) -> None:
    """Write one fact. `event` is snake_case, past tense."""
    global _logger
    if _logger is None:
        import structlog

        _logger = structlog.wrap_logger(
            structlog.PrintLogger(sys.stderr),
            processors=[
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    _logger.info(event, **fields)
