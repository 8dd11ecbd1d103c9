# SPDX-License-Identifier: Apache-2.0
"""The advice on a network in words, and as a table: a line for each device, or for each way of
each. Of a user's own network: a line for each device, program and card, and one for each size and
batch that was measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf

from crossover_bench.answers.advise.advice import (
    CPU,
    GPU,
    Advice,
    Adviser,
    Limit,
    Network,
    OwnNetwork,
    Size,
    first_win,
    key_of,
    name_of,
    title_of,
    winner,
)
from crossover_bench.answers.advise.analysis import FARTHEST, Prediction, Series
from crossover_bench.answers.advise.pytorch import InPyTorch
from crossover_bench.answers.predict.analysis import NOT_MEASURED
from crossover_bench.counts.cost import Cost, memory_of
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import MOST_DISTURBED
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Block
from crossover_bench.show.tables.cells import (
    Field,
    bytes_cell,
    count_cell,
    for_programs,
    number_field,
    seconds_cell,
    seconds_field,
    shown_field,
    table_of,
    text_cell,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table
from crossover_bench.study.machines import short_gpu
from crossover_bench.study.programs import NAMES
from crossover_bench.study.study import OURS, PYTORCH
from crossover_bench.words import units
from crossover_bench.words.text import counted, listed
from crossover_bench.words.text import sentence as as_sentence


def advice_table(advice: Advice, adviser: Adviser, epochs: int = 1) -> Table:
    """What `adviser` said: every way of each device, in short the best one."""
    cost, quantity = advice.cost, adviser.quantity
    unit, steps = quantity.unit, float(cost.fields["steps"])
    of = "epoch" if epochs == 1 else counted(epochs, "epoch")

    def field(key: str, title: str, of: Callable[[Prediction], float]) -> Field:
        return shown_field(f"{key}{unit}", title, of, lambda value: quantity.show(value, 2))

    def fit(key: str, title: str, of: Callable[[Series], float]) -> Field:
        """What the file's networks say of the fit that a prediction is from."""
        return for_programs(
            number_field(key, title, lambda way: way.series and of(way.series), "", 2)
        )

    an_epoch = field("epoch_", "an epoch", lambda way: way.middle)
    is_measured = (
        Column("measured", "measured"),
        lambda way: Cell("yes", 1) if way.measured else Cell("no", 0),
    )
    fields = (
        text_field("on", "on", lambda way: way.label),
        for_programs(text_field("device", "device", lambda way: way.device)),
        field("", of, lambda way: epochs * way.middle),
        field("low_", "from", lambda way: epochs * way.low),
        field("high_", "to", lambda way: epochs * way.high),
        for_programs(an_epoch) if epochs == 1 else an_epoch,
        field("step_", "a step", lambda way: way.middle / steps),
        _winner_field(advice.cpu, lambda way: way.device == CPU),
        for_programs(is_measured),
        fit("networks", "networks", lambda series: len(series.residuals)),
        fit("typical_error_percent", "typical error", lambda series: 100 * series.typical_error),
    )
    notes = [*_notes(advice), *filter(None, [adviser.unlike(advice.network)]), *adviser.notes]

    def table(shown: Sequence[Prediction]) -> Table:
        sources = {"from its own rows" if way.measured else NOT_MEASURED for way in shown}
        title = (
            f"{quantity.of(cost.model)}, batch {cost.batch:,.0f}, {cost.precision}; "
            f"{' or '.join(sorted(sources))}, on {adviser.machine}"
        )
        return table_of(title, shown, fields, dict.fromkeys(notes))

    return table(advice.predictions).shortened(table(advice.shortened()))


def _winner_field(cpu: Prediction | None, is_here: Callable[[Prediction], bool]) -> Field:
    """How each compares with `cpu`, but for those that `is_here` names."""
    return (
        Column("winner", "than the CPU"),
        lambda way: NOTHING if is_here(way) else against(cpu, way),
    )


def against(cpu: Prediction | None, other: Prediction) -> Cell:
    """How `other`, of a GPU or another program, compares with `cpu`."""
    if cpu is None:
        return NOTHING
    side = winner(cpu, other)
    words = {"gpu": other.quantity.better, "cpu": other.quantity.worse, None: "not sure"}
    return Cell(words[side], side, bold=side == "gpu")


def _notes(advice: Advice) -> list[str]:
    """Where the times are from, what their bands are worth, and why there are no others."""
    measured: dict[str, list[str]] = {}
    for way in advice.predictions:
        if way.measured:
            measured.setdefault(way.measured, []).append(way.label)
    notes = [f"{' and '.join(labels)}: {how}." for how, labels in measured.items()]
    fitted = [way for way in advice.predictions if way.series]
    notes += [_method(way.series) for way in fitted[:1] if way.series]
    notes += [
        f"{way.label}: the network is {units.significant(way.beyond, 2)} times beyond the measured "
        f"range, so the band is wider; beyond {FARTHEST:g} times there is no prediction."
        for way in fitted
        if way.beyond > 1.0
    ]
    return notes + advice.reason_sentences()


def _method(series: Series) -> str:
    calls = "products" if series.device == CPU else "launches"
    return (
        f"This machine's times follow from {calls}, logits, operations and bytes, weighted as in "
        f"the file's {len(series.residuals)} groups of networks; the band covers "
        f"{100 * series.coverage:.0f} % of networks like these, each left out in turn "
        "(docs/method/prediction.md)."
    )


# ---- a user's own network


def own_table(network: OwnNetwork, epochs: int = 1, each: str = "") -> Table:
    """The fastest way of each: of the CPU, of other programs, of GPUs. `each` names what a time is
    of in place of epochs."""
    cost, steps = network.cost, float(network.cost.fields["steps"])
    of = "an epoch" if epochs == 1 else counted(epochs, "epoch")
    fields = (
        text_field("on", "on", name_of),
        seconds_field("step_seconds", "a step", lambda way: way.middle / steps, digits=2),
        seconds_field("seconds", of, lambda way: epochs * way.middle, digits=2),
        text_field("range", "from … to", lambda way: span(way, epochs)),
        _winner_field(network.cpu, lambda way: way is network.cpu),
    )
    rows = f"{cost.fields['rows']:,} rows an epoch"
    title = (
        f"{cost.model}: {cost.params:,.0f} parameters, batch {cost.batch:,.0f}, "
        f"{each or rows}, {cost.precision}"
    )
    table = table_of(title, network.known, fields)
    return table.without("seconds") if each else table


def own_block(network: OwnNetwork, points: Sequence[str], table: Table, lead: str = "") -> Block:
    """First the `lead`, or what an epoch takes; the `points`, the `table` of its ways, and its
    sizes where there are several."""
    sizes = [sizes_table(network).as_folded()] if len(network.sizes) > 1 else []
    return Block(
        lead=lead or both(network, network.pytorch),
        points=tuple(points),
        tables=(table, *sizes),
        emphasis=True,
    )


def sizes_table(network: OwnNetwork) -> Table:
    """A line for each size and batch: a step here, with other programs and on each GPU, where bold
    is faster than here."""
    cards = {key_of(gpu): title_of(gpu) for size in network.sizes for gpu in size.gpus}
    programs = {key_of(peer): title_of(peer) for size in network.sizes for peer in size.peers}
    columns = [
        Column("network", "network"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("memory_bytes", "memory", numeric=True),
        Column("cpu_step_seconds", "a step here", numeric=True),
    ]
    columns += [Column(f"{key}_step_seconds", name, numeric=True) for key, name in programs.items()]
    for key, name in cards.items():
        columns += [
            Column(f"{key}_step_seconds", name, numeric=True),
            Column(f"{key}_low_step_seconds", f"{name}, from", numeric=True, for_programs=True),
            Column(f"{key}_high_step_seconds", f"{name}, to", numeric=True, for_programs=True),
            Column(f"{key}_winner", f"{name}, than the CPU", for_programs=True),
        ]
    lines = tuple(_size_line(size, list(programs), list(cards)) for size in network.sizes)
    return Table(f"{network.cost.model} in the sizes and batches measured", tuple(columns), lines)


def _size_line(size: Size, programs: Sequence[str], cards: Sequence[str]) -> tuple[Cell, ...]:
    steps = float(size.cost.fields["steps"])
    theirs = {key_of(way): way for way in (*size.peers, *size.gpus)}

    def step(way: Prediction | None, end: str = "middle") -> Cell:
        return seconds_cell(getattr(way, end) / steps if way else None, 2)

    cells = [
        text_cell(size.cost.model),
        count_cell(size.cost.params),
        count_cell(size.cost.batch),
        bytes_cell(memory_of(size.cost, CPU)),
        step(size.cpu),
        *(step(theirs.get(key)) for key in programs),
    ]
    for gpu in map(theirs.get, cards):
        winner = against(size.cpu, gpu) if gpu else NOTHING
        middle = replace(step(gpu), bold=winner.bold)
        cells += [middle, step(gpu, "low"), step(gpu, "high"), replace(winner, bold=False)]
    return tuple(cells)


# ---- in words; ask.js says the same in a browser


_AN = "AEFHILMNORSX"  # letters whose names begin with a vowel, as names of cards are spelt out
_LEAST_SHARE = 0.01  # of the time, to be worth a word
_MOST_PARTS = 3
_BOUNDS = {
    "compute": "arithmetic",
    "memory": "memory traffic",
    "copy": "copies",
    "launch": "launches",
}
_RESIZED = f"{NAMES[OURS][0]} and wider or narrower hidden layers"
_MEASURE_MORE = (
    "From which batch and from which size a GPU wins is told once they were measured: add "
    "--batch=10,100,1000 and --scale=0.25,1,4."
)


def both(known: Advice | Size, pytorch: InPyTorch | None, epochs: int = 1) -> str:
    """The sentence() of PyTorch's loop where that is known, and that of our programs, with their
    leads."""
    if pytorch is None:
        return sentence(known, epochs, lead=NAMES[OURS][0])
    theirs = sentence(pytorch, epochs, lead=NAMES[PYTORCH][0])
    return f"{theirs} {sentence(known, epochs, lead=NAMES[OURS][0], is_second=True)}"


def sentence(
    known: Advice | Size | InPyTorch,
    epochs: int = 1,
    what: str = "",
    lead: str = "",
    *,
    is_second: bool = False,
) -> str:
    """What so many epochs, or `what` they are, take or cost here and on a GPU, and which is
    better; with the programs that `lead` names. One that `is_second` does not say of what again."""
    what = what or f"{counted(epochs, 'epoch')} of {counted_rows(known.cost.fields['rows'])}"
    cpu, gpu = known.cpu, next(iter(known.gpus), None)
    quantity = next((way.quantity for way in (cpu, gpu) if way), TIME)
    sides = [f"{span(cpu, epochs)} here ({cpu.name})"] if cpu else []
    if gpu:
        article = "an" if gpu.name[0] in _AN else "a"
        place = "its GPU" if gpu.device == GPU else f"{article} {gpu.name}"
        sides.append(f"{span(gpu, epochs)} on {place}")
    subject = quantity.of(what)
    if lead:
        subject = f"{lead}, {subject[:1].lower()}{subject[1:]}"
    times = f"{f'{lead},' if is_second else f'{subject}:'} {', '.join(sides)}"
    if cpu is None or gpu is None:
        missing = "no GPU to compare with" if cpu else "nothing is known of this CPU"
        return f"{times}; {missing}."
    side = known.side if isinstance(known, InPyTorch) else winner(cpu, gpu)
    return f"{times}: {f'the {side.upper()} {quantity.wins}' if side else 'too close to call'}."


def span(way: Prediction, epochs: int = 1) -> str:
    """The band of so many epochs: "0.2 to 2.2 s"."""
    low, high = way.quantity.ends(epochs * way.low, epochs * way.high)
    return high if high.startswith(f"{low} ") or low == high else f"{low} to {high}"


def counted_rows(rows: float) -> str:
    """So many rows."""
    return f"{units.count(rows)} row{'' if rows == 1 else 's'}"


def meeting_words(adviser: Adviser, network: Network) -> str:
    """From what size on the other side would win, a sentence; empty where that is not known."""
    met = adviser.meeting(network)
    if met is None:
        return ""
    side, params, (least, most) = met
    if params is None:
        return (
            f"{_RESIZED}, the {side.upper()} stays ahead from "
            f"{units.count(least)} to {units.count(most)} parameters, the range of the prediction."
        )
    other = {"gpu": "CPU", "cpu": "GPU"}[side]
    size = f"{units.significant(params, 2)} parameters"
    where = f"from about {size} on" if params > network.cost.params else f"below about {size}"
    return (
        f"{_RESIZED}, the {other} would {adviser.quantity.win} {where}; "
        f"this network has {units.count(network.cost.params)}."
    )


# ---- a user's own network


def own_sentences(network: OwnNetwork, adviser: Adviser) -> list[str]:
    """Where a GPU wins, what limits each side, what memory it takes, and what the times are worth;
    a sentence or two each."""
    return [
        *where_it_wins(network),
        *filter(None, _limits(network)),
        *_memory(network.cost, adviser),
        *network.reasons,
        *_worth(network, adviser),
    ]


def where_it_wins(network: OwnNetwork) -> Iterator[str]:
    """Whether the file can tell, and from which batch and size on a GPU wins."""
    if network.disturbed > MOST_DISTURBED * network.rows:
        yield (
            f"Other programs used the processors during {network.disturbed} of its {network.rows} "
            "rows, so times here are too long: measure again on an idle machine."
        )
    if not network.gpus:
        return
    batches = [f"batch {batch:,.0f}" for batch, _ in network.batches]
    name = network.cost.model
    scales = [
        f"scale {size.cost.model.removeprefix(name).removeprefix('x') or '1'} "
        f"({params:,.0f} parameters)"
        for params, size in network.widths
    ]
    lead = f"{NAMES[OURS][0]}, " if network.pytorch else ""
    wins = (
        _from([size for _, size in network.batches], batches, "batch", network.gpus, lead),
        _from([size for _, size in network.widths], scales, "scale", network.gpus, lead),
    )
    yield from filter(None, wins if any(wins) else (_MEASURE_MORE,))


def _from(
    line: Sequence[Size], places: Sequence[str], what: str, gpus: Sequence[Prediction], lead: str
) -> str:
    """From which of `places` of `line` on each of `gpus` wins, with the programs that `lead` names;
    empty where there is only one place."""
    if len(line) < 2:
        return ""
    answers: dict[float, list[str]] = {}
    for gpu in gpus:
        answers.setdefault(first_win(line, gpu.device), []).append(_the(gpu))
    parts = []
    for place, names in sorted(answers.items()):
        every = len(names) == len(gpus) > 1
        who = "each of these GPUs" if every else listed(names)
        wins = "wins" if every or len(names) == 1 else "win"
        if place == inf:
            parts.append(f"{who} {wins} for sure at no {what}")
        else:
            where = f"from {places[int(place)]} on" if place else f"at every {what}"
            parts.append(f"{who} {wins} {where}")
    known = ", ".join(place.removeprefix(f"{what} ").partition(" (")[0] for place in places)
    return as_sentence(f"{lead}{'; '.join(parts)} (measured: {what} {known})")


def _the(gpu: Prediction) -> str:
    return "this GPU" if gpu.device == GPU else f"the {gpu.name}"


def _limits(network: OwnNetwork) -> Iterator[str]:
    """What limits the CPU, and the first GPU."""
    limit = network.cpu_limit
    if limit and network.cpu:
        bound, shares = limit.bound, _shares(limit, "the CPU's time")
        if bound and bound.name and bound.percent is not None:
            step = bound.percent / 100 * network.cpu.middle / float(network.cost.fields["steps"])
            shares = (
                f"The CPU is bound by {_BOUNDS.get(bound.name, bound.name)}: by the ceilings "
                f"measured here a step takes {units.seconds(step, 2)} at least, "
                f"{bound.percent:.0f} % of its time. {shares}"
            ).rstrip()
        yield shares
    if network.gpu_limit:
        yield _shares(network.gpu_limit, f"a step on {_the(network.gpus[0])}")


def _shares(limit: Limit, of: str) -> str:
    """Where it goes: "Of the CPU's time, 89 % is convolution, 9 % normalization."."""
    shown = [(name, share) for name, share in limit.shares if share >= _LEAST_SHARE][:_MOST_PARTS]
    if not shown:
        return ""
    (name, share), *rest = shown
    first = f"{100 * share:.0f} % {'are' if name.endswith('s') else 'is'} {name}"
    others = (f"{100 * share:.0f} % {name}" for name, share in rest)
    return f"Of {of}, {', '.join([first, *others])}."


def _memory(cost: Cost, adviser: Adviser) -> Iterator[str]:
    cpu, gpu = memory_of(cost, CPU), memory_of(cost, GPU)
    places = [f"{units.binary_bytes(cpu)} here"] if cpu else []
    if gpu:
        workspace = memory_of(cost, GPU, "workspace_bytes") or 0
        scratch = f" with {units.binary_bytes(workspace)} for its libraries" if workspace else ""
        places.append(f"{units.binary_bytes(gpu)} on a GPU{scratch}")
    if not places:
        return
    yield (
        f"Memory: {', '.join(places)}: all {cost.fields['rows']:,} rows, parameters, gradients, "
        "activations, scratch space; not the driver's."
    )
    small = [
        f"the {short_gpu(card.name)}"
        for card in adviser.cards
        if gpu and gpu > (card.figure("memory_bytes") or inf)
    ]
    if small:
        yield f"That is more than {listed(small)} {'has' if len(small) == 1 else 'have'}."


def _worth(network: OwnNetwork, adviser: Adviser) -> Iterator[str]:
    cpu = network.cpu
    if cpu and cpu.row and cpu.row.counters["batch"] != network.cost.batch:
        yield f"{name_of(cpu)}: {cpu.measured}."
    if adviser.cpu_precision != adviser.precision:
        yield f"The CPU trains in {adviser.cpu_precision}."
    if cpu and cpu.series:
        yield (
            f"The CPU's time is predicted from {len(cpu.series.residuals)} other groups of "
            f"networks in the file (docs/method/prediction.md); {RUN} --network measures this one."
        )
    if any(gpu.row is None and gpu.series is None for gpu in network.gpus):
        yield ("Predicted ranges hold 90 % of simulated cards (docs/method/prediction.md).")
