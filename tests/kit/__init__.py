"""What tests are made of: workspaces, fake runs, children as programs, the wire."""
