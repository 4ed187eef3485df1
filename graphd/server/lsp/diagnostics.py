"""Diagnostics as an editor takes them: what is wrong in the text, and what failed of it as it runs.

Source: spec protocol.md, Language features; workflow.md (every diagnostic has a hint); research sidecar.md §8.
"""

from typing import Any, Final

from graphd.base.catalogue import Language, translate
from graphd.base.text import t
from graphd.server.lsp.asks import said
from graphd.server.lsp.capabilities import Client
from graphd.server.lsp.documents import Document
from graphd.server.lsp.live import LiveGraph
from graphd.server.lsp.texts import Text
from graphd.workflows.diagnostics import Diagnostic
from graphd.workflows.language import Analysis, Point, Span, related, same_definition

Json = dict[str, Any]
SOURCE: Final = "graphd"
_SEVERITIES: Final = {"error": 1, "warning": 2}
_INFORMATION: Final = 3
_BEGINNING: Final = Span(Point(0, 0), Point(0, 0))


def diagnostics_of(
    document: Document, text: Text, analysis: Analysis, live: LiveGraph | None, *, client: Client, language: Language
) -> list[Json]:
    """All of one text, in its order; then what failed, on nodes that still say what runs."""
    rows = []
    for found in analysis.diagnostics:
        row = row_of(text, analysis, found, language)
        places = related(analysis, found) if client.has_related else []
        if places:
            row["relatedInformation"] = [
                {"location": {"uri": document.uri, "range": text.range(span)}, "message": message}
                for span, message in places
            ]
        rows.append(row)
    return rows + _asks(text, analysis, live) + _failures(text, analysis, live)


def row_of(text: Text, analysis: Analysis, found: Diagnostic, language: Language) -> Json:
    """One finding; its hint stands below what is wrong."""
    said = [translate(part, language) for part in (found.message, found.hint) if part]
    return {
        "range": text.range(analysis.span_of(found)),
        "severity": _SEVERITIES[found.severity],
        "code": found.code,
        "source": SOURCE,
        "message": "\n".join(said),
    }


def _asks(text: Text, analysis: Analysis, live: LiveGraph | None) -> list[Json]:
    """What waits for a person, on its node; at the beginning where the text has no such node (any more)."""
    spans = {node.slug: node.id_span for node in analysis.nodes}
    return [
        {
            "range": text.range(spans.get(ask.node or "", _BEGINNING)),
            "severity": _SEVERITIES["warning"],
            "code": "ask.open",
            "source": SOURCE,
            "message": said(ask),
        }
        for ask in (live.asks if live is not None else ())
    ]


def _failures(text: Text, analysis: Analysis, live: LiveGraph | None) -> list[Json]:
    rows = []
    for node in analysis.nodes:
        now = live.nodes.get(node.slug) if live is not None else None
        if now is None or now.trouble is None or now.state != "failed":
            continue
        if same_definition(analysis, node.slug, now.definition):
            rows.append(
                {
                    "range": text.range(node.id_span),
                    "severity": _INFORMATION,
                    "code": "node.failed",
                    "source": SOURCE,
                    "message": t("{node} failed: {reason}", node=node.slug, reason=now.trouble),
                }
            )
    return rows
