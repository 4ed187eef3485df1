"""SQLite: owns the state folder's database and lock, the log, its tables, migrations; it never decides.

The one writer lives in `writer`; `Database` is the open file, `Log` what stands in it. No other package of
ours imports sqlite3 or aiosqlite.
"""
