"""Construction and calls of a model: the contract's `causal_lm`, with and without a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from veriformer.bench.operations.family import Call, Operation, Sizes

_RATE = 1e-4


class NoCacheError(Exception):
    """The model returns no `past_key_values` where it is asked for them."""

    def __init__(self) -> None:
        super().__init__("the model gives no cache")


def build(made: Any, device: str = "cpu", *, train: bool = False) -> Any:
    """Return the model itself, or what a factory gives."""
    torch.manual_seed(0)
    model = made if isinstance(made, torch.nn.Module) else made()
    here = {x.device.type for x in (*model.parameters(), *model.buffers())}
    if device != "cpu" or here - {"cpu"}:  # parameters without memory cannot always be exchanged for themselves
        model = model.to(device)
    return model.train(train)


def logits(result: Any) -> torch.Tensor:
    """Return a model's logits, from a tensor or an object's attribute."""
    found: torch.Tensor = getattr(result, "logits", result)
    return found


def vocabulary(model: Any, device: str = "cpu") -> int:
    """Return the size of the vocabulary, as the model's logits tell."""
    with torch.no_grad():
        return int(logits(model(torch.zeros(1, 2, dtype=torch.int64, device=device))).shape[-1])


def cached(model: Any, ids: torch.Tensor, past: Any = None) -> Any:
    """Call the model from a cache, or from none, and require one in its result. Raises NoCacheError."""
    result = model(ids, use_cache=True) if past is None else model(ids, past_key_values=past, use_cache=True)
    if getattr(result, "past_key_values", None) is None:
        raise NoCacheError
    return result


def training_step(model: Any, optimizer: Any, ids: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Return a run of forward, next-token loss, backward and a step of the optimizer."""

    def run() -> torch.Tensor:
        found = logits(model(ids[:, :-1]))
        loss = torch.nn.functional.cross_entropy(found.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()

    return run


def forward(made: Operation, s: Sizes) -> Call:
    """Return the call that computes logits of n tokens."""
    model, ids = _ready(made, s["B"], s["n"])
    return _call(model, ids, lambda: logits(model(ids)))


def training(made: Operation, optimizer: Operation, s: Sizes) -> Call:
    """Return a step of training over n tokens, by an optimizer whose state is there."""
    model, ids = _ready(made, s["B"], s["n"] + 1, train=True)
    params = [p for p in model.parameters() if p.requires_grad]
    made = optimizer(params, _RATE)
    with torch.no_grad():
        model(ids[:, :-1])  # what a model keeps by length, it has
    training_step(model, made, ids[:, :3])()
    return Call(
        training_step(model, made, ids),
        [ids, *model.parameters(), *(p.grad for p in params if p.grad is not None)],
        gradients=False,
    )


def prefill(made: Operation, s: Sizes) -> Call:
    """Return the call that computes logits of n tokens, and a cache of them."""
    model, ids = _ready(made, s["B"], s["n"])

    def run() -> object:
        result = cached(model, ids)
        return logits(result), result.past_key_values

    return _call(model, ids, run)


def held(made: Operation, s: Sizes) -> Call:
    """Return the cache of n tokens alone."""
    model, ids = _ready(made, s["B"], s["n"])
    return _call(model, ids, lambda: cached(model, ids).past_key_values)


def step(made: Operation, s: Sizes) -> Call:
    """Return the token t: the one before, which may allocate a capacity, is not counted."""
    model, ids = _ready(made, s["B"], s["t"])
    with torch.no_grad():
        past = cached(model, ids[:, :-2]).past_key_values
        past = cached(model, ids[:, -2:-1], past).past_key_values
    return _call(model, ids, lambda: logits(cached(model, ids[:, -1:], past)))


def step_without_cache(made: Operation, s: Sizes) -> Call:
    """Return the token t, for which all before it are read again."""
    model, ids = _ready(made, s["B"], s["t"])
    return _call(model, ids, lambda: logits(model(ids))[:, -1:])


def generation(made: Operation, s: Sizes) -> Call:
    """Return the tokens 1 to s, one call for each, with a cache."""
    model, ids = _ready(made, 1, s["s"])

    def run() -> object:
        past, found = None, []
        for i in range(s["s"]):
            result = cached(model, ids[:, i : i + 1], past)
            past = result.past_key_values
            found.append(logits(result))
        return found

    return _call(model, ids, run)


def generation_without_cache(made: Operation, s: Sizes) -> Call:
    """Return the call that generates s tokens without a cache: every step reads all tokens so far."""
    model, ids = _ready(made, 1, s["s"])
    return _call(model, ids, lambda: [logits(model(ids[:, : i + 1]))[:, -1:] for i in range(s["s"])])


def _ready(made: Operation, batch: int, length: int, *, train: bool = False) -> tuple[Any, torch.Tensor]:
    """Return the model, and ids of which any vocabulary has both."""
    return build(made, train=train), torch.randint(2, (batch, length))


def _call(model: Any, ids: torch.Tensor, run: Callable[[], Any]) -> Call:
    def without_graph() -> Any:
        with torch.no_grad():
            return run()

    return Call(without_graph, [ids, *model.parameters(), *model.buffers()], gradients=False)
