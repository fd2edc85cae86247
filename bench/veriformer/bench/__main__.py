"""``python -m veriformer.bench``: the same as ``veriformer bench``."""

import sys

from veriformer.spec.cli import main

if __name__ == "__main__":
    main(["bench", *sys.argv[1:]], prog_name="veriformer")
