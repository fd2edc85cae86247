"""Results of a run: the record on disk, and its forms for other tools."""

from veriformer.verify.results.record import (
    SCHEMA_NAME,
    Counterexample,
    Result,
    Results,
    json_safe,
    json_text,
    read,
    schema,
    validate,
    write,
    write_json,
)
from veriformer.verify.results.shard import Shard
from veriformer.verify.results.verdict import BLOCKING, VIOLATIONS, Status, Verdict

__all__ = [
    "BLOCKING",
    "SCHEMA_NAME",
    "VIOLATIONS",
    "Counterexample",
    "Result",
    "Results",
    "Shard",
    "Status",
    "Verdict",
    "json_safe",
    "json_text",
    "read",
    "schema",
    "validate",
    "write",
    "write_json",
]
