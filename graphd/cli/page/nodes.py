"""A section for each node: what is to be done, where it stands and why, its attempts, what goes in, what came out."""

from typing import Any

from graphd.base.text import t
from graphd.cli.page.drawing import anchor
from graphd.cli.page.facts import facts, moment, state
from graphd.cli.page.markup import Markup, join, table, tag
from graphd.cli.page.taking import Printed, Taken
from graphd.cli.speech import say
from graphd.cli.words import SKIP_WORDS, duration, short_id, size

Wire = dict[str, Any]


def sections(taken: Taken) -> Markup:
    """All nodes, in plan order."""
    needed_by: dict[str, list[str]] = {}
    for node in taken.nodes:
        for need in node["needs"]:
            needed_by.setdefault(need, []).append(node["slug"])
    return join(*(_section(taken, node, needed_by.get(node["slug"], [])) for node in taken.nodes))


def _section(taken: Taken, node: Wire, dependants: list[str]) -> Markup:
    slug = node["slug"]
    title = node["title"] if node["title"] != slug else None
    heading = tag("h3", slug, f": {title}" if title else None, "  ", state(node["state"]), id=f"{anchor(slug)}-name")
    return tag(
        "article", heading, _facts(node, dependants), _reasons(taken, node),
        _titled(say(t("What is to be done")), tag("pre", node["spec"], tabindex="0")) if node["spec"] else None,
        _inputs(taken, node), _attempts(taken, node), _output(taken, node),
        _asks([ask for ask in taken.asks if ask.get("node") == slug], taken),
        id=anchor(slug), aria_labelledby=f"{anchor(slug)}-name",
    )  # fmt: skip


def _titled(title: str, *content: Markup | None) -> Markup:
    return join(tag("h4", title), *content)


def _facts(node: Wire, dependants: list[str]) -> Markup:
    started, ended = node.get("startedAt"), node.get("endedAt")
    spent = node["spent"]
    return facts(
        (say(t("Worker")), node["worker"]),
        (say(t("Required")), say(t("yes, what needs it is blocked where it fails")) if node["required"] else None),
        (say(t("Needs")), _links(node["needs"])),
        (say(t("Needed by")), _links(dependants)),
        (say(t("Condition")), tag("code", node["condition"]) if node.get("condition") else None),
        (say(t("Verdict")), node.get("verdict")),
        (say(t("Started")), moment(started) if started else None),
        (say(t("Took")), duration(ended - started) if started and ended and ended >= started else None),
        (say(t("tokens")), f"{spent['tokens']:,}" if spent["tokens"] else None),
    )


def _links(slugs: list[str]) -> Markup | None:
    if not slugs:
        return None
    linked = [tag("a", slug, href=f"#{anchor(slug)}") for slug in slugs]
    return join(*(join(", " if place else None, link) for place, link in enumerate(linked)))


def _reasons(taken: Taken, node: Wire) -> Markup | None:
    """Why it is not achieved, and what to type next."""
    if node["state"] == "achieved":
        return None
    failure = node.get("failure")
    said = [join(f"{failure['class']}: {failure['reason']}")] if failure else []
    if node.get("skip"):
        said.append(join(SKIP_WORDS.get(node["skip"], node["skip"])))
    for why in taken.reasons.get(node["slug"], []):
        told = failure is not None and why["detail"].startswith(failure["class"])
        next_ = join(" ", tag("code", why["next"])) if why.get("next") else None
        if not told:
            said.append(join(why["detail"], next_))
    return _titled(say(t("Why it is not achieved")), tag("ul", *(tag("li", one) for one in said))) if said else None


def _inputs(taken: Taken, node: Wire) -> Markup | None:
    rows = [
        [tag("a", need, href=f"#{anchor(need)}"), size(taken.outputs[need].total)]
        for need in node["needs"]
        if need in taken.outputs
    ]
    item = node.get("item")
    own = join(tag("p", say(t("the item {index} of {node}:", index=item["index"], node=item["of"]))),
               tag("pre", item["value"], tabindex="0")) if item else None  # fmt: skip
    if not rows and own is None:
        return None
    listed = table(say(t("What it reads")), [say(t("the output of")), say(t("size"))], [list(r) for r in rows])
    return join(own, listed if rows else None)


def _attempts(taken: Taken, node: Wire) -> Markup | None:
    rows = [
        [attempt["id"] + ("" if attempt["role"] == "worker" else f" {attempt['role']}"),
         state(attempt.get("outcome") or attempt["state"]), moment(attempt["startedAt"]),
         duration((attempt.get("endedAt") or taken.at_ms) - attempt["startedAt"]), _came_to(attempt)]
        for attempt in taken.attempts.get(node["slug"], [])
    ]  # fmt: skip
    head = [t("attempt"), t("came to"), t("Started"), t("time"), t("what happened")]
    return table(say(t("Attempts")), [say(word) for word in head], rows) if rows else None


def _came_to(attempt: Wire) -> str:
    parts = [attempt.get("failureClass"), attempt.get("reason")]
    if attempt.get("exitCode") and not attempt.get("reason"):
        parts.append(say(t("exit code {code}", code=attempt["exitCode"])))
    if attempt.get("stuckPids"):
        parts.append("pid " + ", ".join(map(str, attempt["stuckPids"])))
    return ": ".join(part for part in parts if part)


def _output(taken: Taken, node: Wire) -> Markup | None:
    printed = taken.outputs.get(node["slug"])
    findings = node.get("findings")
    sent_back = _titled(say(t("What the gate found")), tag("pre", findings, tabindex="0")) if findings else None
    if printed is None:
        return sent_back
    return join(_titled(say(t("What it made")), *_text(taken, node, printed)), sent_back)


def _text(taken: Taken, node: Wire, printed: Printed) -> list[Markup | None]:
    whole = f"graphd output {node['slug']} --graph {short_id(taken.snapshot['id'])}"
    if printed.text is None:
        said = t("binary, {size}: not shown;", size=size(printed.total))
        return [tag("p", f"{say(said)} ", tag("code", whole), class_="quiet")]
    if not printed.total:
        return [tag("p", say(t("nothing")), class_="quiet")]
    note = None
    if printed.shown < printed.total:
        said = t("cut: the first {shown} of {size}; all of it:", shown=size(printed.shown), size=size(printed.total))
        note = tag("p", f"{say(said)} ", tag("code", whole), class_="quiet")
    name = say(t("the output of {node}", node=node["slug"]))
    return [tag("pre", printed.text, tabindex="0", role="region", aria_label=name), note]


def _asks(asks: list[Wire], taken: Taken) -> Markup | None:
    return ask_table(asks, taken, say(t("What was asked"))) if asks else None


def ask_table(asks: list[Wire], taken: Taken, caption: str) -> Markup:
    """Questions, and who answered what, when."""
    rows = [
        [ask["title"], ask.get("node", ""), moment(ask["openedAt"]), _answer(ask),
         moment(taken.answered[ask["id"]]) if ask["id"] in taken.answered else ""]
        for ask in asks
    ]  # fmt: skip
    head = [t("question"), t("node"), t("asked"), t("answer"), t("answered")]
    return table(caption, [say(word) for word in head], rows)


def _answer(ask: Wire) -> str:
    if ask["state"] == "open":
        return say(t("not answered yet"))
    if ask["state"] == "withdrawn":
        return say(t("withdrawn"))
    labels = {option["id"]: option["label"] for option in ask["options"]}
    option = str(ask.get("option") or "")
    said = str(ask.get("text") or labels.get(option, option))
    scope = ask.get("scope")
    parts = [said + (f" ({scope})" if scope and scope != "once" else ""), ask.get("comment")]
    who = ask.get("answeredBy")
    parts.append(say(t("by {who}", who=who)) if who else None)
    return "; ".join(part for part in parts if part)
