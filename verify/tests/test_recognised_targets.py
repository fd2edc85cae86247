"""Files without names of the contract: recognised by themselves, said first, judged, and pinned by an adapter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from torch import nn

from tests.faulty_forms import form_file
from veriformer.spec.requirement import Weight
from veriformer.verify import TargetError, bind, check, load
from veriformer.verify.cli import verify
from veriformer.verify.commands.inspect import inspect
from veriformer.verify.forms import registry
from veriformer.verify.forms.form import Form, Match
from veriformer.verify.presentation.recognised import lines
from veriformer.verify.presentation.terminal import as_text
from veriformer.verify.results import Status, read
from veriformer.verify.targets.claims import ClaimsWarning
from veriformer.verify.targets.loading import needs_recognition
from veriformer.verify.targets.locating import locate, resolve
from veriformer.verify.targets.source_files import PartlyLoadedWarning, module_of

pytestmark = pytest.mark.usefixtures("warm")
HERE = Path(__file__).parent / "forms"


def run(arguments: list[str]) -> str:
    found = CliRunner().invoke(verify, [*arguments, "--jobs", "1", "--profile", "quick", "--dtype", "fp32"])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.output
    return f"{found.exit_code}\n{found.output}{found.stderr}"


@pytest.mark.whole
def test_a_class_of_a_file_is_recognised_and_judged_by_one_command() -> None:
    said = run([f"{HERE / 'modules.py'}:PositionwiseFeedForward", "--only", "feed_forward.equation"])
    assert said.startswith("0\n"), said
    assert "by itself it was recognised as follows" in said
    assert "PositionwiseFeedForward as modules/feed_forward" in said
    assert said.index("recognised") < said.index("HOLDS")


MIXED = """
import torch
from torch import nn

def silu(x):
    return _gate(x) * x

def _gate(x):
    return torch.sigmoid(x)

def unrelated(logits):
    return logits.tolist()

class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight
"""


def test_what_a_file_offers_beside_a_name_of_the_contract_is_recognised(tmp_path: Path) -> None:
    file = tmp_path / "mixed.py"
    file.write_text(MIXED)
    target = load(str(file))
    assert target.recognised["by_name"] == ["silu"]
    assert [pin["operation"] for pin in target.recognised["recognised"]] == ["rms_norm"]
    assert target.recognised["unknown"] == ["unrelated"]
    assert target.operation("silu") is target.source.silu  # type: ignore[attr-defined]
    again = load(str(file), target.recognised)
    assert again.operation("rms_norm") is not None
    assert again.operation("silu") is not None


def test_what_a_name_of_the_contract_uses_is_a_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "adapter.py"
    file.write_text(MIXED.replace("_gate", "gate") + "\n\ndef rms_norm(x, weight=None, *, eps=1e-5):\n    unrelated\n")
    file.write_text(file.read_text() + "    return (lambda norm: norm)(RMSNorm)(x.shape[-1], eps)(x)\n")
    module, _ = locate(str(file))
    assert not needs_recognition(module)


@pytest.mark.whole
def test_a_faulty_one_is_violated_and_its_script_shows_it_again(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    said = run([f"{form_file('modules_faulty')}:LayerNorm", "--only", "layer_norm.equation", "--json", str(file)])
    assert said.startswith("1\n"), said
    assert "Read as recognised: layer_norm by the nearest reading" in said
    results = read(file)
    assert results.implementation["recognised"][0]["name"] == "LayerNorm"
    example = results.findings[0].counterexample
    assert example is not None
    script = tmp_path / "again.py"
    script.write_text(example["script"])
    ended = subprocess.run([sys.executable, str(script)], env=os.environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "observed" in ended.stdout + ended.stderr


@pytest.mark.whole
def test_a_module_in_memory_is_recognised() -> None:
    found = check(module_of(HERE / "few_faulty.py"), only=["silu.equation"], dtype=["fp32"])
    assert [finding.operation for finding in found.findings] == ["silu"]
    assert "silu: swish as functions/silu" in str(list(lines(found.implementation)))
    assert as_text(found).startswith("VIOLATED")


@pytest.mark.whole
def test_inspect_writes_an_adapter_that_pins_what_was_recognised(tmp_path: Path) -> None:
    file = tmp_path / "adapter.py"
    found = CliRunner().invoke(inspect, [str(HERE / "few_faulty.py"), "--adapter", str(file)])
    assert found.exit_code == 0, found.output
    assert "swish as functions/silu" in found.output
    assert "mask inverted" in found.output.replace("\n", " ")
    pinned = module_of(file)
    assert pinned.causal_mask.__name__ == "causal_mask"
    assert not load(str(file)).recognised
    held = check(pinned, only=["causal_mask.equation"], dtype=["fp32"])
    assert held.exit_status == 0, as_text(held)


@pytest.mark.whole
def test_claims_pin_readings_and_constants(tmp_path: Path) -> None:
    text = (HERE / "modules.py").read_text()
    file = tmp_path / "pinned.py"
    file.write_text(text + "\n\nCLAIMS = {'conventions': {'swiglu.gate': 'second', 'layer_norm.eps': 1e-3}}\n")
    target = load(str(file))
    swiglu = next(pin for pin in target.recognised["recognised"] if pin["operation"] == "swiglu")
    assert swiglu["readings"] == {"gate": "second"}
    assert not swiglu["everywhere"]
    assert target.domain("layer_norm").constants == {"eps": 1e-3}
    file.write_text(text + "\n\nCLAIMS = {'conventions': {'swiglu.gatte': 'second'}}\n")
    with pytest.warns(ClaimsWarning, match="gatte"):
        load(str(file))


def test_a_form_of_another_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    form = Form(
        name="mine/squash",
        operation="silu",
        says="squash(x)",
        match=lambda candidate: Match(True) if candidate.name == "squash" else None,
        bind=lambda candidate, readings: candidate.thing,
    )
    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry("mine", "mine", group, form)])
    registry.every_form.cache_clear()
    try:
        assert registry.form_named("mine/squash") is form
        with pytest.raises(registry.UnknownFormError, match="mine/squash"):
            registry.form_named("mine/squish")
    finally:
        registry.every_form.cache_clear()


class Entry:
    def __init__(self, name: str, value: str, group: str, form: Form) -> None:
        self.entry, self.value, self.form = EntryPoint(name, value, group), value, form

    def load(self) -> Form:
        return self.form


def test_a_program_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        "import torch\nlimit = 2.0\ndata = open('nowhere.bin').read()\n\n"
        "def silu(z):\n    return z * torch.sigmoid(z)\n\nwhile True:\n    pass\n"
    )
    target = load(str(file))
    assert target.operation("silu") is not None
    assert vars(module_of(HERE / "functions.py"))["get_slopes"]


def test_a_program_has_the_tables_that_its_functions_read(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        "import torch\n\ndef made(n):\n    return [float(i) for i in range(n)]\n\n"
        "ONES = made(2)\nTABLE = {}\nfor n in (1, 2):\n    TABLE[n] = made(n)\n\n"
        "def silu(z):\n    return z * torch.sigmoid(z) * ONES[1] * TABLE[2][1]\n\n"
        "shown = made(10 ** 9)\nfor i in range(10 ** 9):\n    print(silu(torch.ones(1)))\n"
    )
    module = resolve(str(file))[0]
    assert module.TABLE == {1: [0.0], 2: [0.0, 1.0]}  # type: ignore[attr-defined]
    assert not hasattr(module, "shown")
    assert module.silu(torch.zeros(1)) == 0  # type: ignore[attr-defined]


def test_a_loop_that_fills_a_table_makes_no_program(tmp_path: Path) -> None:
    file = tmp_path / "slopes.py"
    file.write_text(
        "import torch\nHALVES = []\nfor n in (1, 2):\n    HALVES += [2.0 ** -n]\nSHOWN = str(HALVES).upper()\n"
    )
    assert resolve(str(file))[0].SHOWN == "[0.5, 0.25]"  # type: ignore[attr-defined]


def test_what_is_no_python_is_told_by_its_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("x = 1\ndef silu(x)\n    return x\n")
    with pytest.raises(TargetError, match=r"broken\.py, line 2"):
        load(str(file))


def test_a_file_of_a_package_is_imported_as_part_of_it(tmp_path: Path) -> None:
    package = tmp_path / "some_layers_of_ours"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "shared.py").write_text("import torch\n\n\ndef gate(x):\n    return torch.sigmoid(x)\n")
    (package / "act.py").write_text("from .shared import gate\n\n\ndef swish(x):\n    return x * gate(x)\n")
    assert load(str(package / "act.py")).operation("silu") is not None


def test_a_file_of_a_package_that_cannot_be_imported_whole(tmp_path: Path) -> None:
    """The requirements of another file of the package are not there; this one's own neighbours are."""
    package = tmp_path / "layers_with_a_missing_part"
    package.mkdir()
    (package / "__init__.py").write_text("from .images import show\n")
    (package / "images.py").write_text("import no_such_library\n\n\ndef show(x):\n    no_such_library.show(x)\n")
    (package / "shared.py").write_text("import torch\n\n\ndef gate(x):\n    return torch.sigmoid(x)\n")
    (package / "act.py").write_text("from .shared import gate\n\n\ndef swish(x):\n    return x * gate(x)\n")
    with pytest.raises(TargetError, match="no_such_library"):
        load(str(package / "__init__.py"))
    assert load(str(package / "act.py")).operation("silu") is not None


@pytest.mark.whole
def test_nothing_recognised_is_said(tmp_path: Path) -> None:
    file = tmp_path / "nothing.py"
    file.write_text("def plus(a, b):\n    return a + b\n")
    assert CliRunner().invoke(inspect, [str(file)]).exit_code == 3
    with pytest.raises(TargetError):
        load(str(tmp_path / "missing.py"))


def test_bind_refuses_what_is_not_of_the_form() -> None:
    modules = module_of(HERE / "modules.py")
    with pytest.raises(ValueError, match="form"):
        bind("modules/swiglu", modules.LayerNorm)
    with pytest.raises(ValueError, match="readings"):
        bind("modules/layer_norm", modules.LayerNorm, layout="[B,n,H,d]")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("refuses", "verdict"),
    [("x.numel() and x.detach().reshape(-1)[-1] > 0.8", "violated"), ("x.dim() and x.shape[-1] > 6", "holds")],
    ids=["some calls", "wide ones"],
)
def test_what_recognised_code_raises_by_no_rule_is_a_fault_and_what_it_refuses_is_none(
    tmp_path: Path, refuses: str, verdict: str
) -> None:
    file = tmp_path / "swishes.py"
    code = f"if {refuses}:\n        raise RuntimeError('no')\n    return x * torch.sigmoid(x)"
    file.write_text(f"import torch\n\n\ndef swish(x):\n    {code}\n")
    found = check(module_of(file), only=["silu.equation"], dtype=["fp32"])
    assert found.verdict == verdict, as_text(found)
    raised = [row for row in found.results if str(row.message).startswith("raised")]
    assert {row.status for row in raised} <= {Status.FAIL}
    if verdict == "holds":
        assert "RuntimeError: no" in found.domain["silu"].refused.values()
    else:
        (one,) = found.findings
        assert "raises RuntimeError (no, swishes.py:6) for some calls" in one.what
        assert one.weight is Weight.WRONG


SETTINGS = """
from pathlib import Path

import torch
from torch import nn

SIZE = int(Path("{data}").read_text())


class Settings:
    width = SIZE
"""

LAYERS = """
from settings import *


class RMSNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Settings) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Model(RMSNorm):
    sizes = [SIZE]
"""


@pytest.fixture
def fresh_neighbours() -> Iterator[None]:
    """Modules of this test's own files are forgotten afterwards."""
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in sys.modules.keys() - before:
        del sys.modules[name]


@pytest.mark.whole
@pytest.mark.usefixtures("fresh_neighbours")
def test_what_is_not_there_costs_only_what_rests_on_it_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(SETTINGS.format(data="absent.txt"))
    (tmp_path / "layers.py").write_text(LAYERS)
    with pytest.warns(PartlyLoadedWarning, match=r"FileNotFoundError.*without Model \(NameError.*SIZE"):
        found, _ = locate(str(tmp_path / "layers.py"))
    assert hasattr(found, "RMSNorm")
    assert not hasattr(found, "Model")
    assert "by themselves" in run([str(tmp_path / "layers.py"), "--only", "rms_norm.equation"])


@pytest.mark.usefixtures("fresh_neighbours")
def test_a_file_may_open_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(SETTINGS.format(data="data/size.txt"))
    (tmp_path / "layers.py").write_text(LAYERS)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "size.txt").write_text("7")
    found, _ = locate(str(tmp_path / "layers.py"))
    assert found.Model.sizes == [7]  # type: ignore[attr-defined]


@pytest.mark.whole
def test_where_nothing_is_recognised_that_is_said_and_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "words.py"
    file.write_text("def reversed_words(text):\n    return text.split()[::-1]\n")
    monkeypatch.setattr("veriformer.workers.processes.Processes.run", lambda *_: pytest.fail("a worker was started"))
    said = run([str(file)])
    assert said.startswith("3\n"), said
    assert "nothing in it was recognised: give a function the name" in " ".join(said.split())
    assert "no operation reversed_words" in said
    assert "rows in" in said


@pytest.mark.whole
def test_a_module_without_weights_is_no_model() -> None:
    module = module_of(HERE / "plain_shapes.py")
    assert (
        load(f"{HERE / 'plain_shapes.py'}:DotProductAttention").recognised["recognised"][0]["operation"] == "attention"
    )
    assert needs_recognition(module.DotProductAttention)
    assert not needs_recognition(Small)


class Small(nn.Module):
    """A model that is built from nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.table(ids)
        return found


def test_classes_of_two_files_of_one_name_belong_to_their_own(tmp_path: Path) -> None:
    """Lookups in a class's module, such as a function beside it, are in the file that defines the class."""
    source = "from dataclasses import dataclass\n\n@dataclass\nclass Settings:\n    width: 'int'\n\n"
    found = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "of_one_name.py"
        file.write_text(f"{source}def {folder}(): ...\n")
        found.append((file, module_of(file)))
    for file, module in found:
        own = sys.modules[module.Settings.__module__]
        assert own is module
        assert own.__file__ == str(file)
    file, module = found[0]
    assert module_of(file).__name__ == module.__name__
