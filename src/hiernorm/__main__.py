"""`python -m hiernorm`: the command line, where the script `hiernorm` is not on the path."""

from hiernorm.cli import main

if __name__ == "__main__":
    main()
