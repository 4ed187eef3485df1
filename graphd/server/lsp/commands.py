"""`workspace/executeCommand`: the verbs that lenses and actions offer, on the same routes as everybody's.

The arguments are one object `{uri?, graph?, node?}`; a run takes `inputs?` too. A run uses the saved file. Source: spec
protocol.md, Language features; research sidecar.md §8.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphd.base.refusal import Refused
from graphd.base.text import t
from graphd.core.model import State
from graphd.server.errors import ParamsRefused, nearest, shown
from graphd.server.errors import field as bad_field
from graphd.server.hello import file_path
from graphd.server.lsp.asks import COMMAND
from graphd.server.lsp.capabilities import COMMANDS
from graphd.server.lsp.documents import Documents
from graphd.server.lsp.live import newest_from
from graphd.server.references import find_graph, find_node
from graphd.server.routes import Call, dispatch

if TYPE_CHECKING:
    from lsprotocol import types

Json = dict[str, Any]
OUTPUT_LIMIT_BYTES: Final = 1024 * 1024
_ENDINGS: Final = {"application/json": "json", "text/markdown": "md"}


@dataclass(slots=True)
class Wanted:
    """The arguments of a command, checked."""

    uri: str | None = None
    graph: str | None = None
    node: str | None = None
    inputs: Json = field(default_factory=dict)


class Commands:
    """Runs the commands of one editor. `show` has the editor open a file, where it can; it does not wait for it.

    `started` is told of each graph that a run made.
    """

    def __init__(
        self, documents: Documents, call: Callable[[], Call], *, show: Callable[[str], None],
        started: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._started = started
        self._documents = documents
        self._call = call
        self._show = show
        self._copies: list[Path] = []

    async def execute(self, params: "types.ExecuteCommandParams") -> Any:
        """The command's result. Raises CallRefused or Refused."""
        name = params.command
        if name not in COMMANDS:
            near = nearest(name, COMMANDS)
            expected = near[0] if near else t("a command")
            trouble = bad_field("command", t("unknown command"), expected=expected, got=name)
            raise ParamsRefused([{**trouble, "suggestions": near}])
        if name == COMMAND:
            given: Any = params.arguments[0] if params.arguments else {}
            return await self.answer(given)
        wanted = _wanted(list(params.arguments or []), takes_inputs=name == "graphd.run")
        serve: dict[str, Callable[[Wanted], Awaitable[Any]]] = {
            "graphd.run": self._run,
            "graphd.apply": self._apply,
            "graphd.retry": self._retry,
            "graphd.openOutput": self._open_output,
        }
        if name in serve:
            return await serve[name](wanted)
        return await self._do(f"workgraph/{name.removeprefix('graphd.')}", {"graph": await self._graph(wanted)})

    async def answer(self, params: Json) -> Any:
        """Answer an ask: `workgraph/respond` as everybody calls it. Raises CallRefused or Refused."""
        return await self._do("workgraph/respond", params)

    async def _do(self, method: str, params: Json) -> Any:
        return (await dispatch(self._call(), method, params)).result

    async def _run(self, wanted: Wanted) -> Any:
        path = await self._path(wanted)
        await self._check_saved(wanted.uri, path)
        made = await self._do("workgraph/set", {"file": path, **({"inputs": wanted.inputs} if wanted.inputs else {})})
        self._started(made["graph"])
        return made

    async def _apply(self, wanted: Wanted) -> Any:
        """Whoever takes this up has seen what was edited: the proposal is accepted at once."""
        path = await self._path(wanted)
        await self._check_saved(wanted.uri, path)
        graph = await self._graph(wanted)
        proposed = await self._do("workgraph/apply", {"file": path, **({"graph": graph} if graph else {})})
        if "proposal" not in proposed:
            return proposed
        where = {"graph": proposed["graph"], "proposal": proposed["proposal"]}
        return {**await self._do("workgraph/accept", where), "diff": proposed["diff"]}

    async def _retry(self, wanted: Wanted) -> Any:
        which = {"node": wanted.node} if wanted.node is not None else {"all": True}
        return await self._do("workgraph/retry", {"graph": await self._graph(wanted), **which})

    async def _path(self, wanted: Wanted) -> str:
        if wanted.uri is None:
            name = wanted.graph
            path = await self._call().daemon.view(lambda state: find_graph(state, name).source.path)
            if path is None:
                raise Refused("notFound", t("this graph did not come from a file"), t("name a file by its uri"))
            return path
        path = file_path(wanted.uri)
        if path is None:
            raise Refused("unsavedChanges", t("this text is in no file yet"), t("save it first"))
        return path

    async def _check_saved(self, uri: str | None, path: str) -> None:
        """What runs is what was saved: an editor whose text differs is told so. Line ends do not count."""
        document = self._documents.get(uri) if uri is not None else None
        if document is None:
            return
        try:
            saved = await asyncio.to_thread(Path(path).read_bytes)
        except FileNotFoundError:
            saved = b""
        except OSError:
            return  # the run itself says what is wrong with it
        if _plain(saved.decode(errors="replace")) != _plain(document.text.text):
            name = os.path.basename(path)  # noqa: PTH119 -- the client's own path, as it wrote it
            raise Refused("unsavedChanges", t("{name} has changes that are not saved", name=name), t("save it first"))

    async def _graph(self, wanted: Wanted) -> str | None:
        """The graph that is named, else the newest that came from the file; None leaves it to the only live one."""
        if wanted.graph is not None or wanted.uri is None:
            return wanted.graph
        real = _real_path(wanted.uri)
        found = await self._call().daemon.view(lambda state: newest_from(state, real))
        if found is None:
            raise Refused("notFound", t("nothing runs from this file"), t("graphd.run starts it"))
        return found.id

    # ---- output ---------------------------------------------------------------------------------------------------

    async def _open_output(self, wanted: Wanted) -> Json:
        graph, node = await self._graph(wanted), wanted.node
        if node is None:
            trouble = bad_field("node", t("missing"), expected=t("a node"), got=t("nothing"))
            raise ParamsRefused([trouble])

        def read(state: State) -> tuple[str, str, int]:
            found = find_graph(state, graph)
            known = find_node(found, node)
            return found.id, known.slug, known.last_number

        graph_id, slug, number = await self._call().daemon.view(read)
        text, ending = await self._text_of(graph_id, slug)
        folder = self._call().daemon.folder / "shown" / graph_id
        path = await asyncio.to_thread(_write, folder, f"{slug}@{number}.{ending}", text)
        self._copies.append(path)
        self._show(path.as_uri())
        return {"uri": path.as_uri(), "text": text}

    async def _text_of(self, graph: str, slug: str) -> tuple[str, str]:
        """The captured result; what it printed where it has none."""
        where = {"graph": graph, "node": slug}
        try:
            result = await self._do("workgraph/output", {**where, "offset": 0, "limit": OUTPUT_LIMIT_BYTES})
        except Refused as refusal:
            if refusal.code != "notFound":
                raise
            items = (await self._do("workgraph/observe", where))["items"]
            return "".join(item.get("text", "") for item in items), "txt"
        return result["text"], _ENDINGS.get(result["mediaType"], "txt")

    def close(self) -> None:
        """The copies that were made for this editor go with it."""
        for path in self._copies:
            path.unlink(missing_ok=True)
        self._copies.clear()


def _wanted(arguments: list[Any], *, takes_inputs: bool) -> Wanted:
    """One object, or nothing. Raises ParamsRefused."""
    given = arguments[0] if arguments else {}
    if len(arguments) > 1 or not isinstance(given, dict):
        trouble = bad_field(
            "arguments", t("must be one object"), expected="[{uri?, graph?, node?}]", got=shown(arguments)
        )
        raise ParamsRefused([trouble])
    troubles = []
    for name, value in given.items():
        is_known = name in ("uri", "graph", "node") or takes_inputs and name == "inputs"
        expected = t("an object") if name == "inputs" else t("a string") if is_known else t("uri, graph or node")
        if not is_known or value is not None and not isinstance(value, dict if name == "inputs" else str):
            message = t("must be {expected}", expected=expected) if is_known else t("unknown field")
            troubles.append(bad_field(f"arguments.0.{name}", message, expected=expected, got=value))
    if troubles:
        raise ParamsRefused(troubles)
    return Wanted(**{name: value for name, value in given.items() if value is not None})


def _real_path(uri: str) -> str:
    path = file_path(uri)
    return os.path.realpath(path) if path is not None else ""


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _write(folder: Path, name: str, text: str) -> Path:
    """A copy to look at: the captured file itself stays out of editors, since other attempts read it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path
