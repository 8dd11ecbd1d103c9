# SPDX-License-Identifier: Apache-2.0
"""The command line of `crossover networks`: networks of others as bench's JSON, and their layers.

Exit codes: 0 all well, 1 refused with a sentence on standard error, 2 wrong usage, 130 stopped by
Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

from crossover_bench.networks.values import Refused
from crossover_bench.place import RUN

PROGRAM = "crossover networks"
INSTALL = f"{RUN} --setup-only --with-peers installs it into .venv-peers"
REFUSED, STOPPED = 1, 130
LONGEST_NAME = 100  # that bench reads
ACTS_OTHERWISE = ("batch_norm", "dropout")  # in training than afterwards


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a question mark for a letter that it lacks
            stream.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except Refused as refused:
        say(refused)
        return REFUSED
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "onnx"):
            raise
        say(f"this Python ({sys.executable}) has no {error.name}: {INSTALL}")
        return REFUSED
    except BrokenPipeError:  # who reads it has enough; Python's end has nothing left to complain of
        sys.stdout = None
        return 0
    except OSError as error:
        say(f"{error.filename or 'standard output'}: {error.strerror or error}")
        return REFUSED
    except KeyboardInterrupt:
        say("stopped by Ctrl-C")
        return STOPPED
    return 0


def say(what: object) -> None:
    print(f"{PROGRAM}: {what}", file=sys.stderr, flush=True)


def _import(options: argparse.Namespace) -> None:
    with redirect_stdout(sys.stderr):  # whatever the user's module prints
        if options.source.lower().endswith(".onnx"):
            described, proof = _of_onnx(options)
        else:
            described, proof = _of_torch(options)
    if options.output:
        options.output.write_text(_text(described), encoding="utf-8")
    else:  # whatever letters standard output has
        sys.stdout.write(_text(described, ensure_ascii=True))
    counts = Counter(layer["type"] for layer in described["layers"])
    trained = [f"{counts[kind]} {kind}" for kind in ACTS_OTHERWISE if counts[kind]]
    say(f"{described['name']}: {len(described['layers'])} layers; {proof}")
    if trained:
        say(f"{' and '.join(trained)} act as in training, which is what bench measures")


def _of_torch(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    # torch takes seconds, or is missing; ours is imported before the user's files are
    from crossover_bench.networks.importing import imported  # noqa: PLC0415
    from crossover_bench.networks.user_module import Input, made  # noqa: PLC0415
    from crossover_bench.peers.pytorch.user_file import left_as_found  # noqa: PLC0415

    shapes, types = options.input, options.input_type
    if not shapes:
        options.usage("--input is missing, the shape of one sample, such as --input=3x32x32")
    if types and len(types) != len(shapes):
        options.usage(
            f"--input is given {len(shapes)} times and --input-type {len(types)} times; say it "
            "for each input, or not at all where all are numbers"
        )
    if options.output_number == "all" and options.loss_function not in ("mse", "bce"):
        options.usage("--output=all makes a row of numbers; --loss-function=mse or bce trains it")
    types = types or [0] * len(shapes)
    wanted = [Input(*read, options.batch_axis) for read in zip(shapes, types, strict=True)]
    file, _, name = options.source.rpartition(":")
    with left_as_found():
        known = imported(
            lambda: made(options.source, *wanted),
            wanted,
            source=options.source,
            name=options.name or _name(Path(file).stem, name),
            loss_function=options.loss_function,
            output=options.output_number,
        )
    proof = (
        f"built again from it, outputs and gradients ({known.tensors} tensors) are the original's "
        f"on two random batches, {_nearly(known.difference)} (float64, in training, nothing "
        "dropped)"
    )
    for shape, count in Counter(draws.shape for draws in known.draws).items():
        times = f", {count} times" if count > 1 else ""
        say(
            f"the random numbers that it draws itself ({'x'.join(map(str, shape))} a sample"
            f"{times}) are a further input: bench has them in its data, and draws none in a step"
        )
    for parameter in known.unused:
        say(f"{parameter} is left out: the output does not depend on it")
    for note in known.notes:
        say(note)
    return known.described, proof


def _of_onnx(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    from crossover_bench.networks import ending  # noqa: PLC0415
    from crossover_bench.networks.from_onnx import Graph, loaded  # noqa: PLC0415
    from crossover_bench.networks.onnx_proof import prove  # noqa: PLC0415

    if options.output_number == "all":
        options.usage("--output=all is of a module; of a .onnx one output is trained")
    path = Path(options.source)
    graph = Graph(
        loaded(path, options.as_is), options.input_type, options.output_number, options.input
    )
    described = ending.described(graph, options.name or _name(path.stem), options.loss_function)
    for note in graph.notes:
        say(note)
    difference = prove(graph, described)
    proof = (
        "built again from it, outputs are those of onnx's reference on two random batches, "
        f"{_nearly(difference)} (float32, not in training)"
    )
    return described, proof


def _name(*parts: str) -> str:
    """A name as bench has it, of letters, digits, '.', '_' and '-': größe is grosse, слой ____."""
    known = unicodedata.normalize("NFKD", "-".join(parts)).replace("ß", "ss")
    plain = "".join(letter for letter in known if not unicodedata.combining(letter))
    return re.sub(r"[^A-Za-z0-9._-]", "_", plain)[:LONGEST_NAME]


def _text(described: dict[str, Any], ensure_ascii: bool = False) -> str:
    """The network as JSON, with a line for each layer."""
    *head, (last, layers) = ((json.dumps(key), value) for key, value in described.items())
    lines = [f" {key}: {json.dumps(value, ensure_ascii=ensure_ascii)}," for key, value in head]
    rows = ",\n".join(f"  {json.dumps(layer, ensure_ascii=ensure_ascii)}" for layer in layers)
    return "\n".join(["{", *lines, f" {last}: [", rows, " ]", "}", ""])


def _nearly(difference: float) -> str:
    return f"to {difference:.0e}" if difference else "exactly"


def _show(options: argparse.Namespace) -> None:
    from crossover_bench.networks.show import table  # noqa: PLC0415

    path: Path = options.file
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Refused(f"{path} is no JSON: {error}") from error
    if not isinstance(described, dict):
        raise Refused(f"{path} is no network (docs/networks.md)")
    sys.stdout.write(table(described))


def _shape(text: str) -> tuple[int, ...]:
    if text == "scalar":
        return ()
    sizes = text.split("x")
    if not all(size.isascii() and size.isdigit() and int(size) > 0 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text!r} is no shape such as 784 or 3x32x32, nor scalar")
    return tuple(map(int, sizes))


def _input_type(text: str) -> int:
    """The number of tokens; 0 of numbers."""
    kind, _, count = text.partition(":")
    if text == "numbers":
        return 0
    if kind == "tokens" and count.isascii() and count.isdigit() and int(count) > 1:
        return int(count)
    raise argparse.ArgumentTypeError(f"{text!r} is neither numbers nor tokens:N, such as tokens:65")


def _number(text: str) -> int | str:
    if text == "all":
        return text
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} counts no output from 0; a file is -o FILE")
    return int(text)


def _given_name(text: str) -> str:
    if not text or text != _name(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name of letters, digits, '.', '_' and '-', at most {LONGEST_NAME}"
        )
    return text


def _source(text: str) -> str:
    file, colon, name = text.rpartition(":")
    if not text.lower().endswith(".onnx") and not (
        colon and file.endswith(".py") and name.isidentifier()
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is neither FILE.py:CALLABLE nor a file .onnx")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description="Networks of others as bench's JSON.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "import",
        help="a network of PyTorch's or of a file .onnx as JSON",
        description="Writes a network as bench's JSON (docs/networks.md), proved to be the same.",
        epilog=f"example: {PROGRAM} import net.py:make --input=3x32x32 -o net.json",
        allow_abbrev=False,
    )
    add = command.add_argument
    add("source", type=_source, help="FILE.py:CALLABLE, which gives a torch.nn.Module, or a .onnx")
    add(
        "--input",
        type=_shape,
        action="append",
        default=[],
        metavar="SHAPE",
        help="of one sample: 784, 3x32x32; of tokens: 64; of a single one: scalar; of a network "
        "with several inputs once for each",
    )
    add(
        "--input-type",
        type=_input_type,
        action="append",
        default=[],
        metavar="TYPE",
        help="numbers (default), or tokens:N, which are below N; as often as --input",
    )
    add(
        "--batch-axis",
        type=int,
        choices=(0, 1),
        default=0,
        help="where the batch is in tokens or a sequence of numbers: [batch, time] (0, default) or "
        "[time, batch] (1)",
    )
    add(
        "--loss-function",
        choices=("cross-entropy", "nll", "mse", "bce"),
        default="cross-entropy",
        help="cross-entropy and bce are of logits; nll is cross-entropy of what ends with "
        "log_softmax",
    )
    add(
        "--output",
        type=_number,
        dest="output_number",
        metavar="N",
        help="which of a module's outputs is trained, counted from 0; all: as one row, by mse or "
        "bce",
    )
    add("--as-is", action="store_true", help="take a .onnx without batch normalization as it is")
    add("--name", type=_given_name, help="of the network; default: the file's and the callable's")
    add("-o", dest="output", type=Path, metavar="FILE", help="default: standard output")
    command.set_defaults(run=_import, usage=command.error)
    command = commands.add_parser(
        "show",
        help="a network's layers, shapes, parameters and operations",
        description="Shows the layers of a network in JSON: shapes, parameters, operations.",
        epilog=f"example: {PROGRAM} show net.json",
        allow_abbrev=False,
    )
    command.add_argument("file", type=Path)
    command.set_defaults(run=_show)
    return parser


if __name__ == "__main__":
    sys.exit(main())
