"""Parts of recognition: names of sizes, stated shapes, causality, unknown arguments, readings that fit."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.faulty_forms import form_file
from tests.form_examples import loaded_form
from veriformer.verify.commands.request import is_problem, join_statuses
from veriformer.verify.forms.added_terms import with_squared_normaliser
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.causality import CAUSALITY, LENGTH, causality_of
from veriformer.verify.forms.construction import default_elsewhere
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.drawing import distribution
from veriformer.verify.forms.form import Fit, Form, Match, NotOffered, Unfit, UnknownArgument
from veriformer.verify.forms.meanings import BUILT, CALLED, with_renamed_arguments
from veriformer.verify.forms.models.causal_lm import FORM
from veriformer.verify.forms.models.generation import generating
from veriformer.verify.forms.score_domains import as_scores
from veriformer.verify.forms.signatures import by_words
from veriformer.verify.forms.size_names import size_of
from veriformer.verify.forms.smoothing import without_probability
from veriformer.verify.forms.stated_shapes import stated_layout
from veriformer.verify.recognition import by_behaviour
from veriformer.verify.recognition.fitting import commonest
from veriformer.verify.recognition.nearest import _is_tied, tenable
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.loading import needs_recognition
from veriformer.verify.targets.locating import resolve
from veriformer.verify.targets.statements import statements

BOTH = ("[B,n,d]", "[n,B,d]", "n")


def stating(text: str) -> Candidate:
    class Layer(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    Layer.forward.__doc__ = text
    return Candidate("Layer", Layer)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("x: [sequence length, batch size, embed dim]", ("[n,B,d]", "n")),
        ("x (Tensor): features of shape (batch, tokens, width)", ("[B,n,d]", "n")),
        ("x: (B, T, C)", ("[B,n,d]", "n")),
        ("Adds positions to embeddings of shape [seq_len, batch_size, d_model].", ("[n,B,d]", "n")),
        ("x: what is encoded (required)", BOTH),
        ("returns x and its positions [n, d]", BOTH),
        ("", BOTH),
    ],
)
def test_a_layout_that_is_stated_leaves_no_other(text: str, left: tuple[str, ...]) -> None:
    assert stated_layout(stating(text), "x", BOTH) == left


@pytest.mark.parametrize(
    ("size", "names"),
    [
        ("width", "dim_model"),
        ("inner", "d_mlp"),
        ("heads", "n_heads n_local_heads"),
        ("head_dim", "d_head dim_keys"),
        ("kv_heads", "n_kv_heads n_local_kv_heads"),
        ("vocabulary", "src_vocab_len trg_vocab"),
        ("length", "max_ctx_len enc_max_len"),
        ("layers", "number_of_layers decoder_layers"),
        ("", "key_size label_size word model src local"),
    ],
)
def test_sizes_are_known_by_the_words_of_their_names(size: str, names: str) -> None:
    assert [size_of(name) for name in names.split()] == [size] * len(names.split())


def test_a_size_may_depend_on_the_others() -> None:
    assert size_of("hidden_dim", ("n_head", "feed_forward_dim")) == "width"
    assert size_of("hidden_dim", ("dim_model",)) == "inner"
    assert size_of("n_local_heads", ("dim", "n_head")) == "kv_heads"
    assert size_of("n_local_heads", ("dim",)) == "heads"


def test_a_word_says_whose_sizes_are_where_several_begin_with_it() -> None:
    entries = ("text_hidden_dim", "text_ffn_dim", "text_n_heads", "text_max_positions", "image_size", "image_dim")
    assert [size_of(name, entries) for name in entries] == ["width", "inner", "heads", "length", "", ""]
    assert size_of("text_hidden_dim") == size_of("text_hidden_dim", ("text_hidden_dim", "n_heads")) == ""


@pytest.mark.parametrize(
    ("sees", "tenable"),
    [
        (torch.ones(LENGTH, LENGTH), CAUSALITY[:1]),
        (torch.ones(LENGTH, LENGTH).tril(), CAUSALITY[1:]),
        (torch.ones(LENGTH, LENGTH).tril(1), CAUSALITY[1:]),
        (torch.ones(LENGTH, LENGTH).tril(-1), CAUSALITY[1:]),
        (torch.eye(LENGTH), CAUSALITY),
        (torch.full((LENGTH, LENGTH), torch.nan), CAUSALITY),
    ],
)
def test_which_positions_are_read_says_whether_a_layer_is_causal(sees: Tensor, tenable: tuple[str, ...]) -> None:
    assert causality_of(lambda x: sees @ x, 4) == tenable


def test_a_layer_that_refuses_may_be_either() -> None:
    def refuses(x: Tensor) -> Tensor:
        raise ValueError(f"expected a mask with {tuple(x.shape)}")

    assert causality_of(refuses, 4) == CAUSALITY


def test_a_default_is_taken_from_elsewhere_where_there_is_one() -> None:
    module = loaded_form("told_by_behaviour")
    candidate = Candidate("Attention", module.Attention, module)
    assert default_elsewhere(candidate, "show_weights") is False
    assert default_elsewhere(candidate, "d_model") is inspect.Parameter.empty


def test_only_so_many_combinations_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_behaviour, "TRIED", 0)
    unknown = loaded_form("unknown_names")
    assert not recognise(unknown, among=["FeedForward"]).pins


def test_tensors_are_known_by_a_word_of_their_names() -> None:
    named = inspect.signature(lambda query_states, k_len, key_states, value_states, value_scale: None).parameters
    usual = {"q": ("q", "query"), "k": ("k", "key"), "v": ("value",)}
    assert {role: names[-1] for role, names in by_words(named, usual).items()} == {
        "q": "query_states",
        "k": "key_states",
        "v": "value_states",
    }


@pytest.mark.parametrize(("right", "tied"), [(("boolean", "0/1"), False), (("boolean", "inverted"), True)])
def test_a_mask_that_is_right_by_opposite_readings_is_not_told(right: tuple[str, ...], tied: bool) -> None:
    whole, half = (Fit(8, 7, held, True, 1.0, 1.0) for held in (7, 3))
    match = Match(True, {"mask": MASKS})

    def tried(choice: tuple[dict[str, str], dict[str, str]], every: int) -> Any:
        return SimpleNamespace(fit=whole if choice[1]["mask"] in right else half)

    best: Any = SimpleNamespace(readings={"mask": "boolean"}, match=match, conventions={}, fit=whole)
    assert _is_tied(best, "mask", tried) is tied


def test_arguments_are_given_by_the_names_and_in_the_places_that_are_known() -> None:
    def theirs(a: int, b: int, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    own = inspect.signature(theirs).parameters
    call = with_renamed_arguments(theirs, ((CALLED + "a", "0"), (CALLED + "b", "x")), own)
    assert list(inspect.signature(call).parameters) == ["x", "c"]
    assert call(7) == (0, 7, 3)
    assert call(x=7, c=1) == (0, 7, 1)


def _form(explains: dict[str, Fit]) -> Form:
    """A form that asks what ``odd`` is, and is explained so well by each meaning."""

    def match(candidate: Candidate) -> Match | None:
        if not candidate.meanings:
            raise UnknownArgument("asks for 'odd'", CALLED + "odd", ("x", "y"))
        return Match(True, {})

    def bind(candidate: Candidate, readings: Any) -> Any:
        return lambda: dict(candidate.meanings)[CALLED + "odd"]

    judged = {**dict.fromkeys(("None", "0", "0.0", "False"), Fit(4, 0, 0, False, 0.0, 0.0)), **explains}
    return Form(name="odd", operation="odd", says="", match=match, bind=bind, judge=lambda function: judged[function()])


RIGHT, NEAR = Fit(4, 4, 4, True, 1.0, 1.0), Fit(4, 4, 2, False, 0.5, 0.8)


def test_where_two_meanings_explain_as_much_none_is_guessed() -> None:
    def odd(odd: int) -> int:
        return odd

    for fit in (RIGHT, NEAR):
        with pytest.raises(Unfit, match="may be 'x' or 'y', and no call tells which"):
            by_behaviour.read(_form({"x": fit, "y": fit}), Candidate("odd", odd), {})
    found = by_behaviour.read(_form({"x": NEAR, "y": RIGHT}), Candidate("odd", odd), {})
    assert found is not None
    assert found.candidate.meanings == ((CALLED + "odd", "y"),)
    assert found.match.told == ("its 'odd' is what others call 'y', by what it does",)


def test_the_claims_say_what_an_argument_is() -> None:
    def odd(odd: int) -> int:
        return odd

    found = by_behaviour.read(_form({"x": NEAR, "y": RIGHT}), Candidate("odd", odd), {"odd.called_with_odd": "x"})
    assert found is not None
    assert found.candidate.meanings == ((CALLED + "odd", "x"),)


def test_what_would_fill_the_memory_is_not_tried_by_chance() -> None:
    names = ("d_model", "max_len", "base")
    asked = {name: UnknownArgument("", BUILT + name, names) for name in ("pane", "longest_len")}
    assert {"max_len", "base"}.isdisjoint(by_behaviour.meanings_of(asked["pane"]))
    assert by_behaviour.meanings_of(asked["longest_len"])[0] == "max_len"


def test_a_neighbour_that_cannot_be_imported_gives_its_definitions(tmp_path: Path) -> None:
    """The neighbour stands in a folder that is no package, asks for a file that is not there, and for another
    neighbour."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "tools.py").write_text(
        "VOCABULARY = open('vocabulary.txt').read()\n\ndef softmax_of(x, dim):\n    return x.softmax(dim)\n", "utf-8"
    )
    (folder / "layers.py").write_text(
        "from code.tools import softmax_of\n\ndef softmax(z, dim=-1):\n    return softmax_of(z, dim)\n\n"
        "for _ in range(1):\n    pass\n",
        "utf-8",
    )
    module, _ = resolve(str(folder / "layers.py"))
    assert callable(vars(module)["softmax_of"])


def test_a_name_of_the_contract_that_asks_for_more_is_not_by_contract() -> None:
    assert needs_recognition(loaded_form("kernels"))


def test_what_most_calls_are_refused_with_is_told() -> None:
    said = ["raised ValueError: got 1", "raised InterpreterError: 3 blocks", "raised InterpreterError: 5 blocks"]
    assert commonest(said) == "raised InterpreterError: 3 blocks"
    assert commonest([]) == ""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_score_of_a_class_without_probability_is_finite_and_leaves_it_none(dtype: torch.dtype) -> None:
    rows = torch.tensor([[1.0, -3.0], [0.0, -1e4]], dtype=dtype)
    scores = torch.cat((rows, without_probability(rows)), -1)
    assert bool(scores.isfinite().all())
    assert torch.equal(scores.double().softmax(-1)[:, -1], torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize(("largest", "dtype"), [(6.5e4, torch.float16), (1e12, torch.float32)])
def test_scores_that_leave_no_number_below_them_are_not_offered(largest: float, dtype: torch.dtype) -> None:
    with pytest.raises(NotOffered, match=f"{dtype} has no score so far below"):
        without_probability(torch.tensor([[-largest, largest]], dtype=dtype))


def test_a_probability_that_is_rounded_to_nothing_tells_nothing() -> None:
    with pytest.raises(NotOffered, match="a probability is rounded to 0"):
        as_scores(torch.tensor([[0.0, -2000.0]]), "probabilities")


def test_a_loss_that_rounds_has_no_term_added() -> None:
    def rounded(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, target) * (1 + 2.0**-24)

    assert not with_squared_normaliser(rounded)
    assert list(with_squared_normaliser(lambda z, y: rounded(z, y) + 1e-4 * z.logsumexp(-1).square().mean()))


@pytest.mark.whole
def test_what_is_called_sampling_and_gives_logits_is_a_filter() -> None:
    def top_k_sampling(logits: torch.Tensor, k: int) -> torch.Tensor:
        least = logits.topk(min(k, logits.shape[-1]), -1).values[..., -1:]
        return logits.masked_fill(logits < least, -torch.inf)

    (found,) = recognise(top_k_sampling).pins
    assert (found.operation, found.form, found.everywhere) == ("top_k_filter", "functions/top_k", True)


def test_the_distribution_of_a_sampler_is_exact() -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0, 0.0], [1.0, 1.5, -3.0, 0.25]])
    sampler = loaded_form("losses").sample
    support, mass = distribution(lambda x: sampler(x[:, None], 0.7, 2), logits, alone=False)
    assert support.tolist() == [[True, False, True, False], [True, True, False, False]]
    assert mass is not None
    kept = logits.masked_fill(~support, -torch.inf)
    assert mass.float().sum(-1).tolist() == [1.0, 1.0]
    assert round(float(mass[0, 2] / mass[0, 0]), 3) == round(math.exp(1.5 / 0.7), 3)
    noisy, unknown = distribution(
        lambda x: (x.softmax(-1) / torch.empty_like(x).exponential_()).argmax(-1), kept, alone=True
    )
    assert noisy.equal(support)
    assert unknown is None
    with pytest.raises(NotOffered, match="draws 0 times"):
        distribution(lambda x: x.argmax(-1), logits, alone=False)


def test_a_reading_that_refuses_most_calls_is_none() -> None:
    few = Fit(24, 5, 2, True, 0.8, 1.0, raised=8)
    many = Fit(24, 12, 2, False, 0.4, 1.0, raised=1)
    assert few.better_than(many)
    assert tenable([("few", few), ("many", many)]) == [("many", many)]


def test_the_statuses_of_a_problem_are_joined() -> None:
    assert is_problem(str(form_file("kernel_problem")))
    assert not is_problem(str(form_file("losses")))
    assert [join_statuses(*pair) for pair in ((0, 0), (0, 1), (1, 0), (0, 3), (3, 0))] == [0, 1, 1, 0, 3]


def test_branches_of_other_words_and_of_what_nobody_gives_are_none_of_the_operation(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = """def rate(step, style="cosine", group=None):
    if step > 3:
        return 3
    if style == "linear":
        step = step + 1
    return helper(step)

def helper(step, more=None):
    if more is not None:
        step = more
    return step
"""
    file.write_text(text)

    def branches(first: int, **given: object) -> list[int]:
        return [one.first for one in statements(str(file), first, **given) if one.branch]  # type: ignore[arg-type]

    assert branches(1) == [3, 4, 5, 6]
    assert branches(1, chosen=frozenset(("style",))) == [3, 4, 6]
    assert branches(8) == [10]
    assert branches(8, inner=True) == []


def test_a_function_that_asks_for_a_tokenizer_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    module = loaded_form("models_that_write")
    assert generating(Candidate("GPTModel", module.GPTModel, module)) == "generate"
    for name in ("generate", "sample_text", "generate_in_steps"):
        monkeypatch.delattr(module, name)
    assert not generating(Candidate("GPTModel", module.GPTModel, module))


@pytest.mark.parametrize("name", ["sample_text", "generate_in_steps"])
def test_one_that_does_not_go_on_from_tokens_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = loaded_form("models_that_write")
    candidate = Candidate("GPTModel", module.GPTModel, module)
    for other in ("generate", "sample_text", "generate_in_steps"):
        if other != name:
            monkeypatch.delattr(module, other)
    assert generating(candidate) == name
    found = FORM.match(candidate)
    assert found is not None
    assert [said for said in found.told if said.startswith(f"{name}(model, …) is left out")], found.told
    assert not hasattr(FORM.bind(candidate, {})().inner, "generate")
