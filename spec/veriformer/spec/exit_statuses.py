"""Exit statuses of ``veriformer verify``."""

from collections.abc import Mapping

EXIT_STATUSES: Mapping[str, str] = {
    "0": "It holds, perhaps with weaknesses and advice (unless `--fail-on` or `--strict` asks for more). With"
    " `--shard`: all rows of the part are finished, whatever came of them; the verdict is that of "
    "`veriformer merge`.",
    "1": "It is violated: a finding is wrong, a leak or fragile. Also where `-x` or `--maxfail` stopped at "
    "rows that failed.",
    "2": "Unusable arguments, or a target that cannot be loaded. Nothing was judged.",
    "3": "No verdict. The run is invalid (rows are missing, or the suite itself made an error); nothing is "
    "provided; the equation of an operation held in no dtype; a law of who sees whom could tell nothing;"
    " a mask, a cache, a state or a branch of the code was not seen; what has the name of an operation "
    "could not be judged as it; or no formula of an optimizer or scheduler is known (the last three unless "
    "`--partial` accepts that).",
    "130": "Interrupted. What was finished is saved, its findings are told; go on with `--resume`.",
}


def told() -> str:
    """Return them for the end of a help page, a paragraph each."""
    return "Exit status:\n\n" + "\n\n".join(f"{number}: {meaning}" for number, meaning in EXIT_STATUSES.items())
