"""Used by all, knows nobody: failpoints, text bounds, redaction, clocks. Never imports another package of ours."""
