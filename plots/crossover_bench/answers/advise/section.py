# SPDX-License-Identifier: Apache-2.0
"""Ask the page: a form that answers for any fully connected network, from data in the page."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from crossover_bench.answers.advise.advice import GPU, UNLIKE, Adviser, seen
from crossover_bench.answers.advise.analysis import FARTHEST, Series
from crossover_bench.answers.advise.pytorch import PRECISIONS as PYTORCHS
from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.analysis import DEFAULT_CARDS, NOT_MEASURED, PASSES, Wanted
from crossover_bench.answers.predict.answer import Predictions
from crossover_bench.answers.predict.data import card_of
from crossover_bench.answers.predict.fit import Fit, band_notes
from crossover_bench.answers.predict.model import LAUNCH_SPREAD, ceiling, our_launches, power_of
from crossover_bench.answers.predict.pytorch import call_of
from crossover_bench.answers.predict.simulate import DIMENSIONS, DRAWS, GENERATOR
from crossover_bench.answers.predict.ways import (
    PERSISTENT,
    WAYS,
    Band,
    Estimate,
    Way,
    clock,
    floor,
    launch,
    persistent_band,
    published,
)
from crossover_bench.counts.cards import Card, load_cards
from crossover_bench.counts.mlp import ACTIVATIONS, LOSSES, OPTIMIZERS, PRECISIONS, TIMED
from crossover_bench.files.rows import File
from crossover_bench.place import CROSSOVER
from crossover_bench.show.page.page import environment
from crossover_bench.show.page.section import Block, Context, Section, Widget
from crossover_bench.study.machines import short_gpu
from crossover_bench.study.programs import NAMES
from crossover_bench.study.study import OURS, PYTORCH
from crossover_bench.words.text import printable

_FOLDER = Path(__file__).parent
_COMMAND = f"{CROSSOVER} advise"
_OVERHEADS = ("wait", "graph_launch", "small_copy")


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where nothing can be predicted of any."""
    predicted = context.predictions
    if not isinstance(predicted, Predictions):
        return None
    detailed = files[: context.detailed]
    shown = [
        (file, machine)
        for file, machine in zip(detailed, context.map(_machine, detailed), strict=True)
        if any(machine["series"].values())
    ]
    if not shown:
        return None
    machines = [machine for _, machine in shown]
    card = "" if _has_gpu(machines[0]) else DEFAULT_CARDS[0]
    gpu = f" --gpu {card}" if card else ""
    return Section(
        title="Ask for your own network",
        anchor="ask",
        lead=(
            "How long a fully connected network would train here and on a graphics card: "
            f"{NOT_MEASURED}."
        ),
        widget=_widget(machines, predicted.fit, card),
        blocks=(
            Block(
                lead="The same on the command line, where --network and --model ask for others:",
                commands=(f"{_COMMAND} --mlp 784,512,10{gpu} {machines[0]['path']}",),
            ),
        ),
        notes=band_notes(predicted.fit)[:1],
    )


def _widget(machines: Sequence[dict[str, Any]], fit: Fit, chosen: str) -> Widget:
    cards = [card for card in load_cards().values() if ceiling(card, "f32")]
    known = {"machines": machines, "cards": [_card(card) for card in cards], **_model(fit)}
    # Nothing in a machine's name may end the element.
    data = json.dumps(known, separators=(",", ":")).replace("<", "\\u003c")
    template = environment().from_string((_FOLDER / "ask.html.j2").read_text(encoding="utf-8"))
    html = template.render(
        machines=[machine["name"] for machine in machines],
        precisions=PRECISIONS,
        activations=ACTIVATIONS,
        optimizers=OPTIMIZERS,
        losses=("cross_entropy", *LOSSES),
        cards=known["cards"],
        chosen=chosen,
        own=any(_has_gpu(machine) for machine in machines),
        data=Markup(data),
    )
    return Widget(
        html=Markup(html),
        script=(_FOLDER / "ask.js").read_text(encoding="utf-8").strip(),
        style=(_FOLDER / "ask.css").read_text(encoding="utf-8").strip(),
    )


def _machine(file: File) -> dict[str, Any]:
    """Every series of `file`, in each precision that a reader may ask for."""
    by_precision = {}
    for precision in PRECISIONS:
        adviser = Adviser(file, precision)
        if adviser.series:
            fitted = [_fitted(series) for series in adviser.series]
            by_precision[precision] = {"cpu": adviser.cpu_precision, "series": fitted}
    path = shlex.quote(printable(str(file.path), 400))
    here = card_of(file, load_cards())
    pytorch = {"call": _estimate(call_of(file, Wanted(()))), "card": here.id if here else ""}
    known = {"series": by_precision, "seen": seen(file), "pytorch": pytorch}
    return {"name": file.machine.id, "path": path, **known}


def _has_gpu(machine: dict[str, Any]) -> bool:
    fitted = machine["series"].values()
    return any(series["device"] == GPU for known in fitted for series in known["series"])


def _fitted(series: Series) -> dict[str, Any]:
    key, ceilings = dict(series.key), series.ceilings
    return {
        "label": series.label,
        "device": series.device,
        "name": series.name,
        "threads": key.get("cpu_threads", ""),
        "execution": key.get("execution", ""),
        "data": key.get("data", "resident"),
        "ceilings": [ceilings.flops, ceilings.memory_bytes, ceilings.bytes_to_device],
        "weights": series.weights.tolist(),
        "leverage": series.leverage.tolist(),
        "band": series.band,
        "ranges": list(series.ranges.values()),
    }


def _card(card: Card) -> dict[str, Any]:
    node, one_kernel = floor(card.compute_capability).node, persistent_band(card)
    clocks = clock(card)
    return {
        "id": card.id,
        "name": short_gpu(card.name),
        "flops": {name: _short(rate) for name in PRECISIONS if (rate := ceiling(card, name))},
        "memory": _short(card.figure("memory_bytes_per_second") or 0.0),
        "link": _short(card.figure("link_bytes_per_second") or 0.0),
        "power": round(power_of(card), 9),
        "multiprocessors": int(card.figure("multiprocessors") or 0),
        "node": [node.low, node.high],
        "persistent": [one_kernel.low, one_kernel.high],
        **({"clock": [clocks.low, clocks.high]} if clocks.low < clocks.high else {}),
    }


def _short(rate: float) -> float:
    """In 10¹² a second, as a page need not carry the digits of a rate that follows from a clock."""
    return round(rate / 1e12, 9)


def _estimate(known: Estimate) -> dict[str, float]:
    return {"middle": known.middle, "spread": known.spread, "count": known.count}


def _host() -> dict[str, Any]:
    """What is known of PyTorch's loop, whatever the machine."""
    known = host.fitted()
    return {
        "precisions": PYTORCHS,
        "calls": host.CALLS,
        "updates": host.UPDATES,
        "passes": PASSES,
        "beside": known.host.beside,
        "adam": known.host.adam,
        "work": known.host.work,
        "error": _estimate(known.error),
        "ratio": [known.ratio.low, known.ratio.high],
    }


def _model(fit: Fit) -> dict[str, Any]:
    """What predictions of cards have in common."""
    inner = floor("").inner
    bands: dict[str, Band] = {name: published(name) for name in _OVERHEADS}
    errors = fit.errors.whole, fit.errors.arithmetic, fit.errors.memory
    bands["launch"] = launch(Way("eager", "resident"))
    return {
        "activations": ACTIVATIONS,
        "optimizers": OPTIMIZERS,
        "losses": LOSSES,
        "timed": TIMED,
        "unlike": UNLIKE,
        "farthest": FARTHEST,
        "ways": [[way.execution, way.data] for way in WAYS],
        "parameters": fit.parameters.tolist(),
        "persistent": PERSISTENT,
        "launches": {"expected": our_launches(fit.parameters), "spread": LAUNCH_SPREAD},
        "errors": [*map(_estimate, errors)],
        "on_units": {name: _estimate(error) for name, error in fit.errors.precision.items()},
        "factor": fit.factor if fit.measured else 0,
        "inner": _estimate(inner),
        "host": _host(),
        "leads": [NAMES[PYTORCH][0], NAMES[OURS][0]],
        "overheads": {name: [band.low, band.high] for name, band in bands.items()},
        "draws": DRAWS,
        "generator": GENERATOR,
        "dimensions": DIMENSIONS,
    }
