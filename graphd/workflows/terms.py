"""What a graph is set under: mode and admission, budget, what a failure does. Source: spec workflow.md, Root, Graph.

An admission is the agreed brief of a deep run. Its fingerprint, SHA-256 over its canonical JSON, stays with the graph.
"""

import json
from hashlib import sha256
from typing import Any, Literal

from graphd.base.text import t
from graphd.core.definition import Budget, Terms
from graphd.workflows.diagnostics import Findings
from graphd.workflows.long_form import TERMS
from graphd.workflows.read import Field, Fields


def budget_of(config: Fields) -> Budget | None:
    """The graph's budget; None where it has none."""
    given: Fields = config["budget"].value if "budget" in config else {}
    seconds = given["wall_seconds"].value if "wall_seconds" in given else None
    made = Budget(
        tokens=given["tokens"].value if "tokens" in given else None,
        cost_usd=given["cost_usd"].value if "cost_usd" in given else None,
        wall_ms=round(seconds * 1000) if seconds is not None else None,
    )
    return made if made != Budget() else None


def terms_of(root: Fields, config: Fields, findings: Findings) -> Terms:
    """What the file says of how the graph is run; findings say why it may not start as it is."""
    mode: Literal["standard", "deep"] = root["mode"].value if "mode" in root else "standard"
    admission = root.get("admission")
    if admission is not None:
        _check_admission(admission, findings)
    elif mode == "deep":
        message = t("a deep run starts from an agreed brief, and this file has none")
        findings.error(
            "admission.missing", root["mode"].span, "mode", message, t("add admission, or remove mode: deep")
        )
    given = {key: config[key].value for key in TERMS if key in config}
    return Terms(mode=mode, admission=fingerprint(admission.value) if admission is not None else None, **given)


def fingerprint(admission: Fields) -> str:
    """SHA-256 over all that the brief says, in one form: an absent list and an empty one are the same."""
    return sha256(json.dumps(_brief(admission), sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _brief(fields: Fields) -> dict[str, Any]:
    found = {name: _value(field) for name, field in fields.items()}
    return {name: value for name, value in found.items() if value not in ("", [], {})}


def _value(field: Field) -> Any:
    if isinstance(field.value, dict):
        return _brief(field.value)
    if isinstance(field.value, list):
        return [entry.value for entry in field.value]
    return field.value


def _check_admission(admission: Field, findings: Findings) -> None:
    fields: Fields = admission.value
    verdict = fields["verdict"].value if "verdict" in fields else ""
    if "goal" in fields and not fields["goal"].value.strip():
        goal = fields["goal"]
        findings.error("admission.goal", goal.span, goal.path, t("the goal is blank"), t("say what is to be reached"))
    if verdict == "NOT_READY":
        where = fields["verdict"]
        message = t("the brief is NOT_READY, so the graph can't start")
        hint = t("answer what is open and write READY, or WAIVED with waiver_reason and acknowledged_risks")
        findings.error("admission.notReady", where.span, where.path, message, hint)
    if verdict == "READY" and "blocking_questions" in fields and fields["blocking_questions"].value:
        where = fields["blocking_questions"]
        message = t("READY, but {count} questions have to be answered first", count=len(where.value))
        findings.error("admission.blocked", where.span, where.path, message, t("answer them, or write WAIVED"))
    if verdict == "WAIVED":
        for key in ("waiver_reason", "acknowledged_risks"):
            if not _is_said(fields.get(key)):
                message = t("WAIVED without {key}", key=key)
                where = fields["verdict"]
                findings.error("admission.waiver", where.span, admission.path, message, t("add {key}", key=key))


def _is_said(field: Field | None) -> bool:
    if field is None:
        return False
    texts = [entry.value for entry in field.value] if isinstance(field.value, list) else [field.value]
    return bool(texts) and all(text.strip() for text in texts)
