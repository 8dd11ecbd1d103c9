# SPDX-License-Identifier: Apache-2.0
"""Networks as their users write them; they know nothing of bench."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - as everyone calls it


class By(nn.Module):
    """What is done with these layers, parameters and buffers."""

    def __init__(self, do, **members):
        super().__init__()
        self.do = do
        for name, member in members.items():
            is_buffer = isinstance(member, torch.Tensor) and not isinstance(member, nn.Parameter)
            (self.register_buffer if is_buffer else self.__setattr__)(name, member)

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
        self.wide = self._layer(2, 4, (1, 7), padding=(0, 3))
        self.tall = self._layer(4, 6, (7, 1), padding=(3, 0))
        self.far = self._layer(2, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))
        self.down = nn.AvgPool2d((1, 3), stride=1, padding=(0, 1))
        self.fc = nn.Linear(10 * 3 * 2, 5)

    @staticmethod
    def _layer(cin, cout, size, **window):
        conv = nn.Conv2d(cin, cout, size, bias=False, **window)
        return nn.Sequential(conv, nn.BatchNorm2d(cout, eps=1e-3), nn.ReLU())

    def forward(self, x):
        left = F.max_pool2d(self.tall(self.wide(x)), (2, 3), (2, 1))
        x = torch.cat((left, self.far(self.down(x))), 1)
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
    convs = {"left": nn.Conv1d(2, 4, 3), "right": nn.Conv1d(1, 4, 3)}
    do = lambda m, a, b: m.out((m.left(a) + m.right(b)).mean(2))  # noqa: E731
    return By(do, **convs, out=nn.Linear(4, 2))


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
        self.first = nn.ConvTranspose2d(2, 6, 3, stride=2, padding=1, output_padding=1, bias=False)
        self.second = nn.ConvTranspose2d(6, 4, 2, groups=groups, dilation=2)

    def forward(self, x):
        x = self.second(F.relu(self.first(x)))
        x = F.interpolate(x, scale_factor=3.0)
        x = F.interpolate(x, size=(2 * x.shape[2], 2 * x.shape[3]), mode="nearest")
        x = F.interpolate(x, size=(96, 36), mode="bilinear", align_corners=True)
        return F.interpolate(x, scale_factor=2, mode="bilinear").mean((2, 3))


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


def _half_past(m, x):
    past, through = torch.split(m.stem(x), [2, 4], dim=1)
    x = torch.cat((past, torch.relu(m.conv(through))), 1)
    return m.fc(x.mean((2, 3)))


# As ShuffleNet's unit: half of the channels goes past the convolution.
channels = By(_half_past, stem=nn.Conv2d(3, 6, 3), conv=nn.Conv2d(4, 4, 1), fc=nn.Linear(6, 3))


def _joined(m, x):
    maps = [m.layers[0](x)]
    for layer in m.layers[1:]:
        maps.append(F.relu(layer(torch.cat(maps, 1))))
    return m.fc(torch.cat(maps, 1).mean((2, 3)))


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


class Image(nn.Module):
    """Of one layer for images, then a classifier."""

    def __init__(self, layer, channels=4):
        super().__init__()
        self.layer, self.fc = layer, nn.Linear(channels, 3)

    def forward(self, x):
        return self.fc(self.layer(x).mean((2, 3)))


def group_norm():
    norms = nn.GroupNorm(2, 4, eps=1e-3), nn.ReLU(), nn.InstanceNorm2d(4, affine=True)
    for norm in norms[::2]:
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
    return Image(nn.Sequential(*norms))


foreign = nn.Sequential()
foreign.add_module("größe", nn.Linear(4, 3))
one_number = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1), nn.Flatten(0))


def lazy():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(5))


# ---- what is refused, each with one thing that no layer has


def spectral():
    return nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)))


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
# The middle of GELU as GPT-2 and its kin write it.
by_hand = By(
    lambda m, x: m.out(0.5 * (y := m.fc(x)) * (1 + torch.tanh(y))),
    fc=nn.Linear(4, 6),
    out=nn.Linear(6, 3),
)
unshifted = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, bias=False), nn.Linear(6, 3))
one_body = By(lambda m, x: m.body(F.relu(m.body(x))), body=nn.Linear(4, 4))  # as siamese networks
two = By(lambda m, x: (m.a(x), m.b(x)), a=nn.Linear(4, 2), b=nn.Linear(4, 3))
both = By(
    lambda m, word, x: m.out(m.words(word) + x), words=nn.Embedding(9, 4), out=nn.Linear(4, 3)
)
stacked = By(lambda m, x: torch.cat((y := m.fc(x), y), 0), fc=nn.Linear(4, 3))
depends = By(lambda m, x: m.fc(x) if x.sum() > 0 else m.fc(-x), fc=nn.Linear(4, 3))
