"""One file for each subcommand of ``bench``, and what they share."""
