"""`python -m meander` is the command `meander`."""

from meander.cli import main

if __name__ == "__main__":
    main()
