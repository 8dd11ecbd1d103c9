# SPDX-License-Identifier: Apache-2.0
"""Networks as their users write them; they know nothing of bench."""

import math

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everyone calls it


class By(nn.Module):
    """What is done with these layers, parameters and buffers."""

    def __init__(self, do, **own):
        super().__init__()
        self.do = do
        for name, one in own.items():
            is_buffer = isinstance(one, torch.Tensor) and not isinstance(one, nn.Parameter)
            (self.register_buffer if is_buffer else self.__setattr__)(name, one)

    def forward(self, *x):
        return self.do(self, *x)


def mlp():
    return nn.Sequential(
        nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 65), nn.Sigmoid(), nn.Linear(65, 7)
    )


class Cnn(nn.Module):
    """LeNet with batch normalization, functional activations and a view."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 2 * 2, 12)
        self.fc2 = nn.Linear(12, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.avg_pool2d(torch.relu(self.conv2(x)), (2, 2))
        x = x.view(x.size(0), -1)
        return self.fc2(F.dropout(F.relu(self.fc1(x)), 0.25, self.training))


class Block(nn.Module):
    """The residual block of ResNet-18, as torchvision has it."""

    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(
                nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout)
            )

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, widths=(8, 8, 12, 16), blocks=2, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        layers, cin = [], widths[0]
        for number, width in enumerate(widths):
            strides = [1 if number == 0 else 2] + [1] * (blocks - 1)
            layers.append(
                nn.Sequential(
                    *(Block(cin if i == 0 else width, width, s) for i, s in enumerate(strides))
                )
            )
            cin = width
        self.layers = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(cin, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layers(x)), 1))


class Vgg(nn.Module):
    """VGG-11 with batch normalization, thin: 32 x 32 becomes 1 x 1."""

    def __init__(self, norm=True):
        super().__init__()
        layers, cin = [], 3
        for width in (4, "M", 8, "M", 8, 8, "M", 16, 16, "M", 16, 16, "M"):
            if width == "M":
                layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
                continue
            layers += [nn.Conv2d(cin, width, kernel_size=3, padding=1)]
            layers += [nn.BatchNorm2d(width)] if norm else []
            layers += [nn.ReLU(inplace=True)]
            cin = width
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(16, 24),
            nn.ReLU(True),
            nn.Dropout(),
            nn.Linear(24, 24),
            nn.ReLU(True),
            nn.Dropout(),
            nn.Linear(24, 10),
        )

    def forward(self, x):
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


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
    own = {"embedding": nn.Embedding(31, 12), "encoder": encoder, "out": nn.Linear(12, 4)}
    return By(lambda m, x: m.out(m.encoder(m.embedding(x)).mean(dim=1)), **own)


def grouped(padding="same"):
    depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
    far = nn.Conv2d(4, 4, 3, padding=padding, groups=2, dilation=2)
    return Image(nn.Sequential(depthwise, far))


class Series(nn.Module):
    """A classifier of time series: residual blocks whose convolutions reach further and further."""

    def __init__(self, channels=2, width=8, flat=False):
        super().__init__()
        self.stem = nn.Conv1d(channels, width, 7, stride=2, padding=3, bias=False)
        self.norm, self.pool = nn.BatchNorm1d(width), nn.MaxPool1d(3, 2, 1)
        self.blocks = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=2**number, dilation=2**number, groups=2)
            for number in range(2)
        )
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool1d(1),
            nn.Conv1d(width, 2, 1),
            nn.ReLU(),
            nn.Conv1d(2, width, 1),
            nn.Sigmoid(),
        )
        self.mean, self.fc = nn.AvgPool1d(2, ceil_mode=True), nn.Linear(2 * width, 4)
        self.flat = flat

    def forward(self, x):
        x = x.unsqueeze(1) if self.flat else x
        x = self.pool(torch.relu(self.norm(self.stem(x))))
        for block in self.blocks:
            x = x + F.relu(block(x))
        x = self.mean(x * self.gate(x))
        top = x.max(dim=-1).values if self.flat else F.adaptive_max_pool1d(x, 1).squeeze(-1)
        return self.fc(torch.cat((x.mean(dim=2), top), dim=1))


flat_series = Series(1, flat=True)


class Inception(nn.Module):
    """Windows of 1 x 7 and 7 x 1 side by side, as in Inception v3's blocks of 17 x 17."""

    def __init__(self):
        super().__init__()
        self.one = self._layer(2, 4, (1, 7), padding=(0, 3))
        self.two = self._layer(4, 6, (7, 1), padding=(3, 0))
        self.three = self._layer(2, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))
        self.down = nn.AvgPool2d((1, 3), stride=1, padding=(0, 1))
        self.fc = nn.Linear(10 * 3 * 2, 5)

    @staticmethod
    def _layer(cin, cout, size, **own):
        return nn.Sequential(
            nn.Conv2d(cin, cout, size, bias=False, **own), nn.BatchNorm2d(cout, eps=1e-3), nn.ReLU()
        )

    def forward(self, x):
        left = F.max_pool2d(self.two(self.one(x)), (2, 3), (2, 1))
        x = torch.cat((left, self.three(self.down(x))), 1)
        x = F.adaptive_avg_pool2d(x, (3, 2))
        return self.fc(torch.flatten(x, 1))


# A convolution of a signal, whose places an LSTM reads.
signal = By(
    lambda m, x: m.out(m.lstm(F.gelu(m.conv(x)).transpose(1, 2))[0][:, -1]),
    conv=nn.Conv1d(3, 6, 5, padding="same"),
    lstm=nn.LSTM(6, 5, batch_first=True),
    out=nn.Linear(5, 3),
)


class Coder(nn.Module):
    """A signal made shorter and, in each way that there is, longer again."""

    def __init__(self, out=2):
        super().__init__()
        self.down = nn.Conv1d(2, 4, 3, stride=2, padding=1)
        self.norm, self.each = nn.GroupNorm(2, 4), nn.InstanceNorm1d(4, affine=True)
        self.up = nn.ConvTranspose1d(4, 4, 3, stride=2, padding=1, output_padding=1)
        self.out = nn.Conv1d(4, out, 1)

    def forward(self, x):
        x = self.norm(torch.relu(self.down(x)))
        x = self.each(self.up(x)) + F.interpolate(x, scale_factor=2.0)
        return self.out(x)


coder_of_classes = Coder(5)


def two_signals():
    """Signals of one length, each with its channels."""
    own = {"left": nn.Conv1d(2, 4, 3), "right": nn.Conv1d(1, 4, 3), "out": nn.Linear(4, 2)}
    return By(lambda m, a, b: m.out((m.left(a) + m.right(b)).mean(2)), **own)


class FlatImage(nn.Module):
    """Images in rows, as many data sets have them."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 4, 3), nn.Linear(4 * (4 * 6 + 1), 3)

    def forward(self, x):
        x = self.conv(x.view(-1, 1, 6, 8))
        return self.fc(torch.cat((x.flatten(1), x.amax((2, 3), keepdim=True).flatten(1)), 1))


class BothWays(FlatImage):
    """An image that is seen as lines, too."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Conv1d(6, 3, 8)

    def forward(self, x):
        return super().forward(x) + self.rows(x.view(-1, 6, 8)).squeeze(2)


class Twice(nn.Sequential):
    """Two convolutions, each normalized and activated."""

    def __init__(self, cin, cout, groups=0):
        layers = []
        for width in (cin, cout):
            layers += [nn.Conv2d(width, cout, 3, padding=1, bias=False)]
            layers += [nn.GroupNorm(groups, cout) if groups else nn.BatchNorm2d(cout)]
            layers += [nn.ReLU(inplace=True)]
        super().__init__(*layers)


class UNet(nn.Module):
    """Ronneberger et al. 2015, thin: each half of the image joins what it was made from."""

    def __init__(self, classes=3, up="conv", groups=0, widths=(4, 6, 8)):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.first, *down = [Twice(*s, groups) for s in zip((3, *widths), widths, strict=False)]
        self.down = nn.ModuleList(down)
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(self._larger(cin, cout, up) for cin, cout in pairs)
        self.join = nn.ModuleList(Twice(2 * cout, cout, groups) for _, cout in pairs)
        self.out = nn.Conv2d(widths[0], classes, 1)

    @staticmethod
    def _larger(cin, cout, up):
        if up == "conv":
            return nn.ConvTranspose2d(cin, cout, 2, stride=2)
        return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(cin, cout, 1))

    def forward(self, x):
        x = self.first(x)
        skipped = []
        for down in self.down:
            skipped.append(x)
            x = down(self.pool(x))
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([skipped.pop(), up(x)], dim=1))
        return self.out(x)


unet_by_upsampling = UNet(1, "nearest", groups=2)
unet_of_masks = nn.Sequential(UNet(1), nn.Flatten(1))


class Larger(nn.Module):
    """Each way to make an image larger, as users write them."""

    def __init__(self, groups=1):
        super().__init__()
        self.one = nn.ConvTranspose2d(2, 6, 3, stride=2, padding=1, output_padding=1, bias=False)
        self.two = nn.ConvTranspose2d(6, 4, 2, groups=groups, dilation=2)

    def forward(self, x):
        x = self.two(F.relu(self.one(x)))
        x = F.interpolate(x, scale_factor=3.0)
        x = F.interpolate(x, size=(2 * x.shape[2], 2 * x.shape[3]), mode="nearest")
        return x.mean((2, 3))


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


def _of_two_towers(m, x):
    user, thing = m.user(x), m.thing(x)
    mixed = m.mix(torch.cat((user, thing), dim=1))
    return m.out(torch.cat((thing, mixed, user), dim=-1))


# Users and things of numbers: what two towers make of their own columns is joined.
towers = By(
    _of_two_towers,
    user=nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 4)),
    thing=nn.Sequential(nn.Linear(9, 6), nn.ReLU(), nn.Linear(6, 3)),
    mix=nn.Linear(7, 7),
    out=nn.Linear(14, 2),
)


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
    own = {"seen": nn.Embedding(70, 6), "items": nn.Embedding(70, 6), "out": nn.Linear(12, 1)}

    def do(m, seen, item):
        return m.out(torch.cat((m.seen(seen).mean(1), m.items(item).flatten(1)), 1))

    return By(do, **own)


def _of_vectors(m, left, right, age):
    y = torch.relu(m.left(left)) + torch.tanh(m.right(right))
    return m.out(torch.cat((y, age.unsqueeze(1), right[:, :1]), 1))


# Two vectors and a number of a sample; an image before and after.
vectors = By(_of_vectors, left=nn.Linear(5, 4), right=nn.Linear(3, 4), out=nn.Linear(6, 2))
images = By(
    lambda m, before, after: m.out((m.before(before) + m.after(after)).mean((2, 3))),
    before=nn.Conv2d(3, 4, 3),
    after=nn.Conv2d(1, 4, 3),
    out=nn.Linear(4, 2),
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
    lambda m, x: m.out(torch.cat([one(x[:, i]) for i, one in enumerate(m.embeddings)], 1)),
    embeddings=nn.ModuleList(nn.Embedding(n, 4) for n in (7, 30, 12)),
    out=nn.Linear(12, 3),
)


def _half_past(m, x):
    past, through = torch.split(m.stem(x), [2, 4], dim=1)
    x = torch.cat((past, torch.relu(m.conv(through))), 1)
    return m.fc(x.mean((2, 3)))


# As ShuffleNet's unit: half of the channels goes past the convolution.
channels = By(_half_past, stem=nn.Conv2d(3, 6, 3), conv=nn.Conv2d(4, 4, 1), fc=nn.Linear(6, 3))


def _joined(m, x):
    found = [m.layers[0](x)]
    for layer in m.layers[1:]:
        found.append(F.relu(layer(torch.cat(found, 1))))
    return m.fc(torch.cat(found, 1).mean((2, 3)))


# As DenseNet: each convolution reads all before it.
dense = By(
    _joined,
    layers=nn.ModuleList(nn.Conv2d(cin, 4, 3, padding=1, bias=False) for cin in (3, 4, 8)),
    fc=nn.Linear(12, 5),
)


def _squeezed(m, x):
    x = m.conv(x)
    b, c, _, _ = x.shape
    x = x * m.gate(F.adaptive_avg_pool2d(x, 1).view(b, c)).view(b, c, 1, 1)
    return m.fc(x.mean((2, 3)))


def _squeezed_by_convolutions(m, x):
    x = m.conv(x)
    scale = F.adaptive_avg_pool2d(x, 1)
    x = torch.sigmoid(m.fc2(torch.relu(m.fc1(scale)))) * x
    return m.fc(x.mean((2, 3)))


# Squeeze and excitation (Hu et al. 2018), and by convolutions of one pixel, as torchvision has it.
squeeze = By(
    _squeezed,
    conv=nn.Conv2d(3, 6, 3),
    gate=nn.Sequential(nn.Linear(6, 2), nn.ReLU(), nn.Linear(2, 6), nn.Sigmoid()),
    fc=nn.Linear(6, 4),
)
squeeze_conv = By(
    _squeezed_by_convolutions,
    conv=nn.Conv2d(3, 6, 3),
    fc1=nn.Conv2d(6, 2, 1),
    fc2=nn.Conv2d(2, 6, 1),
    fc=nn.Linear(6, 4),
)


def llama():
    """Normalization without means and a gated layer, without attention."""
    w1, w2, w3 = (nn.Linear(*sizes, bias=False) for sizes in ((8, 9), (9, 8), (8, 9)))
    own = {"norm1": nn.RMSNorm(8), "norm2": nn.RMSNorm(8, eps=1e-6), "w1": w1, "w2": w2, "w3": w3}

    def do(m, words):
        x = m.norm2(m.norm1(m.embedding(words)))
        return m.out(m.w2(F.silu(m.w1(x)) * m.w3(x)))

    return By(do, embedding=nn.Embedding(31, 8), **own, out=nn.Linear(8, 31, bias=False))


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


class Image(nn.Module):
    """Of one layer for images, then a classifier."""

    def __init__(self, layer, channels=4):
        super().__init__()
        self.layer, self.fc = layer, nn.Linear(channels, 3)

    def forward(self, x):
        return self.fc(self.layer(x).mean((2, 3)))


def group_norm():
    norms = nn.GroupNorm(2, 4, eps=1e-3), nn.ReLU(), nn.InstanceNorm2d(4, affine=True)
    for one in norms[::2]:
        nn.init.normal_(one.weight)
        nn.init.normal_(one.bias)
    return Image(nn.Sequential(*norms))


foreign = nn.Sequential()
foreign.add_module("größe", nn.Linear(4, 3))
one_number = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1), nn.Flatten(0))


def word(place):
    """What an LSTM makes of the word there."""
    own = {"embedding": nn.Embedding(9, 4), "lstm": nn.LSTM(4, 5, batch_first=True)}
    own["out"] = nn.Linear(5, 3)
    return By(lambda m, words: m.out(m.lstm(m.embedding(words))[0][:, place]), **own)


last_word, second_word = word(-1), word(1)


def lazy():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(5))


# ---- what is refused, each with one thing that no layer has


def spectral():
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)))


def frozen():
    network = mlp()
    network[2].weight.requires_grad_(False)
    return network


def fails():
    raise ValueError("no weights here")


def no_module():
    return {"weights": 3}


def huge():
    with torch.device("meta"):
        return nn.Linear(40_000, 40_000)


class Summed(nn.Linear):
    def forward(self, x):
        return super().forward(x).cumsum(1)  # this line is named


nothing, summed = 3, Summed(4, 3)
fc = nn.Linear(4, 4)
shared = nn.Sequential(fc, nn.ReLU(), fc)
one_body = By(lambda m, x: m.body(F.relu(m.body(x))), body=nn.Linear(4, 4))  # as siamese networks
two = By(lambda m, x: (m.a(x), m.b(x)), a=nn.Linear(4, 2), b=nn.Linear(4, 3))
both = By(
    lambda m, word, x: m.out(m.words(word) + x), words=nn.Embedding(9, 4), out=nn.Linear(4, 3)
)
stacked = By(lambda m, x: torch.cat((y := m.fc(x), y), 0), fc=nn.Linear(4, 3))
depends = By(lambda m, x: m.fc(x) if x.sum() > 0 else m.fc(-x), fc=nn.Linear(4, 3))
