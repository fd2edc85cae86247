"""Schedule and positions of Huffon/pytorch-transformer-kor-eng: python huffon_schedule.py CLONE

Huffon/pytorch-transformer-kor-eng at 93eea77b9562, model/optim.py and model/ops.py; NumPy on a CPU.
"""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])
from model.optim import ScheduledAdam

width, warm = 512, 4000
group = {"lr": 0.0}
scheduled = ScheduledAdam(SimpleNamespace(param_groups=[group], step=lambda: None), width, warm)
rates = []
for _ in range(2 * warm):
    scheduled.step()
    rates.append(float(group["lr"]))
paper = [width**-0.5 * min(n**-0.5, n * warm**-1.5) for n in range(1, 2 * warm + 1)]
for name, found in (("the code", rates), ("the paper", paper)):
    print(f"{name}: largest rate {max(found):.5f} at step {found.index(max(found)) + 1}")

text = (Path(sys.argv[1]) / "model" / "ops.py").read_text("utf-8")  # which reads a pickle when it is imported
exponent = re.search(r"np\.power\(10000, (.*?)\)\n", text)
print("exponents by column, width 8:", [eval(exponent[1], {"i": i, "hidden_dim": 8}) for i in range(8)])
print("the paper:", [2 * (i // 2) / 8 for i in range(8)])
