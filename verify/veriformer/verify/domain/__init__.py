"""What a target supports: features of calls, found by a probe, inside which it is judged."""
