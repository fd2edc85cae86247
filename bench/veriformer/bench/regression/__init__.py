"""Whether something got slower: two versions that take turns in fresh processes."""
