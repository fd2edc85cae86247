"""Every check, and how some of them are selected."""
