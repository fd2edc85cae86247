"""Ways to compute with a whole model: in one call, in parts, padded, cached, batched or alone.

A way takes a model and tensors and gives tensors: ``[..., V]``, of which each slice before the last axis is judged by
itself, or a list of such tensors. It uses nothing but torch, for this file is quoted in the scripts that reproduce a
violation. Shapes: ``ids [B, n]``, ``mask [B, n]`` with 1 for real tokens. ``asked`` are the options of ``ask``.
"""

# mypy: ignore-errors

import contextlib
import copy
import inspect
import io

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

DOCUMENTS = ("documents", "document_ids", "sequence_ids", "seq_idx")
"""The names under which models take the number of the document that each token of a row belongs to."""

_BUILT = {}


def build(target, operation, dtype, afresh=False):
    """Return the model of a target in a dtype, in evaluation mode; made once, from one seed where it is a factory.

    afresh: a copy that has never been called.
    """
    found = target if isinstance(target, nn.Module) else getattr(target, operation, target)
    key = id(found), dtype
    if key not in _BUILT:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = copy.deepcopy(found) if isinstance(found, nn.Module) else found()
        model = prepare_model(model, dtype)
        _BUILT[key] = found, model, copy.deepcopy(model)
    return copy.deepcopy(_BUILT[key][2]) if afresh else _BUILT[key][1]


def prepare_model(model, dtype):
    """Convert a model to a dtype, in evaluation mode; its own ``train``, which ``eval`` calls, need not return it."""
    model.eval()
    return model.to(dtype)


def takes(model, *names):
    """Return the first of these names that the model's call has as an argument, or None."""
    known = inspect.signature(model.forward).parameters
    return next((name for name in names if name in known), None)


def ask(model, ids, mask=None, *, positions="mask", source=None, source_mask=None, loudness=1.0, **given):
    """Call the model once. positions: whether they follow from the mask, or the ``"caller"`` gives them.

    loudness: what all embeddings are multiplied with, or by token ``[B, n]`` those of the tokens.
    """
    if mask is not None:
        given[takes(model, "decoder_attention_mask") or "attention_mask"] = mask
    if positions == "caller" and mask is not None and takes(model, "position_ids"):
        given["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    with scaled(model, ids, loudness):
        if takes(model, "decoder_input_ids", "decoder_ids") is None:
            return model(ids, **given)
        given[takes(model, "decoder_input_ids", "decoder_ids")] = ids
        return model(source, source_mask, **given)


@contextlib.contextmanager
def scaled(model, ids, loudness):
    """Scale the outputs of the model's ``nn.Embedding`` modules by ``loudness`` within the context."""

    def scale(module, inputs, output):
        if not isinstance(loudness, torch.Tensor):
            return output * loudness
        if inputs[0].shape == ids.shape and torch.equal(inputs[0], ids):
            return output * loudness[..., None].to(output.dtype)
        return None

    still = not isinstance(loudness, torch.Tensor) and loudness == 1
    found = [] if still else [m for m in model.modules() if isinstance(m, nn.Embedding)]
    hooks = [m.register_forward_hook(scale) for m in found]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def logits_of(output):
    """Return the logits of a model's output."""
    return getattr(output, "logits", output)


def rows_of(asked, rows):
    """Return the options of ``ask`` for some rows of the batch."""
    return {key: x[rows] if isinstance(x, torch.Tensor) else x for key, x in asked.items()}


# Logits


@torch.no_grad()
def whole(model, ids, mask=None, *, length=None, **asked):
    """Compute all logits at once; of the first ``length`` tokens."""
    return logits_of(ask(model, ids, mask, **asked))[:, :length]


@torch.no_grad()
def at(model, ids, mask=None, *, places, lengths=None, **asked):
    """Compute all logits at once, and return some places ``[B, n]``; lengths: of several documents in one row."""
    return logits_of(ask(model, ids, mask, **documents_of(model, lengths), **asked))[places]


@torch.no_grad()
def alone(model, ids, **asked):
    """Compute the logits of each row in a batch of its own."""
    return torch.cat([whole(model, ids[i : i + 1], **rows_of(asked, slice(i, i + 1))) for i in range(len(ids))])


@torch.no_grad()
def real(model, ids, mask, **asked):
    """Compute all logits at once, and return those of real tokens."""
    return logits_of(ask(model, ids, mask, **asked))[mask.bool()]


@torch.no_grad()
def unpadded(model, ids, mask, **asked):
    """Compute the logits of each row alone and without its padding."""
    kept = [ids[i : i + 1, mask[i].bool()] for i in range(len(ids))]
    return torch.cat([whole(model, x, **rows_of(asked, slice(i, i + 1)))[0] for i, x in enumerate(kept)])


@torch.no_grad()
def without_source_padding(model, ids, source, source_mask):
    """Compute the logits of each row alone, its source without padding."""
    kept = [source[i : i + 1, source_mask[i].bool()] for i in range(len(ids))]
    return torch.cat([whole(model, ids[i : i + 1], source=x) for i, x in enumerate(kept)])


@torch.no_grad()
def after_others(model, ids, others, **asked):
    """Compute all logits at once, after a call on other tokens."""
    ask(model, others, **asked)
    return whole(model, ids, **asked)


def after_training(model, ids, **asked):
    """Compute all logits at once, after a step forth and back in training mode."""
    try:
        model.train()
        with torch.random.fork_rng():
            total = logits_of(ask(model, ids, **asked)).sum()
        if total.requires_grad:
            total.backward()
    finally:
        model.eval()
        model.zero_grad()
    return whole(model, ids, **asked)


@torch.no_grad()
def reloaded(model, ids, **asked):
    """Compute all logits at once, by another instance that loaded the state of this one."""
    return whole(read_back(model), ids, **asked)


def read_back(model):
    """Load the saved state of a model into another instance with zeroed parameters."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = another(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


def another(model):
    """Return a second instance, built from another seed where a factory built the first; else a copy.

    What is drawn when a model is built and is not saved differs in the one, and in the other does not.
    """
    for (_, dtype), (found, built, _) in _BUILT.items():
        if built is model and not isinstance(found, nn.Module):
            with torch.random.fork_rng():
                torch.manual_seed(1)
                return prepare_model(
                    copy.deepcopy(found()), dtype
                )  # a copy: a factory may give one model again and again
    return copy.deepcopy(model)


def shared(model):
    """Return the groups of parameter names that share a tensor."""
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return sorted(group for group in names.values() if len(group) > 1)


def ties(model, *, loaded):
    """Return the number of parameter names that share a tensor with another, before or after loading."""
    found = shared(read_back(model) if loaded else model)
    return torch.tensor([[float(sum(len(group) for group in found))]])


@torch.no_grad()
def with_backend(model, ids, mask=None, *, backend, **asked):
    """Compute all logits at once, with one attention backend."""
    with attending(model, backend) as other:
        result = logits_of(ask(other, ids, mask, **asked))
    return result if mask is None else result[mask.bool()]


@contextlib.contextmanager
def attending(model, backend):
    """Yield the model with one attention backend: a copy set by its own switch, or itself under PyTorch's.

    Nothing is compiled meanwhile, which FlexAttention else would be for every shape, and in no double precision.
    """
    if not hasattr(model, "set_attn_implementation"):
        with sdpa_kernel(SDPBackend.MATH) if backend == "MATH" else contextlib.nullcontext():
            yield model
        return
    other = copy.deepcopy(model)  # which need not be put back: not every model says what was set before
    other.set_attn_implementation(backend)
    with torch.compiler.set_stance("force_eager"):
        yield other


@torch.no_grad()
def packed(model, ids, lengths, **asked):
    """Compute the logits of documents of these lengths, packed in one row."""
    return logits_of(ask(model, ids, **documents_of(model, lengths), **asked))


def documents_of(model, lengths):
    """Return the arguments that mark documents of these lengths in one row; empty for None."""
    if lengths is None:
        return {}
    number = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    place = torch.cat([torch.arange(n) for n in lengths])
    name = takes(model, *DOCUMENTS)
    given = {name: number[None]} if name else {}
    if takes(model, "position_ids"):
        given["position_ids"] = place[None]
    return given


@torch.no_grad()
def one_by_one(model, ids, lengths, **asked):
    """Compute the logits of documents of these lengths, each in a call of its own."""
    return torch.cat([whole(model, part, **asked) for part in ids.split(lengths, 1)], 1)


# The cache


def remember(model, ids, mask=None, past=None, **asked):
    """Return the logits of a call that goes on from a cache, and the cache after it."""
    given = {} if past is None else {"past_key_values": past}
    output = ask(model, ids, mask, use_cache=True, **given, **asked)
    return logits_of(output), output.past_key_values


@torch.no_grad()
def in_parts(model, ids, mask=None, *, splits, **asked):
    """Compute the logits part by part through the cache; with a mask, at real tokens."""
    past, found, done = None, [], 0
    for part in ids.tensor_split(splits, 1):
        done += part.shape[1]
        logits, past = remember(model, part, None if mask is None else mask[:, :done], past, **asked)
        found.append(logits)
    result = torch.cat(found, 1)
    return result if mask is None else result[mask.bool()]


@torch.no_grad()
def branched(model, ids, others, *, split, **asked):
    """Compute logits of two continuations of one cache: itself with other tokens, then a copy with these."""
    _, past = remember(model, ids[:, :split], **asked)
    kept = copy.deepcopy(past)
    second, _ = remember(model, others[:, split:], None, past, **asked)
    first, _ = remember(model, ids[:, split:], None, kept, **asked)
    return torch.cat((first, second))


@torch.no_grad()
def unbranched(model, ids, others, *, split, **asked):
    """Compute the logits of ``branched`` without a cache."""
    second = torch.cat((ids[:, :split], others[:, split:]), 1)
    return torch.cat([whole(model, x, **asked)[:, split:] for x in (ids, second)])


@torch.no_grad()
def reordered(model, ids, order, others, *, split, **asked):
    """Compute logits through a cache whose rows were reordered, as beams do."""
    _, past = remember(model, ids[:, :split], **asked)
    reorder = getattr(past, "reorder_cache", None) or past.reorder
    past = reorder(order) or past
    return remember(model, others[:, split:], None, past, **rows_of(asked, order))[0]


@torch.no_grad()
def gathered(model, ids, order, others, *, split, **asked):
    """Compute the logits of ``reordered`` without a cache."""
    rows = torch.cat((ids[order, :split], others[:, split:]), 1)
    return whole(model, rows, **rows_of(asked, order))[:, split:]


# The loss and its gradient


def token_losses(logits, labels):
    """Return −log p of each label that is not −100, computed in fp64."""
    kept = labels != -100
    return nn.functional.cross_entropy(logits.double()[kept], labels[kept], reduction="none")


def loss_of(model, ids, mask, labels, **asked):
    """Return the sum of the losses of all labels."""
    return token_losses(logits_of(ask(model, ids, mask, **asked)), labels).sum()


@torch.no_grad()
def losses(model, ids, mask=None, *, labels, **asked):
    """Return the loss of every label."""
    return token_losses(logits_of(ask(model, ids, mask, **asked)), labels)[:, None]


@torch.no_grad()
def reported_loss(model, ids, mask=None, *, labels, **asked):
    """Return the model's own loss for labels."""
    return ask(model, ids, mask, labels=labels, **asked).loss.double().reshape(1, 1)


@torch.no_grad()
def computed_loss(model, ids, mask=None, *, labels, shift, **asked):
    """Return the mean loss of the labels, from the logits; shift: each token is scored at the one before it."""
    logits = logits_of(ask(model, ids, mask, **asked))
    scored = (logits[:, :-1], labels[:, 1:]) if shift else (logits, labels)
    return token_losses(*scored).mean().reshape(1, 1)


def gradients_of(loss, model):
    """Return the gradient of a loss for every parameter, as rows."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return [g.reshape(1, -1) for g in found]


def gradient_at_once(model, ids, mask, labels, **asked):
    """Return the gradient of the loss of a padded batch."""
    return gradients_of(loss_of(model, ids, mask, labels, **asked), model)


def gradient_in_parts(model, ids, mask, labels, **asked):
    """Return the sum of the gradients of its rows, each alone and without its padding."""
    sums = None
    for i in range(len(ids)):
        kept = mask[i].bool()
        loss = loss_of(model, ids[i : i + 1, kept], None, labels[i : i + 1, kept], **rows_of(asked, slice(i, i + 1)))
        parts = gradients_of(loss, model)
        sums = parts if sums is None else [a + b for a, b in zip(sums, parts, strict=True)]
    return sums


def trained(model, ids, labels, *, seed, checkpointing, **asked):
    """Return the gradient in training mode, with dropout drawn from one seed, with or without checkpoints.

    It is that of a copy, for nothing need switch checkpoints off again.
    """
    other = copy.deepcopy(model)
    other.train()
    if checkpointing:
        other.gradient_checkpointing_enable()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return gradients_of(loss_of(other, ids, None, labels, **asked), other)


def direction(model, seed):
    """Return the parameters, and a random direction in their space of their norm."""
    generator = torch.Generator().manual_seed(seed)
    parameters = [p for p in model.parameters() if p.requires_grad]
    size = sum(float(p.detach().double().square().sum()) for p in parameters) ** 0.5
    drawn = [torch.randn(p.shape, generator=generator, dtype=torch.float64) for p in parameters]
    still = {id(m.weight): m.padding_idx for m in model.modules() if isinstance(m, nn.Embedding)}
    for p, v in zip(parameters, drawn, strict=True):
        if still.get(id(p)) is not None:
            v[still[id(p)]] = 0  # documented to have no gradient
    norm = sum(float(v.square().sum()) for v in drawn) ** 0.5
    return parameters, [(v * (size / norm)).to(p.dtype) for p, v in zip(parameters, drawn, strict=True)]


def along(model, seed, places, evaluate):
    """Evaluate at some places along a random direction in parameter space; restore the parameters."""
    parameters, v = direction(model, seed)
    kept = [p.detach().clone() for p in parameters]
    found = []
    try:
        for place in places:
            with torch.no_grad():
                for p, x, start in zip(parameters, v, kept, strict=True):
                    p.copy_(start + place * x)
            found.append(evaluate(parameters, v))
    finally:
        with torch.no_grad():
            for p, start in zip(parameters, kept, strict=True):
                p.copy_(start)
    return found


def slopes(model, ids, labels, *, seed, step, **asked):
    """Return the derivative of the loss along a random direction, by the chain rule, at three places a step apart."""

    def slope(parameters, v):
        loss = loss_of(model, ids, None, labels, **asked)
        found = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        return sum((g * x).sum().double() for g, x in zip(found, v, strict=True))

    return torch.stack(along(model, seed, (-step, 0.0, step), slope))[:, None]


def mean_slope(model, ids, labels, *, seed, step, **asked):
    """Return the mean of the derivative between the outer two places, by the trapezoidal rule."""
    first, middle, last = slopes(model, ids, labels, seed=seed, step=step, **asked)
    return ((first + 2 * middle + last) / 4)[None]


@torch.no_grad()
def secant(model, ids, labels, *, seed, step, **asked):
    """Return the difference quotient of the loss between the outer two places."""
    below, above = along(model, seed, (-step, step), lambda *_: loss_of(model, ids, None, labels, **asked))
    return ((above - below) / (2 * step)).double().reshape(1, 1)


def influence(model, ids, mask=None, *, places, seed, splits=(), lengths=None, **asked):
    """Return the gradient of a randomly weighted sum of logits at some places ``[B, n]`` for the embedding of each
    token.

    splits: where the call is cut into parts that go on through the cache. ``[B · n, d]``; without entries where no
    module ``nn.Embedding`` takes the ids, or the model records no gradient.
    """
    found, begun, given = [], [], documents_of(model, lengths)
    parts = ids.tensor_split(splits, 1)

    def keep(module, inputs, output):
        first = len(found) < len(begun) and inputs[0].shape == begun[-1].shape
        if first and torch.equal(inputs[0], begun[-1]):
            output = output.detach().requires_grad_()
            found.append(output)
            return output
        return None

    hooks = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, nn.Embedding)]
    past, logits, seen = None, [], 0
    try:
        for part in parts:
            begun.append(part)
            seen += part.shape[1]
            if len(parts) == 1:
                some = logits_of(ask(model, part, mask, **given, **asked))
            else:
                some, past = remember(model, part, None if mask is None else mask[:, :seen], past, **asked)
            logits.append(some)
    finally:
        for hook in hooks:
            hook.remove()
    chosen = torch.cat(logits, 1)[places].double()
    if len(found) < len(parts) or not chosen.requires_grad:
        return torch.zeros(0, 1)
    weights = torch.randn(chosen.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    gradients = torch.autograd.grad((chosen * weights).sum(), found, allow_unused=True, materialize_grads=True)
    return torch.cat(gradients, 1).double().flatten(0, 1)


# Generation

SETTINGS = {
    "new": ("max_new_tokens", "max_new", "new_tokens", "num_tokens", "n_tokens", "num_new_tokens", "n_new", "steps"),
    "temperature": ("temperature", "temp"),
    "top_k": ("top_k", "topk"),
    "sampled": ("do_sample", "sample", "sampling"),
    "eos": ("eos_token_id", "eos_id", "eos", "stop_id", "stop_token"),
}
"""By what is set, the names under which a model's ``generate`` takes it."""
_OFF = {"top_p": 1.0, "topp": 1.0, "repetition_penalty": 1.0, "rep_penalty": 1.0, "min_p": 0.0}
"""Options of ``generate`` by which other tokens would be drawn, and their value that changes nothing."""
_WINDOWS = (
    *("block_size", "context_length", "context_size", "max_seq_len", "max_seq_length", "max_position_embeddings"),
    *("n_positions", "n_ctx", "max_len", "max_length", "ctx_len"),
)
COLD = 2.0**-30
"""A temperature at which only the largest score is left, where a model knows no other way to be greedy."""


def inner_of(model):
    """Return the model whose ``generate`` is called: the inner one of a wrapper, else the model itself."""
    return getattr(model, "inner", model)


def settings_of(model):
    """Return the names of the settings that ``generate`` takes; empty without ``generate``, where it is a library's,
    and where it demands more than a prompt and a number of tokens, as a tokenizer."""
    generate = getattr(inner_of(model), "generate", None)
    if not callable(generate):
        return {}
    known = inspect.signature(generate).parameters
    found = {role: next((name for name in names if name in known), None) for role, names in SETTINGS.items()}
    demanded = [
        name for name, p in known.items() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if found["new"] is None or "generation_config" in known or not set(demanded[1:]) <= set(found.values()):
        return {}
    return {role: name for role, name in found.items() if name}


def window_of(model):
    """Return the maximum number of tokens that a model sees, by itself or its configuration; else None."""
    inner = inner_of(model)
    places = [inner, *(getattr(inner, name, None) for name in ("config", "cfg", "args", "params"))]
    for name in _WINDOWS:
        for place in places:
            size = place.get(name) if isinstance(place, dict) else getattr(place, name, None)
            if isinstance(size, int) and not isinstance(size, bool):
                return size
    return None


def usual_top_k(model):
    """Return the default top_k of ``generate``; None if it draws from all scores."""
    name = settings_of(model).get("top_k")
    usual = inspect.signature(inner_of(model).generate).parameters[name].default if name else None
    return usual if isinstance(usual, int) and usual > 0 else None


@torch.no_grad()
def generated(model, ids, *, new, rows=None, each=False, greedy=False, temperature=None, top_k=None, seed=0):
    """Return the texts of ``generate`` for a prompt [B, n]: [B, n + new], the prompt first, whatever its form.

    rows: how often a single prompt is given. each: whether every row is a call of its own.
    """
    ids = ids if rows is None else ids.repeat(rows, 1)
    names, given, before = settings_of(model), {}, ids.clone()
    if greedy and "sampled" in names:
        given[names["sampled"]] = False
    elif greedy and "top_k" in names:
        given[names["top_k"]] = 1
    elif greedy and "temperature" in names:
        given[names["temperature"]] = COLD
    if not greedy and "sampled" in names:
        given[names["sampled"]] = True
    if temperature is not None and not greedy:
        given[names["temperature"]] = temperature
    if top_k is not None and not greedy:
        given[names["top_k"]] = top_k
    known = inspect.signature(inner_of(model).generate).parameters
    given |= {name: x for name, x in _OFF.items() if name in known and known[name].default not in (x, None)}
    if "eos" in names:  # no token ends a text
        given[names["eos"]] = None if known[names["eos"]].default is None else -1
    given[names["new"]] = new
    mode, parts = inner_of(model).training, ids.split(1 if each else len(ids))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found = [whole_text(part, inner_of(model).generate(part, **given), new) for part in parts]
    inner_of(model).train(mode)
    if not torch.equal(ids, before):
        raise AssertionError("generate has changed the prompt that it was given")
    return torch.cat(found)


def whole_text(prompt, found, new):
    """Return prompt and new tokens, where ``generate`` gives the new ones alone, in a tuple, or without batch."""
    found = found[0] if isinstance(found, tuple) else found
    found = found[None] if found.ndim == 1 and len(prompt) == 1 else found
    alone = found.shape[1] == new and found.shape[1] != prompt.shape[1] + new
    return torch.cat((prompt, found), 1) if alone else found


@torch.no_grad()
def decoded(model, ids, *, new, window=None, **asked):
    """Return the logits [B, new, V] behind the last ``new`` tokens: of each prefix, cropped to ``window``."""
    n = ids.shape[1] - new
    starts = [0 if window is None else max(0, t - window) for t in range(n, n + new)]
    found = [logits_of(ask(model, ids[:, start : n + i], **asked))[:, -1] for i, start in enumerate(starts)]
    return torch.stack(found, 1)


def use_model(target, operation, way, dtype, afresh=False, **given):
    """Ask the model of a target in one way."""
    return globals()[way](build(target, operation, dtype, afresh), **given)


def drive_causal_lm(target, *, way, dtype, **given):
    """Ask a model in which each token is predicted from those before it."""
    return use_model(target, "causal_lm", way, dtype, **given)


def drive_masked_lm(target, *, way, dtype, **given):
    """Ask a model in which each token is predicted from all the others."""
    return use_model(target, "masked_lm", way, dtype, **given)


def drive_seq2seq_lm(target, *, way, dtype, **given):
    """Ask a model in which each token is predicted from those before it and from a source."""
    return use_model(target, "seq2seq_lm", way, dtype, **given)
