# SPDX-License-Identifier: Apache-2.0
"""The networks as a user of PyTorch would write them, and their deterministic start.

Modules stand in the order in which docs/golden.md numbers their parameters.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from peers.generator import PARAMETERS, kept_by_dropout, uniform
from peers.tasks import VOCABULARY, mlp_of

_HIDDEN = 256  # of lstm


class Dropout(nn.Dropout):
    """PyTorch's, but that a mask may be given: while a network is verified, the reference's."""

    def __init__(self, probability: float, number: int, width: int) -> None:
        super().__init__(probability)
        self.number = number  # of the layer, counted from 0
        self.width = width
        self.mask: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mask is not None:
            return x * self.mask.to(x.dtype)
        return super().forward(x)

    def take_mask(self, step: int, rows: int, device: torch.device) -> None:
        """That of the reference in its step, from 1."""
        kept = kept_by_dropout(self.number, step, rows * self.width, self.p)
        mask = torch.from_numpy(kept / (1 - self.p)).reshape(rows, self.width)
        self.mask = mask.to(device)


class Residual(nn.Module):
    """The main path and a shortcut, summed, through a ReLU."""

    def __init__(self, main: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.main = main
        self.shortcut = shortcut
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.main(x) + self.shortcut(x))


class LanguageModel(nn.Module):
    """Tokens [time, batch] to logits [time · batch, vocabulary]."""

    def __init__(self, vocabulary: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers)
        self.out = nn.Linear(hidden, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        values, _ = self.lstm(self.embedding(tokens))
        return self.out(values).flatten(0, 1)


def network_of(model: str) -> nn.Module:
    """ValueError where the network is unknown."""
    if known := mlp_of(model):
        return mlp(*known)
    made = {
        "alexnet-r": alexnet_r,
        "alexnet-s": alexnet_s,
        "resnet-56": lambda: resnet_cifar(9),
        "resnet-50": resnet_50,
        "lstm": lambda: LanguageModel(VOCABULARY, _HIDDEN, 2),
    }
    if model not in made:
        raise ValueError(f"PyTorch's side has no network {model!r}")
    return made[model]()


def fill(network: nn.Module) -> None:
    """Sets every parameter to its deterministic start."""
    position = 0
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False):
            count = parameter.numel()
            if isinstance(module, nn.BatchNorm2d):
                values = np.full(count, 1.0 if name == "weight" else 0.0)
            else:
                values = (2 * uniform(PARAMETERS, position, count) - 1) * _bound(module)
            position += count
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(values).reshape(parameter.shape))


def _bound(module: nn.Module) -> float:
    """Of the start of its parameters, either way."""
    if isinstance(module, nn.Embedding):
        return 1.0
    if isinstance(module, nn.LSTM):
        return 1 / math.sqrt(module.hidden_size)
    if isinstance(module, (nn.Linear, nn.Conv2d)):
        return 1 / math.sqrt(module.weight[0].numel())
    raise TypeError(f"no start is defined for {type(module).__name__}")


def mlp(widths: list[int], activation: str) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(1, len(widths)):
        if i > 1:
            layers.append(nn.ReLU() if activation == "relu" else nn.Sigmoid())
        layers.append(nn.Linear(widths[i - 1], widths[i]))
    return nn.Sequential(*layers)


def alexnet_r() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU()),
        *(nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True)),
        *(nn.Flatten(), nn.Linear(1024, 10)),
    )


def alexnet_s(dropout: float = 0.5) -> nn.Sequential:
    layers = [
        *(nn.Conv2d(3, 96, 11, 4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(256, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)),
        nn.Flatten(),
    ]
    width = 9216
    for _ in range(2):
        layers += [nn.Linear(width, 4096), nn.ReLU()]
        if dropout > 0:
            layers.append(Dropout(dropout, len(layers), 4096))
        width = 4096
    return nn.Sequential(*layers, nn.Linear(width, 1000))


def resnet_cifar(blocks: int) -> nn.Sequential:
    """6 · blocks + 2 layers."""
    layers: list[nn.Module] = [*_convolution(3, 16, 3), nn.ReLU()]
    channels = 16
    for stage, width in enumerate((16, 32, 64)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            main = nn.Sequential(
                *_convolution(channels, width, 3, stride), nn.ReLU(), *_convolution(width, width, 3)
            )
            layers.append(Residual(main, _shortcut(channels, width, stride)))
            channels = width
    return nn.Sequential(*layers, *_head(channels, 10))


def resnet_50() -> nn.Sequential:
    layers: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, (middle, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride, out = (2 if stage > 0 and block == 0 else 1), 4 * middle
            main = nn.Sequential(
                *(*_convolution(channels, middle, 1), nn.ReLU()),
                *(*_convolution(middle, middle, 3, stride), nn.ReLU()),
                *_convolution(middle, out, 1),
            )
            layers.append(Residual(main, _shortcut(channels, out, stride)))
            channels = out
    return nn.Sequential(*layers, *_head(channels, 1000))


def _convolution(channels: int, out: int, size: int, stride: int = 1) -> list[nn.Module]:
    """Normalized; without a bias, which that would take out again."""
    return [
        nn.Conv2d(channels, out, size, stride, padding=size // 2, bias=False),
        nn.BatchNorm2d(out),
    ]


def _shortcut(channels: int, out: int, stride: int) -> nn.Module:
    if channels == out and stride == 1:
        return nn.Identity()
    return nn.Sequential(*_convolution(channels, out, 1, stride))


def _head(channels: int, classes: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]
