# SPDX-License-Identifier: Apache-2.0
"""A convolutional network as a PyTorch module.

./run --network=examples/net.py:make --input=3x32x32 --batch=32
"""

from torch import nn


def make() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Flatten(),
        nn.Linear(1024, 10),
    )
