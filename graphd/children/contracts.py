"""What a result has to be, beside being there: declared files, and the JSON of `output_schema` (workflow.md, Node).

A candidate is held to it before its check begins, while its agent lives and can mend it. Every result is again once
the tree is proven empty, before anyone is told that the attempt achieved anything: live and after a recovery alike.
Reads the work tree and the attempt's folder; the one thing it writes is `output`, where the contract makes a lone JSON
value of the last line the result.
"""

import glob
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from graphd.base.text import Text, t
from graphd.children.driver import Fact, Order
from graphd.children.environment import write_private
from graphd.children.results import INLINE_LIMIT, inline
from graphd.core.commands import AttemptEnded
from graphd.core.model import Output

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

BACKTRACK_LIMIT: Final = 100_000
"""Steps of one `pattern` on one text: some ms. Beyond it the text counts as one that does not match."""
NAMED: Final = 5


class ContractBroken(Exception):
    """The result is not what was declared; the reason is for people."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


def checked(order: Order, ended: AttemptEnded) -> AttemptEnded:
    """The end of an attempt, `verdict_fail` where a result breaks its contract. Blocks."""
    if ended.outcome != "achieved" or order.role != "worker":
        return ended
    try:
        _check_artifacts(order)
        return _check_schema(order, ended)
    except ContractBroken as broken:
        return ended._replace(outcome="failed", failure_class="verdict_fail", reason=broken.reason)


def broken_by(order: Order, facts: Iterable[Fact]) -> Text | None:
    """Why the candidate among these facts breaks its contract, while its agent lives and can mend it. Blocks.

    None where there is no candidate, or it is what was declared.
    """
    found = [fact.content for fact in facts if fact.kind == "candidate"]
    if not found or order.role != "worker":
        return None
    try:
        _check_artifacts(order)
        if order.output_schema is not None:
            _fitting(order, order.output_schema, Output(**found[-1]["output"]), f"result.{found[-1]['round']}")
    except ContractBroken as broken:
        return broken.reason
    return None


# ---- files ----------------------------------------------------------------------------------------------------------


def _check_artifacts(order: Order) -> None:
    missing = [glob for glob in order.artifacts if not _is_made(order, glob)]
    if missing:
        more = "" if len(missing) <= NAMED else f" (+{len(missing) - NAMED})"
        named = ", ".join(missing[:NAMED]) + more
        raise ContractBroken(t("declared and not made by this attempt: {globs}", globs=named))


def _is_made(order: Order, pattern: str) -> bool:
    """Something fits the glob that was written since the attempt was committed, which was before its first process."""
    if pattern.startswith("/") or ".." in pattern.split("/"):
        return False
    # Not `Path.glob`: its `**` at the end means folders alone before Python 3.13.
    found = glob.iglob(pattern, root_dir=order.cwd, recursive=True, include_hidden=True)  # noqa: PTH207  # as above
    for name in found:
        try:
            written_ns = (order.cwd / name).stat().st_mtime_ns
        except OSError:
            continue
        if written_ns >= order.started_at_ms * 1_000_000:
            return True
    return False


# ---- JSON -----------------------------------------------------------------------------------------------------------


def _check_schema(order: Order, ended: AttemptEnded) -> AttemptEnded:
    if order.output_schema is None:
        return ended
    found, is_whole = _fitting(order, order.output_schema, ended.output, "output")
    is_known = ended.output is not None and ended.output.media_type == "application/json" and is_whole
    return ended if is_known else ended._replace(output=_kept(order, found))


def _fitting(order: Order, schema: str, output: Output | None, name: str) -> tuple[str, bool]:
    """The JSON in a result that fits the schema, and whether it is all of it. The file `name` has the whole result.

    Raises ContractBroken.
    """
    text = _whole_text(order, output, name)
    try:
        value, found = _value_of(text)
    except ValueError:
        raise ContractBroken(t("its result is no JSON value, which output_schema asks for")) from None
    trouble = first_trouble(schema, value)
    if trouble is not None:
        path, message = trouble
        raise ContractBroken(t("its result breaks output_schema at {path}: {message}", path=path, message=message))
    return found, found == text.strip()


def _whole_text(order: Order, output: Output | None, name: str) -> str:
    if output is None:
        return ""
    if not output.is_cut:
        return output.text
    try:
        with (order.folder / name).open("rb") as file:
            return file.read(order.output_limit_bytes).decode("utf-8", "replace")
    except OSError:
        return output.text


def _value_of(text: str) -> tuple[Any, str]:
    """The JSON value that a text is, else that its last line is; with its own text. ValueError where there is none."""
    last = text.rstrip().rpartition("\n")[2]
    for found in (text.strip(), last.strip()):
        try:
            return json.loads(found, parse_constant=_refuse_constant), found
        except (ValueError, RecursionError):
            continue
    raise ValueError(text[:80])


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _kept(order: Order, text: str) -> Any:
    """The value becomes the result, also in the file that those who need it read."""
    content = text.encode("utf-8", "surrogatepass")
    write_private(order.folder / "output.new", content, becomes=order.folder / "output")
    return inline(content[:INLINE_LIMIT], len(content), "application/json")


def first_trouble(schema: str, value: Any) -> tuple[str, str] | None:
    """Where a value first breaks a JSON Schema of 2020-12, and how; None where it fits. Raises ContractBroken."""
    try:
        validator = _validator(schema)
    except ValueError as trouble:
        said = str(trouble).strip().partition("\n")[0]
        raise ContractBroken(t("its output_schema can't be used: {trouble}", trouble=said)) from trouble
    found = next(validator.iter_errors(value), None)
    if found is None:
        return None
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found.instance_path)
    return f"${place}", found.message[:500]


@lru_cache(maxsize=64)
def _validator(schema: str) -> "Draft202012Validator":
    from jsonschema_rs import Draft202012Validator, FancyRegexOptions  # few nodes have a contract

    patterns = FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
    return Draft202012Validator(json.loads(schema), pattern_options=patterns, retriever=_refuse_outside)


def _refuse_outside(uri: str) -> Any:
    """Nothing is fetched: `$ref` leads inside alone."""
    raise ValueError(f"{uri} is outside of the schema")
