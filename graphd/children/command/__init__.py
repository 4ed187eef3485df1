"""The driver `command`: programs that do one turn without a person and end, each with its own lines."""
