"""Sources: where edges come from.

`source` is the protocol of a URL scheme and of a file format, `registry` maps schemes and file endings to their
classes, and each other module is one format. The rules that all formats of text share:

- A row is a line. Empty lines are skipped, a carriage return before the newline is not part of the row, and the
  last line needs no newline. A byte order mark at the beginning of a file is skipped.
- `.tsv` has no quoting, `.csv` has quotes as usual but no newline inside them. In both, vertices are strings; in
  `.jsonl` and `.parquet` they keep their type, and the string "7" is another vertex than the integer 7.
- An empty name is a missing field. A NUL is a character like any other.
- In a damaged file the rows before the damage are used, the line that the damage cuts is a reject, and then
  the error is raised.
"""
