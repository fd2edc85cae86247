"""Names of the counted quantities of a call."""

FLOPS, MOVED, PEAK, EXTRA, KEPT, CALLS, ALLOCATIONS, WAITS = (
    "FLOPs",
    "bytes moved",
    "peak bytes",
    "peak extra bytes",
    "kept bytes",
    "operator calls",
    "allocations",
    "waits of the host",
)
FORWARD, RECOMPUTED, BETWEEN = "FLOPs before any gradient", "FLOPs computed again", "bytes kept between the passes"
QUANTITIES = (FLOPS, MOVED, PEAK, EXTRA, KEPT, CALLS, ALLOCATIONS, WAITS)
