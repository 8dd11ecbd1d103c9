# SPDX-License-Identifier: Apache-2.0
"""The advice on a network in words; ask.js says the same in a browser."""

from plots import units
from plots.features.advise.advice import Advice, Adviser, Network, winner
from plots.features.advise.analysis import Prediction
from plots.text import counted

_AN = "AEFHILMNORSX"  # letters whose names begin with a vowel, as names of cards are spelt out


def sentence(advice: Advice, epochs: int, what: str = "") -> str:
    """How long so many epochs, or `what` they are, take here and on a GPU, or what they cost, and
    which is better."""
    rows = advice.network.cost.fields["rows"]
    quantity = advice.quantity
    what = quantity.of(what or f"{counted(epochs, 'epoch')} of {counted_rows(rows)}")
    cpu, gpu = advice.cpu, advice.rival
    said = [f"{span(cpu, epochs)} here ({cpu.name})"] if cpu else []
    said += [f"{span(gpu, epochs)} on {_the(gpu)}"] if gpu else []
    times = f"{what}: {', '.join(said)}"
    if cpu is None or gpu is None:
        missing = "no GPU to compare with" if cpu else "nothing is known of this CPU"
        return f"{times}; {missing}."
    side = winner(cpu, gpu)
    return f"{times}: {f'the {side.upper()} {quantity.wins}' if side else 'too close to call'}."


def reasons_said(advice: Advice) -> list[str]:
    """Why there are no other predictions, a sentence for each reason."""
    return [
        f"No prediction for {' and '.join(labels) if len(labels) < 3 else ', '.join(labels)}: "
        f"{reason}."
        for reason, labels in advice.reasons.items()
    ]


def span(one: Prediction, epochs: int = 1) -> str:
    """The band of so many epochs: "0.2 to 2.2 s"."""
    low, high = one.quantity.ends(epochs * one.low, epochs * one.high)
    return high if high.startswith(f"{low} ") or low == high else f"{low} to {high}"


def counted_rows(rows: float) -> str:
    """So many rows."""
    return f"{units.count(rows)} row{'' if rows == 1 else 's'}"


def _the(one: Prediction) -> str:
    if one.device == "cuda":
        return "its GPU"
    return f"{'an' if one.name[0] in _AN else 'a'} {one.name}"


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
