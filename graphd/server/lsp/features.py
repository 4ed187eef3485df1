"""LSP's requests about a workflow file: what `graphd.workflows.language` finds, in the editor's positions.

Every search runs in a thread on an analysis that is made once per text; the loop only turns points into positions.
Source: spec protocol.md, Language features on workflow files; research sidecar.md §8.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson
from lsprotocol import types

from graphd.base.catalogue import translate
from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.server.lsp import actions
from graphd.server.lsp.diagnostics import row_of
from graphd.server.lsp.documents import Document
from graphd.server.lsp.live import LiveGraph, LiveNode, hint_of
from graphd.server.lsp.texts import Text
from graphd.workflows.language import (
    Analysis,
    Fix,
    Point,
    RenameRefused,
    Span,
    Symbol,
    complete,
    definition,
    fixes,
    folding,
    highlights,
    hint_places,
    hover,
    lens_places,
    prepare_rename,
    references,
    rename,
    same_definition,
    symbols,
)

if TYPE_CHECKING:
    from graphd.server.lsp.desk import Desk

T = TypeVar("T")
Json = dict[str, Any]
ACTION_KIND: Final = "graphd"
FIX_KIND: Final = "quickfix"
REWRITE_KIND: Final = "refactor.rewrite"
_ITEM_KINDS: Final = {
    "key": types.CompletionItemKind.Property,
    "node": types.CompletionItemKind.Reference,
    "worker": types.CompletionItemKind.EnumMember,
    "value": types.CompletionItemKind.Value,
    "reference": types.CompletionItemKind.Field,
    "variable": types.CompletionItemKind.Variable,
}
_SYMBOL_KINDS: Final = {
    "file": types.SymbolKind.Module,
    "group": types.SymbolKind.Namespace,
    "node": types.SymbolKind.Function,
    "input": types.SymbolKind.Variable,
}


class Features:
    """The handlers of one editor, by method."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk
        self._handlers: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "textDocument/completion": self._completion,
            "textDocument/hover": self._hover,
            "textDocument/definition": self._definition,
            "textDocument/references": self._references,
            "textDocument/documentHighlight": self._highlight,
            "textDocument/prepareRename": self._prepare_rename,
            "textDocument/rename": self._rename,
            "textDocument/documentSymbol": self._symbols,
            "textDocument/foldingRange": self._folding,
            "textDocument/codeAction": self._actions,
            "textDocument/codeLens": self._lenses,
            "textDocument/inlayHint": self._hints,
            "textDocument/diagnostic": self._diagnostics,
        }

    def handler(self, method: str) -> Callable[[Any], Awaitable[Any]] | None:
        """The handler of a request."""
        return self._handlers.get(method)

    async def _understood(self, params: Any) -> tuple[Document, Text, Analysis] | None:
        document = self._desk.documents.get(params.text_document.uri)
        if document is None:
            return None  # not open, or no workflow: other servers answer for it
        text, analysis = await document.analysed()
        return document, text, analysis

    async def _at(
        self, params: Any, search: Callable[[Analysis, tuple[int, int]], T]
    ) -> tuple[Document, Text, T] | None:
        """What a search finds at the position of the params."""
        found = await self._understood(params)
        if found is None:
            return None
        document, text, analysis = found
        point = text.place(params.position.line, params.position.character)
        return document, text, await asyncio.to_thread(search, analysis, point)

    # ---- at a position --------------------------------------------------------------------------------------------

    async def _completion(self, params: types.CompletionParams) -> Any:
        found = await self._at(params, complete)
        if found is None:
            return None
        _, text, items = found
        rows = []
        for number, item in enumerate(items):
            row: Json = {
                "label": item.label,
                "kind": _ITEM_KINDS[item.kind].value,
                "sortText": f"{number:04d}",
                "filterText": item.label,
                "textEdit": {"range": text.range(item.edit_span), "newText": item.new_text},
            }
            if item.detail:
                row["detail"] = item.detail
            if item.documentation:
                row["documentation"] = {"kind": self._desk.client.item_format, "value": item.documentation}
            rows.append(row)
        return {"isIncomplete": False, "items": rows}

    async def _hover(self, params: types.HoverParams) -> Any:
        found = await self._at(params, hover)
        document, text, shown = found if found is not None else (None, None, None)
        if document is None or text is None or shown is None:
            return None
        parts = list(shown.parts)
        live = await self._desk.live(document) if shown.slug is not None else None
        node = live.nodes.get(shown.slug) if live is not None and shown.slug is not None else None
        if node is not None:
            parts += self._course(node)
        language = self._desk.language
        said = "\n\n".join(translate(part, language) for part in parts)
        contents = {"kind": self._desk.client.hover_format, "value": said}
        return {"contents": contents, "range": text.range(shown.span)}

    def _course(self, node: LiveNode) -> Iterable[str]:
        """What a node is doing, or has done."""
        yield t("now: {state}", state=hint_of(node, self._desk.now_ms) or node.state)
        if node.trouble is not None:
            yield t("failed: {reason}", reason=node.trouble)
        if node.blocked_by is not None:
            yield t("blocked by {node}", node=node.blocked_by)
        if node.last_line:
            yield t("last line: {line}", line=node.last_line)

    async def _definition(self, params: types.DefinitionParams) -> Any:
        return await self._locations(params, definition)

    async def _references(self, params: types.ReferenceParams) -> Any:
        is_with = params.context.include_declaration
        return await self._locations(params, lambda a, at: references(a, at, include_definition=is_with))

    async def _locations(self, params: Any, search: Callable[[Analysis, tuple[int, int]], Any]) -> Any:
        found = await self._at(params, search)
        if found is None:
            return None
        document, text, spans = found
        return [{"uri": document.uri, "range": text.range(span)} for span in spans]

    async def _highlight(self, params: types.DocumentHighlightParams) -> Any:
        found = await self._at(params, highlights)
        if found is None:
            return None
        write, read = types.DocumentHighlightKind.Write.value, types.DocumentHighlightKind.Read.value
        return [
            {"range": found[1].range(item.span), "kind": write if item.is_definition else read} for item in found[2]
        ]

    async def _prepare_rename(self, params: types.PrepareRenameParams) -> Any:
        found = await self._at(params, prepare_rename)
        if found is None or found[2] is None:
            return None
        span, name = found[2]
        return {"range": found[1].range(span), "placeholder": name}

    async def _rename(self, params: types.RenameParams) -> Any:
        try:
            found = await self._at(params, lambda a, at: rename(a, at, params.new_name))
        except RenameRefused as refusal:
            raise Refused("invalidPlan", refusal.message, refusal.hint) from None
        return self._edit(*found) if found is not None else None

    def _edit(self, document: Document, text: Text, edits: Iterable[tuple[Span, str]]) -> Json:
        rows = [{"range": text.range(span), "newText": new} for span, new in edits]
        if self._desk.client.has_document_changes:
            named = {"uri": document.uri, "version": document.version if document.text is text else None}
            return {"documentChanges": [{"textDocument": named, "edits": rows}]}
        return {"changes": {document.uri: rows}}

    # ---- of the whole file ----------------------------------------------------------------------------------------

    async def _symbols(self, params: types.DocumentSymbolParams) -> Any:
        found = await self._understood(params)
        if found is None:
            return None
        document, text, analysis = found
        tree = await asyncio.to_thread(symbols, analysis)
        if self._desk.client.has_nested_symbols:
            return [_nested(text, symbol) for symbol in tree]
        return [row for symbol in tree for row in _flat(document.uri, text, symbol, None)]

    async def _folding(self, params: types.FoldingRangeParams) -> Any:
        found = await self._understood(params)
        if found is None:
            return None
        folds = await asyncio.to_thread(folding, found[2])
        return [{"startLine": first, "endLine": last, "kind": kind} for first, last, kind in folds]

    async def _lenses(self, params: types.CodeLensParams) -> Any:
        found = await self._understood(params)
        if found is None:
            return None
        document, text, analysis = found
        live = await self._desk.live(document)
        of_file = actions.for_file(document.uri, live, is_edited=await self._is_edited(analysis, live))
        rows = []
        for span, slug in lens_places(analysis):
            offers = of_file if slug is None else actions.for_node(document.uri, slug, live)
            rows += [{"range": text.range(span), "command": offer.wire} for offer in offers if offer.is_lens]
        return rows

    async def _hints(self, params: types.InlayHintParams) -> Any:
        found = await self._understood(params)
        if found is None:
            return None
        document, text, analysis = found
        live = await self._desk.live(document)
        if live is None:
            return []
        lines = range(params.range.start.line, params.range.end.line + 1)
        places = [(point, live.nodes[slug]) for point, slug in hint_places(analysis) if slug in live.nodes]
        near = [(point, node) for point, node in places if point[0] in lines]
        same = await asyncio.to_thread(
            lambda: [item for item in near if same_definition(analysis, item[1].slug, item[1].definition)]
        )
        rows = []
        for point, node in same:
            said = hint_of(node, self._desk.now_ms)
            if said is not None:
                rows.append({"position": text.position(point), "label": said, "paddingLeft": True})
            if node.state == "running":
                self._desk.tick_in_a_minute()
        return rows

    # ---- diagnostics and what to do about them --------------------------------------------------------------------

    async def _diagnostics(self, params: types.DocumentDiagnosticParams) -> Any:
        found = await self._understood(params)
        if found is None:
            return {"kind": "full", "items": []}
        document, text, analysis = found
        live = await self._desk.live(document)
        rows = self._desk.diagnostics(document, text, analysis, live)
        name = hashlib.sha256(orjson.dumps(rows), usedforsecurity=False).hexdigest()[:16]
        if name == params.previous_result_id:
            return {"kind": "unchanged", "resultId": name}
        return {"kind": "full", "resultId": name, "items": rows}

    async def _actions(self, params: types.CodeActionParams) -> Any:
        found = await self._understood(params)
        if found is None:
            return None
        document, text, analysis = found
        start, end = params.range.start, params.range.end
        span = Span(Point(*text.place(start.line, start.character)), Point(*text.place(end.line, end.character)))
        wanted = [str(kind) for kind in params.context.only] if params.context.only is not None else None
        rows: list[Json] = []
        if self._desk.client.has_action_literals:
            made = await asyncio.to_thread(fixes, analysis, span)
            rows += [self._fix(document, text, analysis, fix) for fix in made if _is_wanted(_kind_of(fix), wanted)]
        if _is_wanted(ACTION_KIND, wanted):
            live = await self._desk.live(document)
            offers = self._offers(document, analysis, span, live)
            offers += actions.for_file(document.uri, live, is_edited=await self._is_edited(analysis, live))
            rows += [self._action(offer) for offer in offers]
        return rows

    def _fix(self, document: Document, text: Text, analysis: Analysis, fix: Fix) -> Json:
        row: Json = {"title": fix.title, "kind": _kind_of(fix), "edit": self._edit(document, text, fix.edits)}
        if fix.diagnostic is not None:
            row["diagnostics"] = [row_of(text, analysis, fix.diagnostic, self._desk.language)]
        return {**row, "isPreferred": True} if fix.is_preferred else row

    def _offers(
        self, document: Document, analysis: Analysis, span: Span, live: LiveGraph | None
    ) -> list[actions.Offer]:
        here = [node.slug for node in analysis.nodes if node.span.start <= span[1] and span[0] <= node.span.end]
        offers = [offer for slug in dict.fromkeys(here) for offer in actions.for_node(document.uri, slug, live)]
        return offers + actions.for_asks_elsewhere(live, {node.slug for node in analysis.nodes})

    @staticmethod
    async def _is_edited(analysis: Analysis, live: LiveGraph | None) -> bool:
        """The plan in the text is another one than the graph's, as `apply` would find it."""
        if live is None or not live.is_live:
            return False
        nodes = live.nodes

        def differs() -> bool:
            slugs = analysis.slugs.keys()
            if slugs - nodes.keys() or any(nodes[slug].leaves_with_file for slug in nodes.keys() - slugs):
                return True
            return not all(same_definition(analysis, slug, nodes[slug].definition) for slug in slugs)

        return await asyncio.to_thread(differs)

    def _action(self, offer: actions.Offer) -> Json:
        if not self._desk.client.has_action_literals:
            return offer.wire
        return {"title": offer.wire["title"], "kind": ACTION_KIND, "command": offer.wire}


def _is_wanted(kind: str, wanted: list[str] | None) -> bool:
    return wanted is None or any(not asked or kind == asked or kind.startswith(asked + ".") for asked in wanted)


def _kind_of(fix: Fix) -> str:
    return FIX_KIND if fix.diagnostic is not None else REWRITE_KIND


def _nested(text: Text, symbol: Symbol) -> Json:
    row: Json = {
        "name": symbol.name,
        "kind": _SYMBOL_KINDS[symbol.kind].value,
        "range": text.range(symbol.span),
        "selectionRange": text.range(symbol.name_span),
        "children": [_nested(text, child) for child in symbol.children],
    }
    return {**row, "detail": symbol.detail} if symbol.detail else row


def _flat(uri: str, text: Text, symbol: Symbol, parent: str | None) -> Iterable[Json]:
    row: Json = {
        "name": symbol.name,
        "kind": _SYMBOL_KINDS[symbol.kind].value,
        "location": {"uri": uri, "range": text.range(symbol.span)},
    }
    yield {**row, "containerName": parent} if parent is not None else row
    for child in symbol.children:
        yield from _flat(uri, text, child, symbol.name)
