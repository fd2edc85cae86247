"""Domain of a target: the features of calls that it supports, found by a probe, inside which it is judged."""
