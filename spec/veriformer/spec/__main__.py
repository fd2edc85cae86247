"""``python -m veriformer.spec``: the same as ``veriformer spec``."""

import sys

from veriformer.spec.cli import main

if __name__ == "__main__":
    main(["spec", *sys.argv[1:]], prog_name="veriformer")
