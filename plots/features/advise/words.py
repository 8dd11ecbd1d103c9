# SPDX-License-Identifier: Apache-2.0
"""The advice on a network in words, for the terminal and the page; ask.js says the same in a
browser. Of a network of one's own they say all that is known."""

from collections.abc import Iterator, Sequence
from math import inf

from plots import units
from plots.core.cost import Cost, memory_of
from plots.core.machines import short_gpu
from plots.features.advise.advice import CPU, GPU, Advice, Adviser, Network, winner
from plots.features.advise.analysis import Prediction
from plots.features.advise.own import Limit, Own, Size, first_win, name_of
from plots.file.quantities import TIME
from plots.file.rows import MOST_DISTURBED
from plots.text import counted, listed
from plots.text import sentence as as_sentence

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


def sentence(advice: Advice, epochs: int) -> str:
    """How long so many epochs take here and on a GPU, or what they cost, and which is better."""
    rows = advice.network.cost.fields["rows"]
    what = f"{counted(epochs, 'epoch')} of {counted_rows(rows)}"
    return _answer(what, advice.cpu, advice.gpus, epochs)


def own_lead(own: Own, what: str = "") -> str:
    """The same of an epoch of a network of one's own, or of `what` it is."""
    what = what or f"1 epoch of {counted_rows(own.cost.fields['rows'])}"
    return _answer(what, own.cpu, own.gpus)


def _answer(what: str, cpu: Prediction | None, gpus: Sequence[Prediction], epochs: int = 1) -> str:
    gpu = gpus[0] if gpus else None
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
