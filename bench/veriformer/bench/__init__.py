"""What an implementation costs, against what the specification predicts."""
