"""Being here puts this folder on the import path: tests of every folder share the evaluators beside this file."""
