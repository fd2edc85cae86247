"""``generate`` of a model is judged by the model's own forward pass; each fault is seen by the due law."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status
from veriformer.verify.scripts.model_drivers import settings_of
from veriformer.verify.targets.loading import wrap

PROFILE = Profile(name="red", examples=40, shrinks=0, timeout_s=60)  # a model's rows take a seventh of that
V, WINDOW = 11, 24


class Right(nn.Module):
    """Logits by a causal average of embeddings, and texts as people write their generation."""

    def __init__(self) -> None:
        super().__init__()
        self.block_size = WINDOW
        self.wte, self.wpe = nn.Embedding(V, 8), nn.Embedding(WINDOW, 8)
        self.mix, self.head = nn.Linear(16, 16), nn.Linear(16, V)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]) % WINDOW)
        past = x.cumsum(1) / torch.arange(1, 1 + idx.shape[1]).to(x.dtype)[:, None]
        logits: Tensor = self.head(self.mix(torch.cat((x, past), -1)).tanh())
        return logits

    def crop(self, idx: Tensor) -> Tensor:
        return idx[:, -WINDOW:]

    def kept(self, logits: Tensor, top_k: int | None) -> Tensor:
        if top_k is None:
            return logits
        least = logits.topk(min(top_k, V)).values[:, [-1]]
        return logits.masked_fill(logits < least, -torch.inf)

    def drawn(self, logits: Tensor, temperature: float, top_k: int | None) -> Tensor:
        return torch.multinomial(self.kept(logits / temperature, top_k).softmax(-1), 1)

    @torch.no_grad()
    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        for _ in range(max_new_tokens):
            idx = torch.cat((idx, self.drawn(self(self.crop(idx))[:, -1], temperature, top_k)), 1)
        return idx


class OneBehind(Right):
    """Each token comes from the logits before the last ones, as from a cache that is a position off."""

    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        start = idx
        for _ in range(max_new_tokens):
            logits = self(self.crop(idx))
            here = logits[:, -1] if idx is start else logits[:, -2]
            idx = torch.cat((idx, self.drawn(here, temperature, top_k)), 1)
        return idx


class DropsOne(Right):
    def crop(self, idx: Tensor) -> Tensor:
        return idx if idx.shape[1] <= WINDOW else idx[:, -WINDOW + 1 :]


class CropsEarly(Right):
    def crop(self, idx: Tensor) -> Tensor:
        return idx[:, -6:]


class AfterSoftmax(Right):
    def drawn(self, logits: Tensor, temperature: float, top_k: int | None) -> Tensor:
        p = self.kept(logits, top_k).softmax(-1) / temperature
        return torch.multinomial(p / p.sum(-1, keepdim=True), 1)


class Warmer(Right):
    def drawn(self, logits: Tensor, temperature: float, top_k: int | None) -> Tensor:
        return super().drawn(logits, temperature**0.5, top_k)


class OneMore(Right):
    def kept(self, logits: Tensor, top_k: int | None) -> Tensor:
        return super().kept(logits, top_k and (top_k + 1 if top_k > 1 else 1))


class OneLess(Right):
    def kept(self, logits: Tensor, top_k: int | None) -> Tensor:
        return super().kept(logits, top_k and max(1, top_k - 1))


class NoTopK(Right):
    def kept(self, logits: Tensor, top_k: int | None) -> Tensor:
        logits.masked_fill(logits < logits.topk(top_k or V).values[:, [-1]], -torch.inf)
        return logits if top_k != 1 else super().kept(logits, 1)


class ChangesPrompt(Right):
    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        found = super().generate(idx, max_new_tokens, temperature, top_k)
        idx[:, 0] = 0
        return found


class OneForAll(Right):
    """All rows of a batch get the token of the first one."""

    def drawn(self, logits: Tensor, temperature: float, top_k: int | None) -> Tensor:
        return super().drawn(logits[:1].expand_as(logits), temperature, top_k)


class GreedyAlone(Right):
    def generate(self, idx: Tensor, max_new_tokens: int) -> Tensor:  # type: ignore[override]
        return super().generate(idx, max_new_tokens, top_k=1)[:, -max_new_tokens:]


class OtherDefaults(Right):
    """Model that draws from three tokens, and from the nucleus of these, where it is not told otherwise."""

    def generate(  # type: ignore[override]
        self, idx: Tensor, max_new_tokens: int, temperature: float = 0.5, top_k: int = 3, top_p: float = 0.4
    ) -> Tensor:
        return super().generate(idx, max_new_tokens, temperature, top_k if top_p == 1.0 else 1)


class OneRow(Right):
    """Model that takes one text at a time, and returns it without a batch axis."""

    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        assert len(idx) == 1
        return super().generate(idx, max_new_tokens, temperature, top_k)[0]


FAULTS = {
    OneBehind: "greedy",
    CropsEarly: "greedy",
    ChangesPrompt: "greedy",
    OneForAll: "greedy",
    DropsOne: "crop",
    AfterSoftmax: "sampled",
    Warmer: "sampled",
    OneMore: "sampled",
    OneLess: "sampled",
    NoTopK: "sampled",
}


def rows_of(kind: Any) -> dict[str, Result]:
    target = wrap(SimpleNamespace(causal_lm=kind))
    rows = [row for row in checks() if row.requirement.slug.partition(".")[2] in ("greedy", "crop", "sampled")]
    rows = [row for row in rows if row.operation == "causal_lm"]
    return {r.requirement.slug[10:]: run_check(CheckRun(r, "fp64"), target, PROFILE, "red", {}) for r in rows}


@pytest.mark.whole
@pytest.mark.parametrize("kind", [Right, OneRow, OtherDefaults])
def test_right_ones_hold(kind: Any) -> None:
    found = {name: row.status for name, row in rows_of(kind).items()}
    assert found == dict.fromkeys(("greedy", "crop", "sampled"), Status.PASS)


def test_one_that_demands_a_tokenizer_is_another_call() -> None:
    class Speaking(Right):
        def generate(self, prompt: str, tokenizer: Any, max_new_tokens: int = 4) -> str:  # type: ignore[override]
            return tokenizer(super().generate(tokenizer(prompt), max_new_tokens))

    assert settings_of(Right()).keys() == {"new", "temperature", "top_k"}
    assert settings_of(Speaking()) == {}


def test_one_that_knows_no_chance_gives_new_tokens_alone() -> None:
    found = {name: row.status for name, row in rows_of(GreedyAlone).items()}
    assert found == {"greedy": Status.PASS, "crop": Status.PASS, "sampled": Status.NOT_APPLICABLE}


@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_a_fault_is_seen_by_the_due_law_first(kind: Any) -> None:
    found = rows_of(kind)
    failed = [name for name, row in found.items() if row.status is not Status.PASS]
    assert failed[:1] == [FAULTS[kind]], {name: (row.status, row.message) for name, row in found.items()}
