"""What a Python user would take today, measured on the same edges: Pathway and DuckDB."""
