"""warmup_cosine on transformers: half as many steps again after the last, the rate is at a half of its peak."""

from veriformer.verify import load

target = load("transformers").implementation

observed = target.warmup_cosine(15, max_lr=1.0, warmup_steps=0, total_steps=10)  # type: ignore[attr-defined]
print("observed", observed, "exact", 0.0)
raise SystemExit("violated" if observed != 0.0 else 0)
