"""A graph as one self-contained HTML page: read over the wire (`taking`), written without a script or a request."""
