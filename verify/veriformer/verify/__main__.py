"""``python -m veriformer.verify``: the same as ``veriformer verify``."""

import sys

from veriformer.spec.cli import main

if __name__ == "__main__":
    main(["verify", *sys.argv[1:]], prog_name="veriformer")
