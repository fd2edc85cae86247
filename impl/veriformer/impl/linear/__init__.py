"""Linear attention: features in place of the exponential, so that keys can be summed before any query is seen."""
