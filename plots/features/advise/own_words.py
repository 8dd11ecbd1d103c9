# SPDX-License-Identifier: Apache-2.0
"""What is known of a network of one's own in plain sentences, for the terminal and the page."""

from collections.abc import Sequence
from math import inf

from plots import units
from plots.core.cost import Cost, memory_of
from plots.core.machines import short_gpu
from plots.features.advise.advice import CPU, GPU, Advice, Adviser, Network
from plots.features.advise.analysis import Prediction
from plots.features.advise.own import Limit, Own, Size, first_win, name_of
from plots.features.advise.words import sentence as answer
from plots.file.rows import MOST_DISTURBED
from plots.text import listed, sentence

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


def own_lead(own: Own) -> str:
    """How long an epoch takes here and on the first GPU, and which is faster, a sentence."""
    found = (*([own.cpu] if own.cpu else []), *own.gpus)
    return answer(Advice(Network(own.cost), found, {}), 1)


def own_sentences(own: Own, adviser: Adviser) -> list[str]:
    """Where a GPU wins, what limits each side, what memory it takes, and what the times are worth;
    a sentence or two each."""
    said = [
        *where_it_wins(own),
        _cpu_limit(own),
        _gpu_limit(own),
        *_memory(own.cost, adviser),
        *own.reasons,
        *_worth(own, adviser),
    ]
    return [one for one in said if one]


def where_it_wins(own: Own) -> list[str]:
    """Whether the file can tell, and from which batch and size on a GPU wins."""
    return [one for one in (_doubt(own), *_wins(own)) if one]


def _doubt(own: Own) -> str:
    if own.disturbed <= MOST_DISTURBED * own.rows:
        return ""
    return (
        f"Other programs used the processors during {own.disturbed} of its {own.rows} rows, so "
        "times here are too long: measure again on an idle machine."
    )


def _wins(own: Own) -> list[str]:
    if not own.gpus:
        return []
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
    return [one for one in said if one] or [_MEASURE_MORE]


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
    return sentence(f"{'; '.join(parts)} (measured: {what} {known})")


def _the(gpu: Prediction) -> str:
    return "this GPU" if gpu.device == GPU else f"the {gpu.name}"


def _cpu_limit(own: Own) -> str:
    limit = own.cpu_limit
    if limit is None or own.cpu is None:
        return ""
    bound, said = limit.bound, []
    if bound is not None and bound.name and bound.percent is not None:
        step = bound.percent / 100 * own.cpu.middle / float(own.cost.fields["steps"])
        said.append(
            f"The CPU is bound by {_BOUNDS.get(bound.name, bound.name)}: by the ceilings measured "
            f"here a step takes {units.seconds(step, 2)} at least, {bound.percent:.0f} % of its "
            "time."
        )
    said.append(_shares(limit, "the CPU's time"))
    return " ".join(filter(None, said))


def _gpu_limit(own: Own) -> str:
    if own.gpu_limit is None:
        return ""
    gpu = own.gpus[0]
    return _shares(
        own.gpu_limit, "a step on this GPU" if gpu.device == GPU else f"a step on {_the(gpu)}"
    )


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
