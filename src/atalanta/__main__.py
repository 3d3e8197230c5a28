"""`python -m atalanta` is the command `atalanta`."""

from atalanta.cli.main import main

if __name__ == "__main__":
    main()
