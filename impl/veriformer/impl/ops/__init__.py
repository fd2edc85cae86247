"""Functions of scores alone: softmax, log-sum-exp, temperature."""
