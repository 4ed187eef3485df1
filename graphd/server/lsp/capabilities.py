"""The answer to `initialize`, by hand: an editor has it before anything heavy is loaded. A test holds it to lsprotocol.

Source: spec protocol.md, Language features on workflow files.
"""

from typing import Any, Final

from graphd import __version__

Json = dict[str, Any]

COMMANDS: Final = (
    "graphd.run", "graphd.apply", "graphd.pause", "graphd.resume", "graphd.cancel", "graphd.retry", "graphd.openOutput",
    "graphd.answer",
)  # fmt: skip
ENCODINGS: Final = ("utf-8", "utf-16", "utf-32")
USUAL_ENCODING: Final = "utf-16"
INCREMENTAL: Final = 2
_FEATURES: Final[Json] = {
    "textDocumentSync": {"openClose": True, "change": INCREMENTAL, "save": {"includeText": False}},
    "completionProvider": {"triggerCharacters": [":", " ", "-", "[", ",", "{"], "resolveProvider": False},
    "hoverProvider": True,
    "definitionProvider": True,
    "referencesProvider": True,
    "documentHighlightProvider": True,
    "documentSymbolProvider": True,
    "foldingRangeProvider": True,
    "renameProvider": {"prepareProvider": True},
    "codeActionProvider": {"codeActionKinds": ["quickfix", "refactor.rewrite", "graphd"], "resolveProvider": False},
    "codeLensProvider": {"resolveProvider": False},
    "inlayHintProvider": {"resolveProvider": False},
    "executeCommandProvider": {"commands": list(COMMANDS)},
    "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": False}},
}
_PULLED: Final[Json] = {
    "diagnosticProvider": {"identifier": "graphd", "interFileDependencies": True, "workspaceDiagnostics": False}
}


class Client:
    """What one editor says that it can do; everything it does not say it cannot."""

    def __init__(self, params: Json) -> None:
        self._capabilities = params.get("capabilities") or {}
        self.encoding = self._encoding()
        options = params.get("initializationOptions")
        self.options: Json = options if isinstance(options, dict) else {}
        self.pulls_diagnostics = isinstance(self._at("textDocument.diagnostic"), dict)
        self.has_related = self.claims("textDocument.publishDiagnostics.relatedInformation")
        self.has_nested_symbols = self.claims("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport")
        self.has_action_literals = isinstance(self._at("textDocument.codeAction.codeActionLiteralSupport"), dict)
        self.has_document_changes = self.claims("workspace.workspaceEdit.documentChanges")
        self.has_default_behaviour = self.claims("textDocument.rename.prepareSupport")
        self.has_progress = self.claims("window.workDoneProgress")
        self.shows_documents = self.claims("window.showDocument.support")
        self.refreshes = {
            "workspace/codeLens/refresh": self.claims("workspace.codeLens.refreshSupport"),
            "workspace/inlayHint/refresh": self.claims("workspace.inlayHint.refreshSupport"),
            "workspace/diagnostic/refresh": self.claims("workspace.diagnostics.refreshSupport"),
        }
        self.hover_format = self._format("textDocument.hover.contentFormat")
        self.item_format = self._format("textDocument.completion.completionItem.documentationFormat")

    def claims(self, path: str) -> bool:
        """Whether the capability at this dotted path is there and true."""
        return self._at(path) is True

    def _at(self, path: str) -> Any:
        value: Any = self._capabilities
        for name in path.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    def _encoding(self) -> str:
        """The first of the client's position encodings that we have, in its order."""
        offered = self._at("general.positionEncodings")
        known = [name for name in offered if name in ENCODINGS] if isinstance(offered, list) else []
        return str(known[0]) if known else USUAL_ENCODING

    def _format(self, path: str) -> str:
        offered = self._at(path)
        return "markdown" if isinstance(offered, list) and "markdown" in offered else "plaintext"


def answer_to_initialize(client: Client, facts: Json) -> Json:
    """The result of `initialize`; `facts` are those of the hello."""
    capabilities = {"positionEncoding": client.encoding, **_FEATURES, "experimental": {"workgraph": facts}}
    if client.pulls_diagnostics:
        capabilities |= _PULLED
    return {"capabilities": capabilities, "serverInfo": {"name": "graphd", "version": __version__}}
