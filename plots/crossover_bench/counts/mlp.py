# SPDX-License-Identifier: Apache-2.0
"""What training a fully connected network costs, counted as `bench --cost` counts it, so that no
bench is needed.

tests/test_costs.py holds both equal; answers/advise/ask.js counts the same in a browser.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from crossover_bench.counts.cost import Cost, CostError, Operation, Product
from crossover_bench.words.text import printable, whole

ACTIVATIONS = {  # operations of one, and of its derivative
    "relu": (1, 1),
    "sigmoid": (4, 3),
    "tanh": (4, 3),
    "gelu": (4, 10),
    "gelu_tanh": (9, 16),
    "silu": (5, 9),
    "relu6": (2, 2),
    "hardswish": (5, 5),
    "hardsigmoid": (4, 3),
    "leaky_relu": (2, 2),
}
LOSSES = {"mse": 4, "bce": 14}  # beside cross-entropy: operations on an output
OPTIMIZERS = {  # operations on a parameter, and arrays read and written
    "sgd": (2, 3),
    "momentum": (4, 5),
    "adam": (14, 7),
    "adamw": (14, 7),
}
PRECISIONS = ("f32", "tf32", "bf16", "f16")
PLACEMENTS = ("pageable", "pinned", "pinned-async")
LARGEST = 2**24  # width, rows or batch size: what is larger is a slip
_IN_PLACE = 2**20  # weights from which a GPU's product updates them itself: planned.cpp
_NAME = rf"mlp((?:-\d{{1,8}}){{2,}})(?:-({'|'.join(ACTIVATIONS)}))?(?:-({'|'.join(LOSSES)}))?"
TIMED = ("adam", "adamw")  # which count their steps
_SPANS = 32  # parts of the parameters that one launch of an optimizer takes: operand.h


@dataclass(frozen=True, slots=True)
class Mlp:
    """A fully connected network by its `widths`, from inputs to classes, and how it is trained:
    `batch` rows a step, `rows` an epoch. Raises CostError where there is no such network."""

    widths: tuple[int, ...]
    batch: int = 100
    rows: int = 1000
    precision: str = "f32"
    activation: str = "relu"
    optimizer: str = "sgd"
    loss: str = "cross_entropy"
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        known = (
            ("precision", self.precision, PRECISIONS),
            ("activation", self.activation, ACTIVATIONS),
            ("optimizer", self.optimizer, OPTIMIZERS),
            ("loss-function", self.loss, ("cross_entropy", *LOSSES)),
        )
        for flag, value, values in known:
            if value not in values:
                raise CostError(f"--{flag}={printable(value, 40)}: is none of {', '.join(values)}")
        if len(self.widths) < 2 or self.widths[-1] < (1 if self.loss in LOSSES else 2):
            raise CostError(
                "--mlp needs the widths of all layers, from the inputs to two classes or more: "
                "--mlp=784,512,10"
            )
        sizes = (*self.widths, self.batch, self.rows)
        if not all(1 <= size <= LARGEST for size in sizes):
            raise CostError(f"widths, batch and rows are numbers from 1 to {LARGEST:,}")
        if self.batch > self.rows:
            raise CostError(
                f"--batch={self.batch}: an epoch has {self.rows:,} rows; give a smaller batch or "
                "more rows with --rows=N"
            )

    @property
    def params(self) -> int:
        """Weights and biases."""
        return sum((a + 1) * b for a, b in pairwise(self.widths))

    @property
    def products(self) -> int:
        """Matrix products of a step: forward, and of both gradients but for that of the data."""
        return 3 * (len(self.widths) - 1) - 1

    @property
    def wanted(self) -> int:
        """Numbers of a sample that the loss compares with: its label, or its targets."""
        return self.widths[-1] if self.loss in LOSSES else 1

    @property
    def model(self) -> str:
        """As bench names it."""
        parts = ["mlp", *map(str, self.widths)]
        parts += [self.activation] if self.activation != "relu" else []
        parts += [self.loss] if self.loss in LOSSES else []
        return self.name or "-".join(parts)

    def cost(self) -> Cost:
        """What an epoch costs."""
        full, rest = divmod(self.rows, self.batch)
        runs = [(self.batch, full), *([(rest, 1)] if rest else [])]
        steps = full + bool(rest)
        counted = [(_operations(self, batch), count) for batch, count in runs]

        def total(name: str) -> float:
            alike = ((operation, count) for ops, count in counted for operation in ops)
            return sum(getattr(each, name) * each.count * count for each, count in alike)

        eager = sum(_gpu_launches(self, batch) * count for batch, count in runs)
        epoch = {
            "flops": total("flops"),
            "bytes": total("bytes"),
            "products": self.products * steps,
            "bytes_to_device": 4 * (self.widths[0] + self.wanted) * self.rows,
            "device_launches": {"cuda": _by_way(eager, steps, repeats=full > 1)},
        }
        fields = {
            "model": self.model,
            "params": self.params,
            "batch": self.batch,
            "rows": self.rows,
            "steps": steps,
            "logits": self.rows * self.widths[-1],
            "precision": self.precision,
            "accumulate": 1,
            "epoch": epoch,
        }
        return Cost(
            model=self.model,
            precision=self.precision,
            accumulate=1,
            params=float(self.params),
            batch=float(self.batch),
            fields=fields,
            operations=counted[0][0],
        )


def network_of(model: str) -> Mlp | None:
    """The fully connected network that bench knows by this name, as it trains it; None where it is
    of another kind."""
    if network := _NAMED.get(model):
        return network
    if match := re.fullmatch(r"disc-(\d+)(?:x(\d\.\d{1,4}))?", model):
        layers, factor = int(match[1]), float(match[2] or 1)
        known = 2 <= layers <= 12 and 1 <= factor < 4
        return Mlp(disc_widths(layers, factor), name=model) if known else None
    if match := re.fullmatch(_NAME, model):
        widths = tuple(int(width) for width in match[1].split("-")[1:])
        try:
            activation, loss = match[2] or "relu", match[3] or "cross_entropy"
            return Mlp(widths, activation=activation, loss=loss, name=model)
        except CostError:
            return None
    return None


def widths_in(text: str) -> tuple[int, ...]:
    """The widths of --mlp. Raises CostError where they are none."""
    parts = re.split("[,-]", text)
    widths = tuple(width for part in parts if (width := whole(part.strip())))
    if len(widths) < len(parts):
        raise CostError(
            f"--mlp={printable(text, 60)}: widths are whole numbers with commas between them: "
            "--mlp=784,512,10"
        )
    return widths


def usual_loss(widths: Sequence[int]) -> str:
    """That of a network where none is named: one output is a number, more are classes."""
    return "mse" if widths[-1] == 1 else "cross_entropy"


def disc_widths(layers: int, factor: float = 1.0) -> tuple[int, ...]:
    """Those of disc-L, whose hidden layers double in width, or of disc-LxF: src/models/disc.cpp."""
    return (2, *(math.floor(factor * 2**i + 0.5) for i in range(2, layers + 1)), 2)


def of_size(params: int) -> tuple[int, ...]:
    """The widths of the disc network with about so many parameters: the most layers that have no
    more, with hidden widths times what is missing."""
    ladder = [disc_widths(layers) for layers in range(2, 13)]
    fitting = [widths for widths in ladder if Mlp(widths).params <= params] or ladder[:1]
    layers = len(fitting[-1]) - 1
    factors = [step / 64 for step in range(64, 257)]
    sizes = [disc_widths(layers, factor) for factor in factors]
    return min(sizes, key=lambda widths: abs(Mlp(widths).params - params))


_NAMED = {
    mlp.name: mlp
    for mlp in (
        Mlp((29, 32, 16, 2), 10, 709, "f32", "relu", "adamw", name="heart"),
        Mlp((4, 64, 64, 2), 32, 2048, "f32", "tanh", "adam", name="policy"),
        Mlp((2, *[20] * 8, 1), 2000, 10_000, "f32", "tanh", "adam", "mse", "surrogate"),
        Mlp((4, 32, 16, 4), 10_000, 10_000, "f32", "tanh", "adam", "mse", "matrix-4"),
        Mlp((784, 2048, 4096, 1024, 10), 1024, 4096, "f32", "sigmoid", name="fcn-r"),
        Mlp((26752, 2048, 2048, 2048, 26752), 64, 256, "f32", "sigmoid", name="fcn-s"),
    )
}


def _operations(mlp: Mlp, batch: int) -> tuple[Operation, ...]:
    """Those of a step of `batch` rows; what is alike stands once with its count."""
    half = mlp.precision in ("bf16", "f16")
    small = 2 if half else 4  # bytes of what products read
    last = len(mlp.widths) - 2
    forward, derivative = ACTIVATIONS[mlp.activation]
    operations = []

    def add(kind: str, flops: float, bytes: float, launches: int, *products: Product) -> None:
        operations.append(Operation(kind, float(flops), float(bytes), launches, products))

    if half:
        for layer, (a, b) in enumerate(pairwise(mlp.widths)):
            for size in (a * b, *([b] if layer < last else [])):
                add("elementwise", 0, 6 * size, 1)
        add("elementwise", 0, 6 * batch * mlp.widths[0], 1)
    for layer, (a, b) in enumerate(pairwise(mlp.widths)):
        x, w, y = batch * a, a * b, batch * b
        result = 4 if layer == last else small
        product = 2 * batch * a * b
        add("product", product + y, small * (x + w) + result * (b + y), 1, Product(batch, b, a))
        if layer < last:
            add("elementwise", forward * y, 2 * small * y, 1)
        # The gradient of weights and biases is f32, that of values as they are.
        read = small * (x + w + y) + 4 * (w + b)
        dw = Product(b, a, batch)
        if layer:
            dx = Product(batch, a, b)
            add("product", 2 * product + y, read + small * x, 3, dx, dw)
            add("elementwise", derivative * x, 3 * small * x, 1)
        else:
            add("product", product + y, read, 2, dw)
    logits = batch * mlp.widths[-1]
    of_one = LOSSES.get(mlp.loss)
    flops = of_one * logits if of_one else 5 * logits + 2 * batch
    add("loss", flops, (4 + small) * logits + 4 * mlp.wanted * batch + 4, 2)
    flops, arrays = OPTIMIZERS[mlp.optimizer]
    clock = 8 if mlp.optimizer in TIMED else 0
    params = mlp.params
    add("update", flops * params, 4 * arrays * params + clock, 2 * (last + 1))
    return tuple(replace(alike, count=count) for alike, count in Counter(operations).items())


def _gpu_launches(mlp: Mlp, batch: int) -> int:
    """How many launches the CUDA backend makes of a step, eagerly with the data on the GPU:
    src/cuda/plan/operations, where a library has every form of a product."""
    half = mlp.precision in ("bf16", "f16")
    layers = list(pairwise(mlp.widths))
    relu = mlp.activation == "relu"
    in_place = [
        mlp.optimizer == "sgd" and not half and a * b >= _IN_PLACE for a, b in layers
    ]  # fuse_update
    is_line = [min(batch, a, b) == 1 for a, b in layers]  # whose gradients have no epilogue
    masks = [relu and layer > 0 and not is_line[layer] for layer in range(len(layers))]
    count = len(layers) + (0 if relu else len(layers) - 1) + half
    count += 1 if _loss_in_one_block(batch, mlp.widths[-1], mlp.loss) else 2
    for layer, (_, b) in enumerate(layers):
        if layer:
            count += 1 if masks[layer] else 2
        above = layer + 1 < len(layers) and masks[layer + 1]
        # The layer above sums the gradient of the biases, or an epilogue of the product does.
        is_summed = not in_place[layer] and ((above and not half) or not is_line[layer])
        count += 1 if is_summed else 1 + _column_sums(batch, b)
    return count + _updates(mlp, in_place, half)


def _loss_in_one_block(batch: int, classes: int, loss: str) -> bool:
    """loss.h; loss.cpp: threads of a row, and whether one block takes all."""
    if loss in LOSSES:
        return batch * classes <= 1024
    threads = 1
    if classes > 16:
        wanted = min(classes // 4, 128 * 2048 // batch, 1024)
        threads = 32 if wanted < 128 else 2 ** (wanted.bit_length() - 1)
    return threads <= 32 and batch * threads <= 1024


def _column_sums(rows: int, columns: int) -> int:
    """Tall ones take two launches: step_planner.cpp."""
    parts = min(512 // -(-columns // 32), rows // 256)
    return 2 if rows >= 2048 and parts >= 2 else 1


def _updates(mlp: Mlp, in_place: Sequence[bool], half: bool) -> int:
    """Launches of the optimizer: a pass over spans of parameters that are updated alike."""
    decays = mlp.optimizer == "adamw"
    alike = []
    for layer, done in enumerate(in_place):
        for is_bias in (False, True):
            copied = half and not (is_bias and layer == len(in_place) - 1)
            alike.append(None if done else (decays and is_bias, copied))
    spans = sum(key is not None for key, _ in groupby(alike))
    return (mlp.optimizer in TIMED) + -(-spans // _SPANS)


def _by_way(eager: int, steps: int, repeats: bool) -> dict[str, dict[str, int]]:
    """Launches of an epoch by execution and placement: rows that are not read in place are gathered
    by one launch a step, or copied by two."""
    copied = dict.fromkeys(PLACEMENTS, eager + 2 * steps)
    gathered = {"resident": eager + steps}
    return {
        "eager": {"resident": eager, **copied},
        "graph": {**gathered, **copied},
        "graph-epoch": gathered if repeats else {"resident": eager},
    }
