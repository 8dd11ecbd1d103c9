# SPDX-License-Identifier: Apache-2.0
"""Networks as bench describes them (docs/networks.md), in PyTorch's modules, and their
deterministic start.

Modules stand in the order in which docs/golden.md numbers their parameters.
"""

from __future__ import annotations

import math
from operator import getitem
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch.nn.functional import linear

from crossover_bench.peers.generator import PARAMETERS, uniform
from crossover_bench.peers.pytorch.layers import (
    RECURRENT,
    ClassToken,
    Embedding,
    PositionEmbedding,
    is_time_first,
    module_of,
)

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def network_of(described: dict[str, Any]) -> nn.Module:
    """Its parameters have no values yet: fill() sets them. Unsupported, in a sentence that names
    the layer, where it can't be had. An nn.Sequential, if each layer reads the one before."""
    reads_tokens = described["input"]["type"] == "i32"
    batch, sample = 2, described["input"]["shape"]  # a batch of 1 has no variance
    x = torch.empty(
        (*sample, batch) if reads_tokens else (batch, *sample),
        dtype=torch.int64 if reads_tokens else torch.float32,
        device="meta",
    )
    modules = nn.Sequential()
    graph = fx.Graph()
    values, name = {"input": (x, graph.placeholder("x"), reads_tokens)}, "input"
    places: dict[str, str] = {}  # of modules, by the names of their layers
    for layer in _stacked(described["layers"]):
        read = [values[value] for value in layer.get("inputs", [name])]
        name = layer["name"]
        if "tied" in layer:
            ((x, node, time_first),) = read
            weight = f"{places[layer['tied']]}.weight"
            value = linear(x, modules.get_parameter(weight))
            node = graph.call_function(linear, (node, graph.get_attr(weight)))
            values[name] = value, node, time_first
            continue
        shapes, nodes, (time_first, *_) = zip(*read, strict=True)
        if "shared" in layer:
            places[name] = places[layer["shared"]]
            module = modules[int(places[name])]
        else:
            places[name] = str(len(modules))
            module = module_of(layer, list(shapes), int(time_first))
            modules.append(module.requires_grad_(layer.get("requires_grad", True)))
        node = graph.call_module(places[name], nodes)
        value = module(*shapes)
        if isinstance(value, tuple):  # of an LSTM or GRU, which also gives its last state
            value, node = value[0], graph.call_function(getitem, (node, 0))
        values[name] = value, node, is_time_first(layer, time_first)
    node = values[name][1]
    if "labels" in described:
        modules.append(nn.Flatten(0, 1))
        node = graph.call_module(str(len(modules) - 1), (node,))
    graph.output(node)
    # fx writes straight code, which torch.compile can break at an LSTM.
    is_chain = not any(
        layer.keys() & {"inputs", "tied", "shared"} or layer["type"] in RECURRENT
        for layer in described["layers"]
    )
    return (modules if is_chain else fx.GraphModule(modules, graph)).to_empty(device="cpu")


def _stacked(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Layers of LSTM, or of GRU, that follow one another are one, as PyTorch's users have them;
    those that drop know their `number`."""
    read = {name for layer in layers for name in layer.get("inputs", [])}
    read |= {layer["shared"] for layer in layers if "shared" in layer}
    stacked: list[dict[str, Any]] = []
    for number, layer in enumerate(layers):
        last: dict[str, Any] = stacked[-1] if stacked else {"type": ""}
        is_same = layer["type"] == last["type"] and not layer.keys() & {"inputs", "shared"}
        is_same &= layer.get("requires_grad") == last.get("requires_grad")
        stacks = is_same and layer["type"] in RECURRENT and last["name"] not in read
        if stacks and layer["hidden_size"] == last["hidden_size"]:
            last |= {"name": layer["name"], "num_layers": last.get("num_layers", 1) + 1}
        else:
            stacked.append(layer | ({"number": number} if layer["type"] == "dropout" else {}))
    return stacked


def fill(network: nn.Module, trains: bool = True, copy: int = 0) -> None:
    """Sets every parameter to its deterministic start, and statistics to PyTorch's. Of a network
    that is used a batch normalization is a factor and an offset (docs/method/timed.md). Each copy
    draws behind the one before."""
    position = copy * sum(parameter.numel() for parameter in network.parameters())
    for module in network.modules():
        if isinstance(module, BATCH_NORMS):
            module.reset_running_stats()
        for name, parameter in module.named_parameters(recurse=False):
            count = parameter.numel()
            drawn = 2 * uniform(PARAMETERS, position, count) - 1
            if not trains and isinstance(module, BATCH_NORMS):
                module.running_var.fill_(1 - module.eps)
                values = 2 + 0.5 * drawn if name == "weight" else 0.1 * drawn
            elif isinstance(module, (*BATCH_NORMS, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)):
                values = np.full(count, 1.0 if name == "weight" else 0.0)
            else:
                values = drawn * _bound(module)
            position += count
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(values).reshape(parameter.shape))


def _bound(module: nn.Module) -> float:
    """Of the start of its parameters, either way."""
    if isinstance(module, Embedding) and not module.scaled_start:
        return 1.0
    if isinstance(module, (Embedding, PositionEmbedding, ClassToken)):
        return 1 / math.sqrt(module.weight.shape[1])
    if isinstance(module, nn.RNNBase):
        return 1 / math.sqrt(module.hidden_size)
    if isinstance(module, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
        return 1 / math.sqrt(module.weight[0].numel())
    raise TypeError(f"no start is defined for {type(module).__name__}")
