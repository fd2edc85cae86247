"""Growth of times with sizes, against the predictions from the specification's costs."""
