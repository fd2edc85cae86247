"""Static summaries of the suite's commands, so that listing them loads none."""

SUMMARIES = {
    "bench": "Count and time an implementation against the predictions of the specification.",
    "campaign": "Run targets under new seeds for some hours, most where most is still to be seen, and say what may be "
    "missed.",
    "compare": "Do two implementations of anything agree?",
    "diff": "Compare two results files, sets or folders of them: findings first, then rows, what is worse first.",
    "explain": "Explain a name that a run gives or takes.",
    "inspect": "Say what is recognised in a file, a module, a package or a class.",
    "merge": "Put the parts of a run together, as if one machine had run it all.",
    "mutants": "Measure the suite by what it catches.",
    "report": "Write what was found as pages that a person reads.",
    "train": "Train a small language model on TEXT, or on a text that is made for it.",
    "verify": "Hold an implementation against the published mathematics.",
}
"""The first paragraph of the help of each command that another package registers."""
