# SPDX-License-Identifier: Apache-2.0
"""Modules as they are, as a worker with rows of its own: docs/method/peers.md.

python -m peers.pytorch.own make FILE.py:CALLABLE --input=SHAPE -o NAME.module.json
python -m peers.pytorch.own --network=NAME.module.json --batch=32,128
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

try:
    import torch
except ModuleNotFoundError as missing:
    sys.exit(f"python -m peers.pytorch.own: this Python ({sys.executable}) has no {missing.name}")

from crossover_bench.peers.axes import DEVICES, torch_device
from crossover_bench.peers.protocol import Answer, Configuration, serve
from crossover_bench.peers.pytorch import devices
from crossover_bench.peers.pytorch.__main__ import Rows
from crossover_bench.peers.pytorch.counterparts import AXES, MODES, TRAINING
from crossover_bench.peers.pytorch.own_module import LOSSES, Module
from crossover_bench.peers.pytorch.own_training import OwnTraining, told_of, training_of
from crossover_bench.peers.pytorch.training import References, cached_graphs
from crossover_bench.peers.rows import Prepared, training_row
from crossover_bench.peers.tasks import Unsupported

PROGRAM = "python -m peers.pytorch.own"
_BATCHES = 10  # of an epoch, unless --rows says another number
_RATES = {"sgd": 0.01, "momentum": 0.01, "adam": 1e-3, "adamw": 1e-3}
_WHERE = ("device", "torch_device")
_DECAY = 1e-4  # of adamw


class OwnRows(Rows):
    """A row for each network, batch, device, number of threads and mode."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self._options = options
        self._modules: dict[str, Module] = {}
        self._ladders: dict[str, list[str]] = {}
        for plain in map(Module.read, options.network):
            sizes = [plain.scaled(factor) for factor in sorted(options.scale)]
            self._modules |= {module.name: module for module in sizes}
            if len(sizes) > 1:
                self._ladders[plain.name] = [module.name for module in sizes]
        self._told: dict[tuple[str, int], dict[str, Any]] = {}
        self._kinds: dict[str, type[OwnTraining]] = {}
        self._of: dict[tuple[str, str], References] = {}

    def describe(self) -> Answer:
        return super().describe() | {
            "axes": [*AXES, torch_device(devices.kinds())],
            "rows": list(self._own_rows()),
            "ladders": self._ladders,
            "ladder_batches": {
                name: self._batches(self._modules[first])[0]
                for name, (first, *_) in self._ladders.items()
            },
        }

    def rows(self, configuration: Configuration, **_: Any) -> Answer:
        del configuration  # they do no work of bench's
        return {"rows": []}

    def _own_rows(self) -> Iterator[dict[str, Any]]:
        options = self._options
        of_cpu = {"CUDA_VISIBLE_DEVICES": ""} if torch.cuda.is_available() else {}
        for name, module in self._modules.items():
            for family, batch in product(options.family, self._batches(module)):
                work = {"family": family, "model": name, "batch": str(batch)}
                for precision, way in product(options.precision, self._ways()):
                    configuration = {**work, "precision": precision, "program": "pytorch", **way}
                    environment = of_cpu if way["device"] == "cpu" else {}
                    yield {"configuration": configuration, "environment": environment}

    def _ways(self) -> Iterator[Configuration]:
        options = self._options
        for device, mode in product(options.devices, options.mode):
            compiler = "inductor" if mode == "compile" else "none"
            way = {"device": device, "execution": "eager", "compiler": compiler}
            if device == "cpu" and mode != "graph":
                yield from ({**way, "cpu_threads": str(count)} for count in options.threads)
            elif device == "cuda" and (kind := options.torch_device or devices.first()):
                way |= {"data": "resident", "torch_device": kind}
                if mode != "graph" or kind == "cuda":
                    yield {**way, "execution": "graph" if mode == "graph" else "eager"}

    def _batches(self, module: Module) -> list[int]:
        if self._options.batch and not module.data:
            return self._options.batch
        return [module.batch()]

    def made(self, configuration: Configuration, _: dict[str, Any] | None) -> Prepared:
        module = self._modules[configuration["model"]]
        on_gpu = configuration["device"] == "cuda"
        devices.require(configuration)
        threads = int(configuration.get("cpu_threads", self._threads))
        torch.set_num_threads(threads)
        where = {key: configuration[key] for key in _WHERE if key in configuration}
        told = self._told_of(module, int(configuration["batch"]), where)
        is_apart = on_gpu or configuration["execution"] == "graph"
        is_apart |= configuration.get("compiler") == "inductor"
        quiet = told["draws"] and is_apart
        of_cuda = devices.of_row(configuration).type == "cuda"
        kind, references = self._references_to(module, quiet, of_cuda)
        counted = {**told, "step": {"flops": 0.0 if module.data else told["flops"]}}
        flops, steps = told["flops"], 1.0
        if configuration["family"] == "Epoch":
            rows = module.rows() or self._options.rows or _BATCHES * told["batch"]
            steps = rows / told["batch"]
            flops *= steps
            counted |= {"rows": rows, "epoch": {"flops": 0.0 if module.data else flops}}
        before = cached_graphs()
        prepared = training_row(kind, configuration, counted, references)
        if configuration.get("compiler") == "inductor":
            prepared.once["cached_graphs"] = cached_graphs() - before
        prepared.once["first_call_seconds"] += self._start_seconds if on_gpu else 0
        prepared.begin = lambda: torch.set_num_threads(threads)
        # A user's batch is verified whole, whatever it costs: nobody knows how to part it.
        prepared.facts["flops"] = flops
        if "cost" in told:
            prepared.facts |= {key: steps * told[key] for key in ("bytes", "launches")}
            prepared.facts["cost"] = told["cost"]
        prepared.facts["as_is"] = module.reason or "it is measured in PyTorch as it is"
        if "cpu_threads" in configuration:
            prepared.facts["cpu_threads"] = threads
        return prepared

    def _told_of(self, module: Module, batch: int, where: Configuration) -> dict[str, Any]:
        key = module.name, batch
        if key not in self._told:
            self._told[key], _ = told_of(module, batch, self._options.optimizer, where)
        return self._told[key]

    def _references_to(
        self, module: Module, quiet: bool, on_gpu: bool
    ) -> tuple[type[OwnTraining], References]:
        """In float64, with the random numbers of float32 or, `quiet`, none; on a GPU there, since
        forward() may name the device."""
        kind = self._kinds.setdefault(module.name, training_of(module))
        key = module.name, f"{quiet} {on_gpu}"
        if key not in self._of:
            changes = {"draws": "off"} if quiet else {}
            changes |= {"device": "cuda"} if on_gpu else {}
            self._of[key] = References(self._threads, kind, **changes)
        return kind, self._of[key]


# ---- the command line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: {message}\n")


def _make(arguments: Sequence[str]) -> int:
    """Tries a module and writes what the worker needs to know; 1 after a sentence where it can't be
    trained."""
    options = _maker().parse_args(arguments)
    shapes, types = options.input, options.input_type or [0] * len(options.input)
    if not shapes and not options.data:
        options.usage("--input is missing, the shape of one sample, such as --input=3x32x32")
    if len(types) != len(shapes):
        options.usage("--input-type is to be given as often as --input, or not at all")
    module = Module(
        name=options.name,
        source=_with_folder(options.source),
        inputs=tuple(zip(shapes, types, strict=True)),
        batch_axis=options.batch_axis,
        loss=_with_folder(options.loss_function),
        output=options.output,
        data=options.data and _with_folder(options.data),
        reason=options.reason,
    )
    try:
        batch = options.batch[0] if options.batch and not options.data else module.batch()
        told, training = told_of(module, batch, "sgd lr=0.01")
    except Unsupported as refused:
        print(f"{PROGRAM}: {refused}", file=sys.stderr)
        return 1
    module.write(options.output_file)
    losses = " + ".join(each.kind for each in training.objectives) or options.loss_function
    summary = f"{module.name}: {told['params']:,} parameters, trained by {losses}"
    print(f"{PROGRAM}: {summary}; it is measured in PyTorch as it is", file=sys.stderr)
    for doubt in filter(None, dict.fromkeys(each.doubt for each in training.objectives)):
        print(f"{PROGRAM}: {doubt}", file=sys.stderr)
    return 0


def _with_folder(source: str) -> str:
    file, colon, name = source.rpartition(":")
    return f"{Path(file).absolute()}:{name}" if colon else source


def _shape(text: str) -> tuple[int, ...]:
    if text == "scalar":
        return ()
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape such as 784 or 3x32x32, nor scalar")
    return tuple(map(int, text.split("x")))


def _input_type(text: str) -> int:
    if text == "numbers":
        return 0
    if not re.fullmatch(r"tokens:[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither numbers nor tokens:N")
    return int(text.partition(":")[2])


def _callable(text: str) -> str:
    file, colon, name = text.rpartition(":")
    if not (colon and file.endswith(".py") and name.isidentifier()):
        raise argparse.ArgumentTypeError(f"{text!r} is not FILE.py:CALLABLE")
    return text


def _loss(text: str) -> str:
    if text in LOSSES:
        return text
    try:
        return _callable(text)
    except argparse.ArgumentTypeError:
        known = ", ".join(LOSSES)
        raise argparse.ArgumentTypeError(f"{text!r} is none of {known}, nor FILE.py:loss") from None


def _maker() -> argparse.ArgumentParser:
    parser = _Parser(prog=f"{PROGRAM} make", allow_abbrev=False)
    add = parser.add_argument
    add("source", type=_callable)
    add("--input", type=_shape, action="append", default=[])
    add("--input-type", type=_input_type, action="append", default=[])
    add("--batch-axis", type=int, choices=(0, 1), default=0)
    add("--loss-function", type=_loss, default="cross-entropy")
    add("--output", type=lambda text: None if text == "all" else int(text))
    add("--batch", type=_listed(int), default=[])
    add("--data", type=_callable)
    add("--name", required=True)
    add("--reason", default="")
    add("-o", dest="output_file", type=Path, required=True)
    parser.set_defaults(usage=parser.error)
    return parser


def _listed(value_of: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    return lambda text: [value_of(word) for word in text.split(",")]


def _one_of(*known: str) -> Callable[[str], str]:
    def checked(word: str) -> str:
        if word not in known:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(known)}")
        return word

    return checked


def _server() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="A worker (docs/protocol.md).", allow_abbrev=False)
    bound = getattr(os, "sched_getaffinity", None)  # this process to some of the cores
    cores = len(bound(0)) if bound else os.cpu_count() or 1
    powers = [1 << i for i in range(cores.bit_length()) if 1 << i < cores]
    add = parser.add_argument
    add("--network", type=_listed(Path), action="extend", required=True)
    add("--batch", type=_listed(int), default=[])
    add("--rows", type=int, default=0)
    add("--scale", type=_listed(float), default=[1.0])
    add("--threads", type=_listed(int), default=[*powers, cores])
    add("--precision", type=_listed(_one_of("f32", "bf16")), default=["f32"])
    add("--family", type=_listed(_one_of(*TRAINING)))
    add("--mode", type=_listed(_one_of(*MODES)), default=list(MODES))
    add("--devices", type=_listed(_one_of(*DEVICES)), default=list(DEVICES))
    add("--torch-device", type=_one_of(*devices.kinds()))
    add("--optimizer", type=_one_of(*_RATES), default="sgd")
    add("--lr", type=float)
    add("--weight-decay", type=float)
    return parser


def _asked(arguments: Sequence[str]) -> argparse.Namespace:
    options = _server().parse_args(arguments)
    if not options.family:
        options.family = ["Minibatch"]
        if options.rows or any(Module.read(path).data for path in options.network):
            options.family.append("Epoch")
    kind = options.optimizer
    rate = _RATES[kind] if options.lr is None else options.lr
    decay = _DECAY if options.weight_decay is None else options.weight_decay
    options.optimizer = f"{kind} lr={rate:g}"
    if kind == "adamw":
        options.optimizer += f" weight_decay={decay:g}"
    return options


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["make"]:
        return _make(arguments[1:])
    serve(OwnRows(_asked(arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
