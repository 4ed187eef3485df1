"""The driver `acp`: any agent that speaks the Agent Client Protocol, version 1, as a fold over the journal.

`fold` takes records and makes facts; `opening` is the way from the first line to the first prompt, `turns` how a turn
ends, `updates` what the agent tells, `asking` what it asks for. What all of these remember is one `state`, which can
be written down whole, so that the journal can be trimmed. Source: execution.md, Drivers, How a turn ends.
"""
