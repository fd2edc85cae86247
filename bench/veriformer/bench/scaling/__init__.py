"""How times grow with sizes, against what the specification's costs predict."""
