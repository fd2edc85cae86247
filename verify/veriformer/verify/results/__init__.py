"""What a run found: its record on disk, and how it is shown."""

from veriformer.verify.results.record import (
    BLOCKING,
    SCHEMA_NAME,
    VIOLATIONS,
    Counterexample,
    Result,
    Results,
    Status,
    json_safe,
    read,
    schema,
    validate,
    write,
    write_json,
)

__all__ = [
    "BLOCKING",
    "SCHEMA_NAME",
    "VIOLATIONS",
    "Counterexample",
    "Result",
    "Results",
    "Status",
    "json_safe",
    "read",
    "schema",
    "validate",
    "write",
    "write_json",
]
