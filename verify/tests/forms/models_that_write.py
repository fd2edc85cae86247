"""Language models whose texts a function writes, as in books and notebooks."""

import torch
from torch import nn


class GPTModel(nn.Module):
    """Logits by a causal average of embeddings."""

    def __init__(self, vocab_size, context_length, emb_dim):
        super().__init__()
        self.context_length = context_length
        self.tok_emb, self.pos_emb = nn.Embedding(vocab_size, emb_dim), nn.Embedding(context_length, emb_dim)
        self.mix, self.out_head = nn.Linear(2 * emb_dim, emb_dim), nn.Linear(emb_dim, vocab_size)

    def forward(self, in_idx):
        n = in_idx.shape[1]
        x = self.tok_emb(in_idx) + self.pos_emb(torch.arange(n))
        past = x.cumsum(1) / torch.arange(1, 1 + n).to(x.dtype)[:, None]
        return self.out_head(self.mix(torch.cat((x, past), -1)).tanh())


def generate(model, idx, max_new_tokens, context_size, temperature=0.0, top_k=None, eos_id=None):
    for _ in range(max_new_tokens):
        with torch.no_grad():
            logits = model(idx[:, -context_size:])[:, -1, :]
        if top_k is not None:
            least = torch.topk(logits, top_k).values[:, -1:]
            logits = torch.where(logits < least, torch.full_like(logits, -torch.inf), logits)
        if temperature > 0.0:
            following = torch.multinomial((logits / temperature).softmax(-1), 1)
        else:
            following = logits.argmax(-1, keepdim=True)
        if eos_id is not None and (following == eos_id).all():
            break
        idx = torch.cat((idx, following), 1)
    return idx


def generate_and_print(model, tokenizer, prompt):
    print(tokenizer.decode(generate(model, tokenizer.encode(prompt), 50, 256)))


def sample_text(model, prompt, max_new_tokens=20):
    ids = torch.tensor([[ord(letter) % 29 for letter in prompt]])
    return "".join(chr(97 + int(i)) for i in generate(model, ids, max_new_tokens, 256)[0])


def generate_in_steps(model, idx, steps):
    return generate(model, idx, steps, model.settings["window"])
