"""The head of the page: what the graph is, how it stands, what it used, and what has to be said first."""

import time
from typing import Any, Final

from graphd.base.text import t
from graphd.cli.closing import final_output
from graphd.cli.page.drawing import MARKS, anchor
from graphd.cli.page.markup import Markup, join, table, tag
from graphd.cli.page.taking import Taken
from graphd.cli.page.timeline import bars
from graphd.cli.speech import say
from graphd.cli.tree import arranged, counts_text
from graphd.cli.words import duration

Wire = dict[str, Any]
_MODES: Final = {"withFailures": t("with failures"), "rejected": t("rejected"), "ok": t("ok")}


def moment(ms: int) -> Markup:
    """A time for people and for programs."""
    local = time.localtime(ms / 1000)
    return tag(
        "time", time.strftime("%Y-%m-%d %H:%M:%S %z", local), datetime=time.strftime("%Y-%m-%dT%H:%M:%S%z", local)
    )


def state(word: str) -> Markup:
    """A state with its mark and colour; the word is said too, so colour is never all there is."""
    mark = MARKS.get(word)
    return tag("span", f"{mark} {word}" if mark else word, class_=f"state {word}")


def facts(*rows: tuple[str, str | None]) -> Markup:
    """Names and values; without a value there is no row."""
    shown = [join(tag("dt", name), tag("dd", value)) for name, value in rows if value]
    return tag("dl", *shown)


def head(taken: Taken) -> Markup:
    """Title, state and times."""
    snapshot = taken.snapshot
    end = snapshot["updatedAt"] if taken.is_ended else taken.at_ms
    result = final_output(snapshot)
    source = snapshot["source"]
    outcome = snapshot.get("outcome")
    told = facts(
        (say(t("Status")), join(state(snapshot["status"]), f", {say(_MODES[outcome])}" if outcome else None)),
        (say(t("Reason")), snapshot.get("pauseReason")),
        (say(t("Nodes")), counts_text(snapshot["counts"])),
        (say(t("Result")), tag("a", result, href=f"#{anchor(result)}") if result in taken.outputs else None),
        (say(t("Started")), moment(snapshot["createdAt"])),
        (say(t("Ended")) if taken.is_ended else say(t("Last change")), moment(snapshot["updatedAt"])),
        (say(t("Took")) if taken.is_ended else say(t("So far")), duration(end - snapshot["createdAt"])),
        (say(t("Source")), source.get("name") or source["kind"]),
        (say(t("Owner")), snapshot.get("owner")),
        (say(t("Graph")), tag("code", snapshot["id"])),
        (say(t("Plan version")), str(snapshot["planVersion"])),
    )
    objective = snapshot["objective"]
    return join(
        tag("h1", snapshot["title"]),
        banner(taken),
        tag("pre", objective) if objective and objective != snapshot["title"] else None,
        told,
    )


def banner(taken: Taken) -> Markup | None:
    """Where the graph goes on after the page was written, it says so first."""
    if taken.is_ended:
        return None
    then = moment(taken.at_ms)
    running = taken.snapshot["status"] == "active"
    words = t("This graph was still running when the page was written:") if running else t(
        "This graph had not ended when the page was written:"
    )  # fmt: skip
    return tag("p", f"{say(words)} ", then, class_="banner", role="note")


def spending(taken: Taken) -> Markup:
    """What was used, and what may be."""
    spent, budget = taken.snapshot["spent"], taken.snapshot.get("budget") or {}
    cost, bound = spent["costUsd"], budget.get("costUsd")
    partial = f" {say(t('(some is not known)'))}" if spent.get("costIsPartial") else ""
    rows = [
        [say(t("tokens")), f"{spent['tokens']:,}", _bound(f"{budget['tokens']:,}" if "tokens" in budget else None)],
        [say(t("cost")), (say(t("not known")) if cost is None else f"{cost:.4f} USD" if cost else "0 USD") + partial,
         _bound(None if bound is None else f"{bound:.2f} USD")],
        [say(t("time at work")), duration(spent["wallMs"]),
         _bound(duration(budget["wallSeconds"] * 1000) if "wallSeconds" in budget else None)],
    ]  # fmt: skip
    return table(say(t("What was used, and what may be")), ["", say(t("used")), say(t("at most"))], rows)


def _bound(text: str | None) -> str:
    return text or say(t("no limit"))


def node_table(taken: Taken) -> Markup:
    """The picture's twin: every node in the order of the work."""
    rows = [
        [tag("a", node["slug"], href=f"#{anchor(node['slug'])}"), state(node["state"]), ", ".join(node["needs"]),
         str(node["attempts"]), _ran(node, taken.at_ms)]
        for node, _ in arranged(taken.nodes)
    ]  # fmt: skip
    head_ = [t("node"), t("state"), t("needs"), t("attempts"), t("time")]
    return table(say(t("Nodes, each after what it needs")), [say(word) for word in head_], [list(row) for row in rows])


def _ran(node: Wire, now_ms: int) -> str:
    start = node.get("startedAt")
    return duration((node.get("endedAt") or now_ms) - start) if start else ""


def bar_table(taken: Taken) -> Markup | None:
    """The timeline's twin."""
    begun = taken.snapshot["createdAt"]
    rows = [
        [tag("a", bar.name, href=f"#{anchor(bar.slug)}"), f"+{duration(bar.queued_ms - begun)}",
         duration(bar.started_ms - bar.queued_ms), duration(bar.ran_ms), bar.said]
        for bar in bars(taken)
    ]  # fmt: skip
    head_ = [t("attempt"), t("came after"), t("queued"), t("at work"), t("came to")]
    return (
        table(say(t("Attempts, in the order of their coming")), [say(word) for word in head_], rows) if rows else None
    )
