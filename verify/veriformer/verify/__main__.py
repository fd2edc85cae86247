"""``python -m veriformer.verify``: the same as ``veriformer verify``."""

from veriformer.verify.cli import verify

if __name__ == "__main__":
    verify(prog_name="python -m veriformer.verify")
