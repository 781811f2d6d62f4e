"""`python -m driftline` is the command `driftline`."""

from driftline.cli.main import main

if __name__ == "__main__":
    main()
