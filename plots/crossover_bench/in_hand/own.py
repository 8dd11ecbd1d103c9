# SPDX-License-Identifier: Apache-2.0
"""Our own program, bench, beside the user's loop: the module comes through the importer, in a new
process, and bench measures a step of it. Whatever stands in the way is a phrase."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from crossover_bench.files.loading import load_files
from crossover_bench.files.rows import median_of
from crossover_bench.in_hand.loop import Loop, parted, rows_of, takes_several
from crossover_bench.in_hand.prediction import update_of
from crossover_bench.peers.pytorch.user_file import failure
from crossover_bench.place import IS_CHECKOUT, RUN
from crossover_bench.run import build
from crossover_bench.spawned import EndedError, NotSentError, call, pickled
from crossover_bench.words.text import listed, printable

_NAME = "module"  # of the network in bench's file
_FOR_BENCH = 0.25  # of the seconds that are left for both, at least
_LEAST_SECONDS = 2.0  # in which no module comes in, and nothing is begun
_REPETITIONS, _REPETITION_SECONDS = 10, 0.1
_BEYOND_BUDGET = 1.25  # of its budget, after which bench is ended
_LATE = "the time was over; give more seconds="
_NO_BENCH = f"there is no bench here ({RUN} --setup-only builds it)"
_NO_BENCH_INSTALLED = "this installation has no bench"
# What bench's optimizers have no place for, and of what nothing is computed as these are.
_BESIDE = {"weight_decay": 0.0, "nesterov": False, "dampening": 0.0}
_OTHERWISE = {"amsgrad": False, "maximize": False}


class NoOwnError(Exception):
    """Why our own program can't be measured, a phrase."""


@dataclass(frozen=True, slots=True)
class OwnProgram:
    """Seconds of a step in each repetition; what of the user's step it leaves `out`, words; else
    the `problem`, a phrase. It `is_disturbed` where other programs ran meanwhile."""

    samples: tuple[float, ...] = ()
    out: tuple[str, ...] = ()
    is_disturbed: bool = False
    problem: str = ""

    @property
    def seconds(self) -> float | None:
        """Of a step, in the median of the repetitions."""
        return median(self.samples) if self.samples else None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the importer is asked: a module on the CPU, what it reads, its loss and how that reads
    the module's end, and how many classes there are, None where the loss has none."""

    model: nn.Module
    inputs: tuple[tuple[tuple[int, ...], int], ...]
    loss: str
    ends: tuple[str, ...]
    classes: int | None


class OwnSteps:
    """Of the module of a question, which comes in once."""

    def __init__(self) -> None:
        self._described: dict[str, Any] = {}

    def step(
        self, make: Callable[[], Loop], seconds: float, say: Callable[[str], None]
    ) -> OwnProgram:
        """A step of the loop that `make` makes on the CPU, in so many seconds."""
        end = perf_counter() + seconds
        try:
            if not build.BENCH.is_file():
                raise NoOwnError(_NO_BENCH if IS_CHECKOUT else _NO_BENCH_INSTALLED)
            if seconds < _LEAST_SECONDS:
                raise NoOwnError(_LATE)
            loop = make()
            batch = loop.batches.first()
            update, out = optimizer_of(loop)
            if not self._described:
                say("our own program: the module comes in")
                wanted = wanted_of(loop, batch)
                self._described = _imported(wanted, seconds * (1 - _FOR_BENCH))
            say("our own program")
            rate = float(loop.optimizer.param_groups[0]["lr"])
            flags = [f"--batch={rows_of(batch)}", f"--optimizer={update}", f"--lr={rate:g}"]
            return _measured(self._described, flags, end - perf_counter(), out)
        except NoOwnError as problem:
            return OwnProgram(problem=str(problem))
        except Exception as error:  # the user's code may raise anything; the loop's times stand
            return OwnProgram(problem=failure(error))


# ---- what the user's loop has


def optimizer_of(loop: Loop) -> tuple[str, tuple[str, ...]]:
    """Bench's name of the optimizer, and what bench leaves out of it."""
    optimizer = loop.optimizer
    update = update_of(optimizer)
    if not update:
        raise NoOwnError(f"it has no {printable(type(optimizer).__name__, 60)}")
    out = []
    for group in optimizer.param_groups:
        for name, plain in _OTHERWISE.items():
            if group.get(name, plain) != plain:
                raise NoOwnError(f"its {update} has no {name}")
        out += [name.replace("_", " ") for name, plain in _BESIDE.items() if _is_set(group, name)]
    updated = {id(p) for group in optimizer.param_groups for p in group["params"]}
    if not updated.issuperset(map(id, loop.model.parameters())):
        raise NoOwnError("the optimizer updates a part of the parameters, and it updates all")
    is_decayed = update == "adamw"  # which bench has
    return update, tuple(dict.fromkeys(word for word in out if not is_decayed))


def _is_set(group: dict[str, Any], name: str) -> bool:
    return bool(group.get(name, _BESIDE[name]) != _BESIDE[name])


def wanted_of(loop: Loop, batch: Any) -> _Wanted:
    """What the importer is to make of the loop's module, which reads that batch."""
    model = loop.model
    if not model.training:
        raise NoOwnError("the module is in evaluation mode")
    if torch.is_autocast_enabled("cpu") or {p.dtype for p in model.parameters()} != {torch.float32}:
        raise NoOwnError("it is compared in float32 alone")
    if not loop.has_loss:
        raise NoOwnError("the module gives its own loss")
    x, y = parted(batch, loop.has_loss)
    several = takes_several(model, x) if isinstance(x, (tuple, list)) else False
    read: Sequence[Any] = x if several else [x]
    if not all(isinstance(part, torch.Tensor) and part.ndim for part in read):
        raise NoOwnError("the module reads other things than tensors with a row for each sample")
    outputs, tokens = _run(loop, x, read)
    if not isinstance(outputs, torch.Tensor) or not isinstance(y, torch.Tensor):
        raise NoOwnError("the module gives, or the loss reads, other things than a tensor")
    inputs = []
    for place, part in enumerate(read):
        if part.is_floating_point() or place in tokens:
            inputs.append((tuple(part.shape[1:]), tokens.get(place, 0)))
        else:
            raise NoOwnError("the module reads whole numbers that no embedding reads")
    loss, ends, classes = loss_of(loop.loss_of, outputs, y)
    return _Wanted(model, tuple(inputs), loss, ends, classes)


def _run(loop: Loop, x: Any, read: Sequence[torch.Tensor]) -> tuple[Any, dict[int, int]]:
    """What the module gives; and by the place of each input that an embedding reads, how many
    tokens that knows."""
    tokens: dict[int, int] = {}

    def looks(module: nn.Module, given: tuple[Any, ...]) -> None:
        for place, part in enumerate(read):
            if part.dtype == given[0].dtype and torch.equal(_sorted(part), _sorted(given[0])):
                tokens.setdefault(place, int(module.num_embeddings))

    embeddings = [part for part in loop.model.modules() if isinstance(part, nn.Embedding)]
    handles = [part.register_forward_pre_hook(looks) for part in embeddings]
    try:
        with torch.no_grad():
            return loop.outputs(x), tokens
    finally:
        for handle in handles:
            handle.remove()


def _sorted(tokens: torch.Tensor) -> torch.Tensor:
    return tokens.flatten().sort().values


# ---- the loss


_Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _of_rows(outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(outputs.flatten(0, -2), y.flatten())


# Bench's losses as users write them: its name, the function, what the network may end with beside
# a layer, whether outputs are probabilities, and the axis of the classes.
_LOSSES: tuple[tuple[str, _Loss, tuple[str, ...], bool, int | None], ...] = (
    ("cross-entropy", functional.cross_entropy, ("", "log_softmax"), False, 1),
    ("cross-entropy", _of_rows, ("", "log_softmax"), False, -1),
    ("nll", functional.nll_loss, ("log_softmax",), False, 1),
    ("mse", functional.mse_loss, ("",), False, None),
    ("bce", functional.binary_cross_entropy_with_logits, ("",), False, None),
    ("bce", functional.binary_cross_entropy, ("sigmoid",), True, None),
)


def loss_of(
    given: _Loss, outputs: torch.Tensor, y: torch.Tensor
) -> tuple[str, tuple[str, ...], int | None]:
    """The loss of bench's that gives what the user's does, with its gradient, of random outputs of
    that shape; what the network may end with; and how many classes there are."""
    for name, function, ends, are_probabilities, axis in _LOSSES:
        if (axis is None) != y.is_floating_point() or (axis is None and y.shape != outputs.shape):
            continue
        drawn = torch.rand_like(outputs) if are_probabilities else torch.randn_like(outputs)
        with suppress(Exception):  # a function may refuse these outputs
            pair = [_with_gradient(each, drawn, y) for each in (given, function)]
            if all(torch.allclose(*both, rtol=1e-4, atol=1e-7) for both in zip(*pair, strict=True)):
                return name, ends, None if axis is None else outputs.shape[axis]
    raise NoOwnError("the loss is none of cross-entropy, nll, mse and bce, in the mean")


def _with_gradient(
    loss: _Loss, outputs: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    read = outputs.detach().requires_grad_()
    value = loss(read, y)
    (gradient,) = torch.autograd.grad(value, read)
    return value.detach().reshape(()), gradient


# ---- the importer


def _imported(wanted: _Wanted, seconds: float) -> dict[str, Any]:
    """The network in JSON, from a new process."""
    try:
        told = call(bring_in, pickled(wanted), seconds)
    except NotSentError as error:
        raise NoOwnError(f"the module goes to a new process, and {error}") from error
    except EndedError as error:
        raise NoOwnError(f"the importer ended with {error}") from error
    except subprocess.TimeoutExpired as late:
        raise NoOwnError(_LATE) from late
    if isinstance(told, str):
        raise NoOwnError(told)
    described: dict[str, Any] = told
    return described


def bring_in(wanted: _Wanted) -> dict[str, Any] | str:
    """In a process of its own: the network in JSON, or why it is refused."""
    # The importer's half of PyTorch takes seconds to load.
    from crossover_bench.networks.importing import imported  # noqa: PLC0415
    from crossover_bench.networks.user_module import Input, readied  # noqa: PLC0415
    from crossover_bench.networks.values import Refused  # noqa: PLC0415

    inputs = [Input(*read) for read in wanted.inputs]
    torch.manual_seed(0)
    try:
        known = imported(
            lambda: readied(wanted.model, "the module", *inputs),
            inputs,
            source="the module",
            name=_NAME,
            loss_function=wanted.loss,
        )
    except Refused as refused:
        return str(refused)
    described = known.described
    if known.end not in wanted.ends:
        return f"it ends with a {known.end or 'layer'}, which its loss does not expect"
    if wanted.classes is not None and described.get("classes") != wanted.classes:
        return f"it sees {described.get('classes')} classes, and there are {wanted.classes}"
    return described


# ---- bench


def _measured(
    described: dict[str, Any], flags: Iterable[str], seconds: float, out: tuple[str, ...]
) -> OwnProgram:
    """A step of the network, by bench."""
    if seconds < _REPETITIONS * _REPETITION_SECONDS:
        raise NoOwnError(_LATE)
    with TemporaryDirectory() as folder:
        network, result = Path(folder) / "module.json", Path(folder) / "result.json"
        network.write_text(json.dumps(described), encoding="utf-8")
        command = [
            *(str(build.BENCH), f"--network={network}", f"--out={result}", *flags),
            *("--family=Minibatch", "--precision=f32", f"--threads={torch.get_num_threads()}"),
            *("--cuda=off", f"--budget={seconds:.1f}s"),
            f"--benchmark_repetitions={_REPETITIONS}",
            f"--benchmark_min_time={_REPETITION_SECONDS}",
        ]
        told = _told_by(command, _BEYOND_BUDGET * seconds)
        files, problems = load_files([result]) if result.is_file() else ([], [])
    rows = [row for file in files for row in file.rows]
    measured = [row for row in rows if len(row.samples)]
    if not measured:
        failures = [row.failure.message for row in rows if row.failure]
        raise NoOwnError(printable(listed([*failures, *problems]) or told or _LATE, 200))
    best = min(measured, key=lambda row: median_of(row.samples))
    return OwnProgram(tuple(map(float, best.samples)), out, best.is_disturbed)


def _told_by(command: Sequence[str], seconds: float) -> str:
    """Why bench failed, in its own words; empty where it did not. What it had measured when the
    time was over is in its file."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return ""
    except OSError as error:
        return f"bench can't be started: {error.strerror}"
    return (done.stderr.strip().splitlines() or [""])[-1] if done.returncode else ""
