"""From the first line to the first prompt: initialize, a session (taken up again or new), its mode and model, the task.

A session that was wanted and can't be taken up again is replaced by a fresh one that is told so, with a summary: never
silently. Not-found is no one code, and one agent answers success for a session that it does not have: where it
offers a list, the list decides. Source: execution.md, Recovery, Drivers; research agents.md §3, §8, §9.
"""

from typing import Any, Final

from graphd.base.text import t
from graphd.children.acp import lines, weather
from graphd.children.acp.asking import say
from graphd.children.acp.state import Made, State
from graphd.children.acp.turns import failed
from graphd.children.acp.wire import mapping, sequence, words
from graphd.children.driver import Order
from graphd.children.telling import told_afresh

LIST_PAGES: Final = 20
SETTINGS: Final = frozenset({"session/set_mode", "session/set_model", "session/set_config_option"})
_CATEGORIES: Final = {"mode": "mode", "model": "model", "thinking": "thought_level"}


def answered(state: State, order: Order, method: str, response: dict[str, Any]) -> list[Made]:
    """The response to one of the requests of the start."""
    result, error = mapping(response.get("result")), response.get("error")
    match method:
        case "initialize":
            return _initialized(state, order, result, error)
        case "session/new":
            return _created(state, order, result, error)
        case "session/resume" | "session/load":
            return _restored(state, order, method.rpartition("/")[2], result, error)
        case "session/list":
            return _listed(state, order, result, error)
    if method in SETTINGS and not state.has_prompted:
        return _set(state, order, error)
    return []


def _initialized(state: State, order: Order, result: dict[str, Any], error: Any) -> list[Made]:
    if error is not None:
        return failed(state, weather.of_error(error, order.quirks.weather))
    version = result.get("protocolVersion")
    if version != lines.PROTOCOL_VERSION:
        reason = t(
            "the agent speaks version {theirs} of its protocol, graphd version {ours}",
            theirs=repr(version)[:40], ours=lines.PROTOCOL_VERSION,
        )  # fmt: skip
        return state.fail("exec_failed", reason)
    offers = mapping(result.get("agentCapabilities"))
    sessions = mapping(offers.get("sessionCapabilities"))
    state.can = {
        "load": offers.get("loadSession") is True,
        "resume": isinstance(sessions.get("resume"), dict),
        "list": isinstance(sessions.get("list"), dict),
    }
    return _restore(state, order) if order.resume_session is not None else [say(lines.new_session(order))]


def _restore(state: State, order: Order) -> list[Made]:
    """The next way back that the agent offers and that was not tried; none left: ask its list, then begin afresh."""
    wanted = order.resume_session or ""
    for how in order.quirks.restore:
        if state.can.get(how) and how not in state.tried:
            state.tried.append(how)
            return [say(lines.restore_session(how, wanted, order))]
    if state.tried and state.can.get("list") and state.list_pages == 0:
        return _list(state, order, None)
    state.why_fresh = state.why_fresh or str(t("the agent offers no way to take up a session again"))
    return [say(lines.new_session(order))]


def _restored(state: State, order: Order, how: str, result: dict[str, Any], error: Any) -> list[Made]:
    if error is not None:
        trouble = weather.of_error(error, order.quirks.weather)
        if trouble.kind in ("weather", "login"):
            return failed(state, trouble)
        state.why_fresh = trouble.words
        return _restore(state, order)
    state.restored = "resumed" if how == "resume" else "loaded"
    if order.quirks.is_restore_doubtful and state.can.get("list"):
        state.list_pages = 0
        return _list(state, order, None)
    # Some answer `{}`, null or another id: the session is the one that was asked for.
    return _opened(state, order, order.resume_session or "", result)


def _list(state: State, order: Order, cursor: str | None) -> list[Made]:
    state.list_pages += 1
    return [say(lines.list_sessions(order, cursor))]


def _listed(state: State, order: Order, result: dict[str, Any], error: Any) -> list[Made]:
    """After a doubtful success: is it there? After refusals of every way: is it gone, or only not to be had?"""
    found = any(
        mapping(session).get("sessionId") == order.resume_session for session in sequence(result.get("sessions"))
    )
    cursor = words(result.get("nextCursor"))
    if not found and cursor and error is None and state.list_pages < LIST_PAGES:
        return _list(state, order, cursor)
    if state.restored is not None and (found or error is not None):
        return _opened(state, order, order.resume_session or "", {})
    if state.restored is not None:
        state.restored, state.why_fresh = None, str(t("the agent does not know it any more"))
    elif not found and error is None:
        state.why_fresh = str(t("the agent does not know it any more: {said}", said=state.why_fresh))
    return [say(lines.new_session(order))]


def _created(state: State, order: Order, result: dict[str, Any], error: Any) -> list[Made]:
    if error is not None:
        return failed(state, weather.of_error(error, order.quirks.weather))
    session = words(result.get("sessionId"))
    if session is None:
        return state.fail("exec_failed", t("the agent opened a session without an id"))
    state.restored = "new"
    return _opened(state, order, session, result)


def _opened(state: State, order: Order, session: str, result: dict[str, Any]) -> list[Made]:
    """The session stands. Mode, model and thinking are set each time: they are not kept over a load everywhere."""
    state.session = session
    content: dict[str, Any] = {"id": session, "restored": state.restored}
    made: list[Made] = [("session", content)]
    if state.restored == "new" and order.resume_session is not None:
        content["whyFresh"] = state.why_fresh
        text = t(
            "the session {wanted} could not be taken up again: {said}; a fresh one is told what is known of it",
            wanted=order.resume_session, said=state.why_fresh,
        )  # fmt: skip
        made.append(("item", {"kind": "notice", "text": text}))
    state.setup = [
        entry for wants in ("mode", "model", "thinking") for entry in _setting(order, session, wants, result)
    ]
    return made + _next(state, order)


def _setting(order: Order, session: str, wants: str, result: dict[str, Any]) -> list[dict[str, Any]]:
    """How one wish is set here: by the session's own list of it, or by a configuration option of its category."""
    value = {"mode": order.mode, "model": order.model, "thinking": order.thinking}[wants]
    if value is None:
        return []
    options = [mapping(option) for option in sequence(result.get("configOptions"))]
    option = next((o["id"] for o in options if o.get("category") == _CATEGORIES[wants] and words(o.get("id"))), None)
    has_list = bool(result.get("modes" if wants == "mode" else "models"))
    if option is not None and not (has_list and wants != "thinking"):
        line = lines.set_option(session, option, value)
    elif wants == "mode":
        line = lines.set_mode(session, value)
    elif wants == "model":
        line = lines.set_model(session, value)
    else:
        line = lines.set_option(session, "thought_level", value)
    return [{"message": line.message, "wants": wants, "value": value}]


def _set(state: State, order: Order, error: Any) -> list[Made]:
    """One wish was granted or refused. Without its mode an agent would have other rights than those it was given."""
    wants, state.setting = state.setting, None
    if wants is None:
        return []  # not one of ours
    if error is None:
        return _next(state, order)
    said = weather.of_error(error).words
    if wants == "mode" and order.permissions != "full":
        return state.fail("exec_failed", t("the agent refused the mode {mode}: {said}", mode=order.mode, said=said))
    text = t("the agent did not take its {wish}: {said}", wish=wants, said=said)
    return [("item", {"kind": "notice", "text": text}), *_next(state, order)]


def _next(state: State, order: Order) -> list[Made]:
    """The next thing to set, or the first prompt."""
    if state.setup:
        entry = state.setup.pop(0)
        state.setting = entry["wants"]
        return [("say", {"message": entry["message"], "isRequest": True})]
    return [say(lines.prompt(state.session or "", first_text(state, order)))]


def first_text(state: State, order: Order) -> str:
    """The task; for a session that goes on what it is told of its interruption; for a replaced one both."""
    if state.restored in ("resumed", "loaded"):
        return order.interrupted or lines.GO_ON
    if order.resume_session is None:
        return told_afresh(order.told, order.summary) if order.summary else order.told
    known = order.summary or order.interrupted or "Nothing is known of what it did: look at the files first."
    return told_afresh(order.told, known)
