# SPDX-License-Identifier: Apache-2.0
"""The advice on a network in words, and as a table: a line for each device, or for each way of
each. Of a network of one's own: one for each device, program and card, and one for each size and
batch that was measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf

from plots import units
from plots.core.cost import Cost, memory_of
from plots.core.machines import short_gpu
from plots.core.page.section import Block
from plots.core.tables.cells import (
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
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.advise.advice import (
    CPU,
    GPU,
    Advice,
    Adviser,
    Limit,
    Network,
    Own,
    Size,
    first_win,
    key_of,
    name_of,
    title_of,
    winner,
)
from plots.features.advise.analysis import FARTHEST, Prediction, Series
from plots.features.predict.analysis import NOT_MEASURED
from plots.file.quantities import TIME
from plots.file.rows import MOST_DISTURBED
from plots.text import counted, listed
from plots.text import sentence as as_sentence


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
            number_field(key, title, lambda one: one.series and of(one.series), "", 2)
        )

    an_epoch = field("epoch_", "an epoch", lambda one: one.middle)
    is_measured = (
        Column("measured", "measured"),
        lambda one: Cell("yes", 1) if one.measured else Cell("no", 0),
    )
    fields = (
        text_field("on", "on", lambda one: one.label),
        for_programs(text_field("device", "device", lambda one: one.device)),
        field("", of, lambda one: epochs * one.middle),
        field("low_", "from", lambda one: epochs * one.low),
        field("high_", "to", lambda one: epochs * one.high),
        for_programs(an_epoch) if epochs == 1 else an_epoch,
        field("step_", "a step", lambda one: one.middle / steps),
        _winner_field(advice.cpu, lambda one: one.device == CPU),
        for_programs(is_measured),
        fit("networks", "networks", lambda series: len(series.residuals)),
        fit("typical_error_percent", "typical error", lambda series: 100 * series.typical_error),
    )
    notes = [*_notes(advice), *filter(None, [adviser.unlike(advice.network)]), *adviser.notes]

    def table(shown: Sequence[Prediction]) -> Table:
        sources = {"from its own rows" if one.measured else NOT_MEASURED for one in shown}
        title = (
            f"{quantity.of(cost.model)}, batch {cost.batch:,.0f}, {cost.precision}; "
            f"{' or '.join(sorted(sources))}, on {adviser.machine}"
        )
        return table_of(title, shown, fields, dict.fromkeys(notes))

    return table(advice.predictions).shortened(table(advice.shortened()))


def _winner_field(cpu: Prediction | None, is_here: Callable[[Prediction], bool]) -> Field:
    """How each but what `is_here` compares with `cpu`."""
    return (
        Column("winner", "than the CPU"),
        lambda one: NOTHING if is_here(one) else against(cpu, one),
    )


def against(cpu: Prediction | None, one: Prediction) -> Cell:
    """How `one`, of a GPU or another program, compares with `cpu`."""
    if cpu is None:
        return NOTHING
    side = winner(cpu, one)
    words = {"gpu": one.quantity.better, "cpu": one.quantity.worse, None: "not sure"}
    return Cell(words[side], side, bold=side == "gpu")


def _notes(advice: Advice) -> list[str]:
    """Where the times are from, what their bands are worth, and why there are no others."""
    own: dict[str, list[str]] = {}
    for one in advice.predictions:
        if one.measured:
            own.setdefault(one.measured, []).append(one.label)
    notes = [f"{' and '.join(labels)}: {how}." for how, labels in own.items()]
    fitted = [one for one in advice.predictions if one.series]
    notes += [_method(one.series) for one in fitted[:1] if one.series]
    notes += [
        f"{one.label}: the network is {units.significant(one.beyond, 2)} times beyond the measured "
        f"range, so the band is wider; beyond {FARTHEST:g} times there is no prediction."
        for one in fitted
        if one.beyond > 1.0
    ]
    return notes + advice.reasons_said()


def _method(series: Series) -> str:
    calls = "products" if series.device == CPU else "launches"
    return (
        f"This machine's times follow from {calls}, logits, operations and bytes, weighted as in "
        f"the file's {len(series.residuals)} groups of networks; the band covers "
        f"{100 * series.coverage:.0f} % of networks like these, each left out in turn "
        "(docs/method/advice.md)."
    )


# ---- of a network of one's own


def own_table(own: Own, epochs: int = 1, each: str = "") -> Table:
    """The fastest way of each: of the CPU, of other programs, of GPUs. `each` is what a time is of
    in place of epochs."""
    cost, steps = own.cost, float(own.cost.fields["steps"])
    of = "an epoch" if epochs == 1 else counted(epochs, "epoch")
    fields = (
        text_field("on", "on", name_of),
        seconds_field("step_seconds", "a step", lambda one: one.middle / steps, digits=2),
        seconds_field("seconds", of, lambda one: epochs * one.middle, digits=2),
        text_field("range", "from … to", lambda one: span(one, epochs)),
        _winner_field(own.cpu, lambda one: one is own.cpu),
    )
    rows = f"{cost.fields['rows']:,} rows an epoch"
    title = (
        f"{cost.model}: {cost.params:,.0f} parameters, batch {cost.batch:,.0f}, "
        f"{each or rows}, {cost.precision}"
    )
    table = table_of(title, own.known, fields)
    return table.without("seconds") if each else table


def own_block(own: Own, said: Sequence[str], table: Table, lead: str = "") -> Block:
    """What is `said` of it, `table` of its ways, and its sizes where there are several; first the
    `lead`, or what an epoch takes."""
    return Block(
        lead=lead or sentence(own),
        points=tuple(said),
        tables=(table, *([sizes_table(own).as_folded()] if len(own.sizes) > 1 else [])),
        emphasis=True,
    )


def sizes_table(own: Own) -> Table:
    """A line for each size and batch: a step here, with other programs and on each GPU, where bold
    is faster than here."""
    cards = {key_of(one): title_of(one) for size in own.sizes for one in size.gpus}
    programs = {key_of(one): title_of(one) for size in own.sizes for one in size.peers}
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
    lines = tuple(_size_line(one, list(programs), list(cards)) for one in own.sizes)
    return Table(f"{own.cost.model} in the sizes and batches measured", tuple(columns), lines)


def _size_line(size: Size, programs: Sequence[str], cards: Sequence[str]) -> tuple[Cell, ...]:
    steps = float(size.cost.fields["steps"])
    theirs = {key_of(one): one for one in (*size.peers, *size.gpus)}

    def step(one: Prediction | None, end: str = "middle") -> Cell:
        return seconds_cell(getattr(one, end) / steps if one else None, 2)

    cells = [
        text_cell(size.cost.model),
        count_cell(size.cost.params),
        count_cell(size.cost.batch),
        bytes_cell(memory_of(size.cost, CPU)),
        step(size.cpu),
        *(step(theirs.get(key)) for key in programs),
    ]
    for one in map(theirs.get, cards):
        winner = against(size.cpu, one) if one else NOTHING
        middle = replace(step(one), bold=winner.bold)
        cells += [middle, step(one, "low"), step(one, "high"), replace(winner, bold=False)]
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
_MEASURE_MORE = (
    "From which batch and from which size a GPU wins is told once they were measured: add "
    "--batch=10,100,1000 and --scale=0.25,1,4."
)


def sentence(known: Advice | Size, epochs: int = 1, what: str = "") -> str:
    """How long so many epochs, or `what` they are, take here and on a GPU, or what they cost, and
    which is better."""
    what = what or f"{counted(epochs, 'epoch')} of {counted_rows(known.cost.fields['rows'])}"
    cpu, gpu = known.cpu, next(iter(known.gpus), None)
    quantity = next((one.quantity for one in (cpu, gpu) if one), TIME)
    said = [f"{span(cpu, epochs)} here ({cpu.name})"] if cpu else []
    said += [f"{span(gpu, epochs)} on {_a(gpu)}"] if gpu else []
    times = f"{quantity.of(what)}: {', '.join(said)}"
    if cpu is None or gpu is None:
        missing = "no GPU to compare with" if cpu else "nothing is known of this CPU"
        return f"{times}; {missing}."
    side = winner(cpu, gpu)
    return f"{times}: {f'the {side.upper()} {quantity.wins}' if side else 'too close to call'}."


def span(one: Prediction, epochs: int = 1) -> str:
    """The band of so many epochs: "0.2 to 2.2 s"."""
    low, high = one.quantity.ends(epochs * one.low, epochs * one.high)
    return high if high.startswith(f"{low} ") or low == high else f"{low} to {high}"


def counted_rows(rows: float) -> str:
    """So many rows."""
    return f"{units.count(rows)} row{'' if rows == 1 else 's'}"


def _a(one: Prediction) -> str:
    article = "an" if one.name[0] in _AN else "a"
    return "its GPU" if one.device == GPU else f"{article} {one.name}"


def meeting_words(adviser: Adviser, network: Network) -> str:
    """From what size on the other side would win, a sentence; empty where that is not known."""
    met = adviser.meeting(network)
    if met is None:
        return ""
    side, params, (least, most) = met
    own = network.cost.params
    if params is None:
        return (
            f"With wider or narrower hidden layers the {side.upper()} stays ahead from "
            f"{units.count(least)} to {units.count(most)} parameters, the range of the prediction."
        )
    other = {"gpu": "CPU", "cpu": "GPU"}[side]
    size = f"{units.significant(params, 2)} parameters"
    where = f"from about {size} on" if params > own else f"below about {size}"
    return (
        f"With wider or narrower hidden layers the {other} would {adviser.quantity.win} {where}; "
        f"this network has "
        f"{units.count(own)}."
    )


# ---- of a network of one's own


def own_sentences(own: Own, adviser: Adviser) -> list[str]:
    """Where a GPU wins, what limits each side, what memory it takes, and what the times are worth;
    a sentence or two each."""
    said = [
        *where_it_wins(own),
        *_limits(own),
        *_memory(own.cost, adviser),
        *own.reasons,
        *_worth(own, adviser),
    ]
    return [one for one in said if one]


def where_it_wins(own: Own) -> list[str]:
    """Whether the file can tell, and from which batch and size on a GPU wins."""
    doubt = []
    if own.disturbed > MOST_DISTURBED * own.rows:
        doubt.append(
            f"Other programs used the processors during {own.disturbed} of its {own.rows} rows, so "
            "times here are too long: measure again on an idle machine."
        )
    if not own.gpus:
        return doubt
    batches = [f"batch {size:,.0f}" for size, _ in own.batches]
    sizes = [
        f"scale {one.cost.model.removeprefix(own.cost.model).removeprefix('x') or '1'} "
        f"({size:,.0f} parameters)"
        for size, one in own.widths
    ]
    said = [
        _from([one for _, one in own.batches], batches, "batch", own.gpus),
        _from([one for _, one in own.widths], sizes, "scale", own.gpus),
    ]
    return doubt + ([one for one in said if one] or [_MEASURE_MORE])


def _from(
    line: Sequence[Size], places: Sequence[str], what: str, gpus: Sequence[Prediction]
) -> str:
    """From which of `places` of `line` on each of `gpus` wins; empty where there is one alone."""
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
    known = ", ".join(one.removeprefix(f"{what} ").partition(" (")[0] for one in places)
    return as_sentence(f"{'; '.join(parts)} (measured: {what} {known})")


def _the(gpu: Prediction) -> str:
    return "this GPU" if gpu.device == GPU else f"the {gpu.name}"


def _limits(own: Own) -> Iterator[str]:
    """What limits the CPU, and the first GPU."""
    limit = own.cpu_limit
    if limit and own.cpu:
        bound, said = limit.bound, _shares(limit, "the CPU's time")
        if bound and bound.name and bound.percent is not None:
            step = bound.percent / 100 * own.cpu.middle / float(own.cost.fields["steps"])
            said = (
                f"The CPU is bound by {_BOUNDS.get(bound.name, bound.name)}: by the ceilings "
                f"measured here a step takes {units.seconds(step, 2)} at least, "
                f"{bound.percent:.0f} % of its time. {said}"
            ).rstrip()
        yield said
    if own.gpu_limit:
        yield _shares(own.gpu_limit, f"a step on {_the(own.gpus[0])}")


def _shares(limit: Limit, of: str) -> str:
    """Where it goes: "Of the CPU's time, 89 % is convolution, 9 % normalization."."""
    shown = [(name, share) for name, share in limit.shares if share >= _LEAST_SHARE][:_MOST_PARTS]
    if not shown:
        return ""
    (name, share), *rest = shown
    first = f"{100 * share:.0f} % {'are' if name.endswith('s') else 'is'} {name}"
    return f"Of {of}, {', '.join([first, *(f'{100 * one:.0f} % {other}' for other, one in rest)])}."


def _memory(cost: Cost, adviser: Adviser) -> list[str]:
    cpu, gpu = memory_of(cost, CPU), memory_of(cost, GPU)
    said = [f"{units.binary_bytes(cpu)} here"] if cpu else []
    if gpu:
        workspace = memory_of(cost, GPU, "workspace_bytes") or 0
        scratch = f" with {units.binary_bytes(workspace)} for its libraries" if workspace else ""
        said.append(f"{units.binary_bytes(gpu)} on a GPU{scratch}")
    if not said:
        return []
    small = [
        f"the {short_gpu(card.name)}"
        for card in adviser.cards
        if gpu and gpu > (card.figure("memory_bytes") or inf)
    ]
    found = [
        f"Memory: {', '.join(said)}. Counted are all {cost.fields['rows']:,} rows, parameters, "
        "gradients, activations and scratch space of this program, not what driver and libraries "
        "take for themselves."
    ]
    return found + (
        [f"That is more than {listed(small)} {'has' if len(small) == 1 else 'have'}."]
        if small
        else []
    )


def _worth(own: Own, adviser: Adviser) -> list[str]:
    said = []
    if own.cpu is not None and own.cpu.row is not None:
        batch = own.cpu.row.counters["batch"]
        if batch != own.cost.batch:
            said.append(f"{name_of(own.cpu)}: {own.cpu.measured}.")
    if adviser.cpu_precision != adviser.precision:
        said.append(f"The CPU trains in {adviser.cpu_precision}.")
    if own.cpu is not None and own.cpu.series is not None:
        others = len(own.cpu.series.residuals)
        said.append(
            f"The CPU's time is predicted from {others} other groups of networks in the file "
            "(docs/method/advice.md); ./run --network measures this one."
        )
    if any(one.row is None and one.series is None for one in own.gpus):
        said.append(
            "Predicted times were measured by nobody: 90 % of simulated cards lie in the range "
            "(docs/method/prediction.md). PyTorch takes longer there on small networks."
        )
    return said
