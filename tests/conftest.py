"""Being here puts this folder on the import path: tests of all folders share the modules beside this file."""
