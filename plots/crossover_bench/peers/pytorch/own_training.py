# SPDX-License-Identifier: Apache-2.0
"""The training of a user's module as it is, its loss, and what is counted of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils._pytree import tree_leaves, tree_map

from crossover_bench.peers.generator import LABELS, uniform
from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.pytorch.counting import Counting, Counts, Recurrences
from crossover_bench.peers.pytorch.devices import of_row, waits_for
from crossover_bench.peers.pytorch.draws import CastToF64, DrawnInF32, nothing_drawn
from crossover_bench.peers.pytorch.own_module import Module, batches_of, generated, made, seed
from crossover_bench.peers.pytorch.training import Graphs, Training, optimizer_of
from crossover_bench.peers.pytorch.user_file import failure, loaded
from crossover_bench.peers.tasks import Optimizer, Task, Unsupported
from crossover_bench.peers.verification import MODULE, Mismatch

# Of backward passes: what only turns a tensor.
_TURNS = (
    *("View", "Squeeze", "Unsqueeze", "Reshape", "Alias", "Select", "Slice", "Permute"),
    *("Transpose", "T", "Expand", "UnsafeView", "Clone", "Flatten"),
)


def outputs_of(given: Any, choice: int | None = None) -> list[torch.Tensor]:
    """What can be trained of what a module gives, or of its output of that number."""
    values = list(given.values()) if isinstance(given, dict) else given
    if choice is not None:
        count = len(values) if isinstance(values, (tuple, list)) else 1
        if choice >= count:
            raise Unsupported(f"--output={choice}: the module's outputs are {count}, from 0")
        values = values[choice] if isinstance(values, (tuple, list)) else values
    if isinstance(values, torch.Tensor):
        return [values] if values.is_floating_point() and values.requires_grad else []
    if not isinstance(values, (tuple, list, dict)):
        return []
    return [output for value in values for output in outputs_of(value)]


def _ending(output: torch.Tensor) -> str:
    """The last function that changes numbers: "Sigmoid", "LogSoftmax"."""
    node = output.grad_fn
    while node is not None:
        name = re.sub(r"Backward\d*$", "", node.name())
        if name not in _TURNS or not node.next_functions:
            return name
        node = node.next_functions[0][0]
    return ""


_FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "cross-entropy": functional.cross_entropy,
    "nll": functional.nll_loss,
    "mse": functional.mse_loss,
    "bce of probabilities": functional.binary_cross_entropy,
    "bce with logits": functional.binary_cross_entropy_with_logits,
}


@dataclass(frozen=True)
class Objective:
    """How one output is trained: `kind` is one of the functions. `by_place`: classes are the last
    dimension of more than two; `doubt` is a sentence."""

    kind: str
    by_place: bool = False
    doubt: str = ""

    @staticmethod
    def of(loss: str, output: torch.Tensor, first: torch.Tensor, is_alone: bool) -> Objective:
        """For an output, of which the module may give others; `first` is what it reads first."""
        end = _ending(output)
        if loss == "mse":
            return Objective(loss)
        if loss == "bce":
            return Objective("bce of probabilities" if end == "Sigmoid" else "bce with logits")
        by_place = output.ndim > 2 and output.shape[:2] == first.shape[:2]
        if output.ndim < 2 or output.shape[-1 if by_place else 1] == 1:
            if not is_alone:
                return Objective("mse")
            raise Unsupported(
                f"the output {list(output.shape)} has one number of a row, and {loss} needs one of "
                "each class; --loss-function=bce or mse trains it"
            )
        squashed = end in ("Softmax", "Sigmoid") and loss == "cross-entropy"
        doubt = f"it ends with a {end.lower()}, and cross-entropy takes another softmax of it"
        kind = "nll" if end == "LogSoftmax" else loss
        return Objective(kind, by_place, doubt if squashed else "")

    def target(self, output: torch.Tensor, start: int) -> torch.Tensor:
        """Generated, from that place of the stream on."""
        shape = tuple(output.shape)
        if self.kind in ("nll", "cross-entropy"):
            axis = len(shape) - 1 if self.by_place else 1
            places = (*shape[:axis], *shape[axis + 1 :])
            numbers = uniform(LABELS, start, math.prod(places)).reshape(places)
            return torch.from_numpy(np.floor(numbers * shape[axis]).astype(np.int64))
        numbers = 2 * uniform(LABELS, start, math.prod(shape)).reshape(shape)
        return torch.from_numpy(numbers - 1 if self.kind == "mse" else np.floor(numbers))

    def __call__(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.by_place:
            output, target = output.flatten(0, -2), target.flatten()
        elif target.is_floating_point() and target.shape != output.shape:
            target = target.view_as(output)
        return _FUNCTIONS[self.kind](output, target)


def _own_loss(given: Any) -> torch.Tensor:
    """Of a module that gives its loss, alone or among others."""
    loss = given.get("loss") if isinstance(given, dict) else getattr(given, "loss", None)
    losses = [loss] if loss is not None else [y for y in outputs_of(given) if y.numel() == 1]
    if not losses:
        raise Unsupported(
            "--loss-function=module: the module gives no loss, a tensor of one number"
        )
    return losses[0].squeeze()


# ---- its training


class OwnTraining(Training):
    """As Training, of a module of a user's: training_of() makes the class for one.

    Where the two sides of a verification can't draw the same random numbers (compiled, in a graph,
    on a GPU), a second training of it that draws none is verified: `_quiet`."""

    module: Module

    def __init__(
        self, task: Task, configuration: Configuration, dtype: torch.dtype = torch.float32
    ) -> None:
        self.task, self._dtype = task, dtype
        on_gpu = configuration["device"] == "cuda"
        self.device = of_row(configuration)
        self.wait = waits_for(self.device)
        self._autocast = configuration["precision"] == "bf16"
        self._overwrites = True
        self._is_exact = dtype == torch.float64
        self._draws_nothing = configuration.get("draws") == "off"
        is_graph = configuration["execution"] == "graph"
        is_compiled = configuration.get("compiler") == "inductor"
        self._without_draws = {**configuration, "draws": "off"}
        self._is_apart = on_gpu or is_graph or is_compiled
        self._quiet: OwnTraining | None = None
        self.losses = []
        with self._conditions():
            read = self._read()
            self.network = self._built(read[0][0], dtype)
            self._start = [p.detach().clone() for p in self.network.parameters()]
            self._buffers = [b.detach().clone() for b in self.network.buffers()]
            self.called = self.network
            self._own_loss = loaded(self.module.loss) if ":" in self.module.loss else None
            self.objectives: list[Objective] = []
            with DrawnInF32() as drawing:
                self.batches = self._with_targets(read)
            self.draws = drawing.drew
            self._put_back_buffers()
            self.optimizer = optimizer_of(self.network, task, capturable=is_graph)
            self._forward = self._plain_forward
            if is_compiled:
                self._forward = torch.compile(self._plain_forward, dynamic=False)
            self._step = self._eager_step
            if is_graph:
                self._step = Graphs(self._eager_step, self.optimizer, self.batches)

    @contextmanager
    def _conditions(self) -> Iterator[None]:
        """What the user's code meets, in float64 as default. Mismatch where that can't be had."""
        before = torch.get_default_dtype()
        try:
            with ExitStack() as stack:
                if self._is_exact:
                    torch.set_default_dtype(torch.float64)
                    stack.enter_context(CastToF64())
                    stack.enter_context(DrawnInF32())
                if self._draws_nothing:
                    stack.enter_context(nothing_drawn())
                yield
        except (Mismatch, Unsupported, MemoryError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            if not self._is_exact:
                raise
            raise Mismatch(
                f"it can't be run in float64, so nothing verifies it: {failure(error)}"
            ) from error
        finally:
            torch.set_default_dtype(before)

    def _read(self) -> list[tuple[Any, Any]]:
        """Inputs of each batch, with the user's targets; None where they are generated."""
        task = self.task
        read = batches_of(self.module)[: task.steps]
        if not read:
            for first in range(0, task.rows, task.batch):
                rows = min(task.batch, task.rows - first)
                read.append((generated(self.module, first, rows), None))
        return [(self._placed(x), y and self._placed(y)) for x, y in read]

    def _placed(self, values: Any, dtype: torch.dtype | None = None) -> Any:
        floating = dtype or self._dtype

        def placed(value: torch.Tensor) -> torch.Tensor:
            return value.to(self.device, floating if value.is_floating_point() else value.dtype)

        return tree_map(placed, values)

    def _built(self, x: Any, dtype: torch.dtype) -> nn.Module:
        """From the start that it has in float32."""
        torch.set_default_dtype(dtype)
        seed(0)
        network = made(self.module).to(self.device)
        if any(nn.parameter.is_lazy(p) for p in network.parameters()):
            with torch.no_grad():
                _called(network, self._placed(x, next(_dtypes(network), dtype)))
        network = network.to(dtype)
        if dtype == torch.float64:
            with torch._C.DisableTorchFunction():
                single = self._built(x, torch.float32)
            torch.set_default_dtype(dtype)
            pairs = [
                *zip(network.parameters(), single.parameters(), strict=True),
                *zip(network.buffers(), single.buffers(), strict=True),
            ]
            with torch.no_grad():
                for value, start in pairs:
                    value.copy_(start)
        if self._draws_nothing:
            for module in network.modules():
                if isinstance(module, nn.RNNBase):
                    module.dropout = 0.0
        return network

    def _with_targets(self, read: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """With what the outputs are compared with, once it is known what these are."""
        loss, start = self.module.loss, 0
        batches: list[tuple[Any, Any]] = []
        for x, target in read:
            if target is not None and batches:
                batches.append((x, target))
                continue
            given = _called(self.network, x)
            if loss == "module":
                _own_loss(given)
            if loss == "module" or self._own_loss:
                batches.append((x, () if not self._own_loss else x if target is None else target))
                continue
            outputs = outputs_of(given, self.module.output)
            if not outputs:
                raise Unsupported("the module gives no numbers that depend on its parameters")
            first = next(iter(x.values() if isinstance(x, dict) else x))
            self.objectives = [Objective.of(loss, o, first, len(outputs) == 1) for o in outputs]
            targets = []
            for objective, output in zip(self.objectives, outputs, strict=True):
                targets.append(objective.target(output, start))
                start += output.numel()
            batches.append((x, self._placed(tuple(targets)) if target is None else target))
        return batches

    def _plain_forward(self, x: Any, y: Any) -> torch.Tensor:
        if not self._autocast:
            return self._loss(x, y)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            return self._loss(x, y)

    def _loss(self, x: Any, y: Any) -> torch.Tensor:
        given = self.called(**x) if isinstance(x, dict) else self.called(*x)
        if self._own_loss is not None:
            return self._own_loss(given, y)
        if not self.objectives:
            return _own_loss(given)
        outputs = outputs_of(given, self.module.output)
        pairs = zip(self.objectives, outputs, y, strict=False)  # data may have fewer targets
        losses = [objective(output, target) for objective, output, target in pairs]
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum()

    def restart(self) -> None:
        self._quiet = None
        super().restart()
        self._put_back_buffers()

    def _put_back_buffers(self) -> None:
        with torch.no_grad():
            for buffer, start in zip(self.network.buffers(), self._buffers, strict=True):
                buffer.copy_(start)

    def _to_verify(self) -> OwnTraining:
        """This one, or one of it that draws no random numbers."""
        if not (self.draws and self._is_apart and not self._draws_nothing):
            return self
        if self._quiet is None:
            self._quiet = type(self)(self.task, self._without_draws)
        return self._quiet

    def run_steps(self, count: int) -> list[float]:
        verified = self._to_verify()
        with verified._conditions():
            verified.restart()
            seed(1)
            batches = islice(cycle(verified.batches), count)
            return [float(verified._step(x, y)) for x, y in batches]

    def loss(self) -> float:
        verified = self._to_verify()
        with verified._conditions():
            verified.restart()
            seed(1)
            return float(verified._plain_forward(*verified.batches[0]))

    def counted(self) -> Counts:
        """Of a step with the first batch, after one that made the optimizer's state. It updates all
        parameters in one call, as PyTorch does on a GPU."""
        for group in self.optimizer.param_groups:
            group["foreach"] = True
        self.run_steps(1)
        self.optimizer.zero_grad(set_to_none=True)
        with Counting() as counting, Recurrences(counting):
            loss = self._plain_forward(*self.batches[0])
            counting.forward_is_done()
            loss.backward()
            counting.of_update = True
            self.optimizer.step()
        counting.update_is_done(self.task.optimizer.kind, self.count_parameters())
        return counting.counts

    def memory(self, counts: Counts) -> dict[str, int]:
        """Bytes by what they are of; `peak` is most of all at a time."""
        state = tree_leaves(list(self.optimizer.state.values()))
        sizes = {
            "data": _bytes_of(tree_leaves(self.batches[0])),
            "parameters": _bytes_of([*self.network.parameters(), *self.network.buffers()]),
            "optimizer": _bytes_of(state),
        }
        peak = sum(sizes.values()) + counts.peak_bytes
        return {**sizes, "activations": counts.kept_bytes, "peak": peak}

    def parameters(self) -> list[np.ndarray]:
        return super().parameters() if self._quiet is None else self._quiet.parameters()


def _bytes_of(values: Iterable[Any]) -> int:
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))


def _called(network: nn.Module, x: Any) -> Any:
    return network(**x) if isinstance(x, dict) else network(*x)


def _dtypes(network: nn.Module) -> Iterator[torch.dtype]:
    return (
        p.dtype
        for p in network.parameters()
        if p.is_floating_point() and not nn.parameter.is_lazy(p)
    )


def training_of(module: Module) -> type[OwnTraining]:
    return type("OwnTraining", (OwnTraining,), {"module": module})


# ---- what it does


ON_CPU = {"device": "cpu"}


def told_of(
    module: Module, batch: int, optimizer: str, where: Configuration = ON_CPU
) -> tuple[dict[str, Any], OwnTraining]:
    """What bench tells of its own networks, with `flops` of a step of that batch and whether the
    module `draws`; and the training of a step, which was taken. Unsupported, in a sentence, where
    it can't be trained."""
    kind = training_of(module)
    plain = {"execution": "eager", "precision": "f32", **where}
    parsed = Optimizer.of(optimizer)
    task = Task({"loss": module.loss}, module.name, batch, batch, parsed, optimizer, 0, 0.0)
    try:
        training = kind(task, plain)
        training.run_steps(1)
    except (Unsupported, MemoryError):
        raise
    except Exception as error:
        is_of_arguments = isinstance(error, TypeError) and "positional argument" in str(error)
        remedy = "; --input= gives the shape of one argument of forward: repeat it for each"
        raise Unsupported(
            f"{module.name} can't be trained: {failure(error)}{remedy if is_of_arguments else ''}"
        ) from error
    if not any(p.requires_grad for p in training.network.parameters()):
        raise Unsupported(f"{module.name} has no parameters that are trained")
    params = training.count_parameters()
    norms = nn.modules.batchnorm._NormBase
    has_norm = any(isinstance(part, norms) for part in training.network.modules())
    layers = [{"type": kind} for kind in (MODULE, *(["batch_norm"] if has_norm else []))]
    network = {"loss": module.loss, "layers": layers}
    counted = {"network": network, "data": module.name, "batch": batch}
    counted |= {"optimizer": optimizer, "params": params}
    try:
        counts = training.counted()
    except Exception:  # a module may do what no mode can watch: then nobody knows what it asks
        counted["flops"] = float(2 * params)
    else:
        counted |= {key: counts.total(key) for key in ("flops", "bytes", "launches")}
        memory = training.memory(counts)
        counted["cost"] = {"operations": counts.operations, "memory_bytes": memory}
    counted["draws"] = training.draws
    return counted, training
