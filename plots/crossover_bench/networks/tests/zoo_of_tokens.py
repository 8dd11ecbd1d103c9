# SPDX-License-Identifier: Apache-2.0
"""Networks of tokens (words, users, items), and transformers, as their users write them."""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everyone calls it

from crossover_bench.networks.tests.zoo import By


class Tagger(nn.Module):
    """A label for each word: embedding, two layers of LSTM, a linear layer."""

    def __init__(self, batch_first=True, per_class=False, kind=nn.LSTM):
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.lstm = kind(12, 16, num_layers=2, batch_first=batch_first)
        self.out = nn.Linear(16, 9)
        self.batch_first, self.per_class = batch_first, per_class

    def forward(self, words):
        given, _ = self.lstm(self.embedding(words))
        logits = self.out(given)
        return logits.transpose(1, 2) if self.per_class else logits.reshape(-1, 9)


gated = Tagger(kind=nn.GRU)
time_first, per_class = Tagger(batch_first=False), Tagger(per_class=True)


class Attention(nn.Module):
    def __init__(self, width, heads, causal, by_hand):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal, self.by_hand = heads, causal, by_hand

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(x).split(c, 2))
        if not self.by_hand:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            return self.out(mixed.transpose(1, 2).reshape(b, t, c))
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        if self.causal:
            later = torch.ones(t, t, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class Former(nn.Module):
    """A block with normalization first."""

    def __init__(self, width, heads, causal, by_hand=False):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, causal, by_hand)
        self.norm2 = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, width=12, heads=3, words=31, time=10, by_hand=False):
        super().__init__()
        self.embedding, self.position = nn.Embedding(words, width), nn.Embedding(time, width)
        self.block = Former(width, heads, True, by_hand)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, words):
        x = self.embedding(words) + self.position(torch.arange(words.shape[1]))
        return self.head(self.block(x))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.fc = nn.Embedding(31, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, 31, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words):
        return self.head(self.fc(self.embedding(words)))


class Vit(nn.Module):
    def __init__(self, width=12, heads=3, image=8, patch=4):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.position = nn.Parameter(torch.randn(1, (image // patch) ** 2, width))
        self.block, self.out = Former(width, heads, False), nn.Linear(width, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.out(self.block(x).mean(1))


def encoder():
    """PyTorch's own."""
    layer = nn.TransformerEncoderLayer(12, 3, 24, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return By(
        lambda m, x: m.out(m.encoder(m.embedding(x)).mean(dim=1)),
        embedding=nn.Embedding(31, 12),
        encoder=encoder,
        out=nn.Linear(12, 4),
    )


class TorchvisionBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, heads, dropout=0.0, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        y = self.ln_1(x)
        y, _ = self.self_attention(y, y, y, need_weights=False)
        y = self.dropout(y) + x
        return y + self.mlp(self.ln_2(y))


class TorchvisionVit(nn.Module):
    """vit_b_16 of torchvision, thin: its operations, in its order."""

    def __init__(self, width=12, heads=3, image=8, patch=4):
        super().__init__()
        self.width = width
        self.conv_proj = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.randn(1, 1, width))
        self.pos_embedding = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width))
        self.dropout = nn.Dropout(0.1)
        self.layers = nn.Sequential(*(TorchvisionBlock(width, heads) for _ in range(2)))
        self.ln, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 5)

    def forward(self, x):
        n = x.shape[0]
        x = self.conv_proj(x).reshape(n, self.width, -1).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1)
        x = self.ln(self.layers(self.dropout(x + self.pos_embedding)))
        return self.head(x[:, 0])


class Recommender(nn.Module):
    """Two towers of a user's and an item's number, joined by product or side by side: whether the
    user takes the item."""

    def __init__(self, users=50, items=70, by_product=True):
        super().__init__()
        self.users, self.items = nn.Embedding(users, 8), nn.Embedding(items, 6)
        self.user = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 8))
        self.item = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 8))
        self.by_product = by_product
        self.out = nn.Linear(8 if by_product else 16, 1)

    def forward(self, user, item):
        u, v = self.user(self.users(user)), self.item(self.items(item))
        joined = u * v if self.by_product else torch.cat((u, v), dim=1)
        return self.out(joined).squeeze(-1)


recommender_side_by_side = Recommender(by_product=False)
# Towers whose vectors are multiplied and summed.
dot = By(
    lambda m, user, item: (m.users(user) * m.items(item)).sum(dim=-1),
    users=nn.Embedding(50, 8),
    items=nn.Embedding(70, 8),
)


def history():
    """The mean of what a user saw before, and an item."""
    return By(
        lambda m, seen, item: m.out(torch.cat((m.seen(seen).mean(1), m.items(item).flatten(1)), 1)),
        seen=nn.Embedding(70, 6),
        items=nn.Embedding(70, 6),
        out=nn.Linear(12, 1),
    )


class Separate(nn.Module):
    """Attention by hand, whose queries, keys and values are of products of their own."""

    def __init__(self, heads=1, causal=False, dropout=0.0):
        super().__init__()
        self.words = nn.Embedding(31, 6)
        self.q, self.k, self.v = (nn.Linear(6, 8, bias=False) for _ in range(3))
        self.out = nn.Linear(8, 31)
        self.heads, self.causal, self.dropout = heads, causal, nn.Dropout(dropout)

    def forward(self, words):
        x = self.words(words)
        b, t, _ = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.heads > 1:
            q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in (q, k, v))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        if self.causal:
            later = torch.ones(t, t, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        y = self.dropout(torch.softmax(scores, dim=-1)) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, -1) if self.heads > 1 else y)


heads_apart = Separate(2, True, 0.1)


def _asked(m, words):
    h, _ = m.lstm(m.words(words))
    weights = F.softmax(torch.bmm(m.ask(h[:, -1]).unsqueeze(1), h.transpose(1, 2)), dim=2)
    x = torch.bmm(weights, h).squeeze(1)
    return m.out(x * torch.softmax(m.gate(x), dim=1))


# The last place asks all of them, and softmax weighs columns.
asking = By(
    _asked,
    words=nn.Embedding(31, 6),
    lstm=nn.LSTM(6, 6, batch_first=True),
    ask=nn.Linear(6, 6),
    gate=nn.Linear(6, 6),
    out=nn.Linear(6, 3),
)


def _halved(m, words):
    a, b = m.up(m.words(words)).chunk(2, dim=-1)
    x = m.down(a * torch.sigmoid(b))[:, 1:4, 1:]
    return m.out(x.mean(1))


# A gated linear unit, columns and channels apart, and places in the middle.
halves = By(
    _halved,
    words=nn.Embedding(31, 6),
    up=nn.Linear(6, 16),
    down=nn.Linear(8, 6),
    out=nn.Linear(5, 3),
)
# A column for each thing that has a name, as tables have them.
columns = By(
    lambda m, x: m.out(torch.cat([table(x[:, i]) for i, table in enumerate(m.embeddings)], 1)),
    embeddings=nn.ModuleList(nn.Embedding(n, 4) for n in (7, 30, 12)),
    out=nn.Linear(12, 3),
)


def llama():
    """Normalization without means and a gated layer, without attention."""
    w1, w2, w3 = (nn.Linear(*sizes, bias=False) for sizes in ((8, 9), (9, 8), (8, 9)))
    norms = {"norm1": nn.RMSNorm(8), "norm2": nn.RMSNorm(8, eps=1e-6)}
    ends = {"embedding": nn.Embedding(31, 8), "out": nn.Linear(8, 31, bias=False)}

    def do(m, words):
        x = m.norm2(m.norm1(m.embedding(words)))
        return m.out(m.w2(F.silu(m.w1(x)) * m.w3(x)))

    return By(do, **ends, **norms, w1=w1, w2=w2, w3=w3)


class ByHand(nn.Module):
    """RMS normalization, and attention of queries that are scaled before their product."""

    def __init__(self):
        super().__init__()
        self.embedding, self.weight = nn.Embedding(31, 12), nn.Parameter(torch.rand(12))
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 31)

    def forward(self, words):
        x = self.embedding(words)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
        b, t, c = x.shape
        q, k, v = (z.view(b, t, 3, -1).transpose(1, 2) for z in self.qkv(x).split(c, 2))
        scores = (q / math.sqrt(c // 3)) @ k.transpose(-2, -1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


def word(place):
    """What an LSTM makes of the word there."""
    return By(
        lambda m, words: m.out(m.lstm(m.embedding(words))[0][:, place]),
        embedding=nn.Embedding(9, 4),
        lstm=nn.LSTM(4, 5, batch_first=True),
        out=nn.Linear(5, 3),
    )


last_word, second_word = word(-1), word(1)
