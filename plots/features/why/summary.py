# SPDX-License-Identifier: Apache-2.0
"""What `why` prints for people: a block for each question, of each network in one batch size."""

from collections.abc import Sequence

from plots import units
from plots.core.bounds import bounds
from plots.core.crossover import Comparison
from plots.core.headline import own_batch
from plots.core.network import best, network_label, networks, on_device, training_rows
from plots.core.series import device_name
from plots.core.tables.cells import count_cell, seconds_cell, text_cell
from plots.core.tables.plain import as_text, wrapped
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.why.analysis import (
    PARTS,
    UNATTRIBUTED,
    Repayment,
    Split,
    Threads,
    missing_gpu,
    repayments,
    splits,
    threads,
)
from plots.features.why.counterfactuals import Counterfactual, counterfactuals
from plots.features.why.table import engine_table
from plots.file.axes import BUILT_IN
from plots.file.families import FAMILIES, MINIBATCH, TRAINING
from plots.file.rows import Bound, File, Row
from plots.text import printable, sentence

_MOST_PARTS = 2
_MOST_CHANGES = 3
_PLAIN = BUILT_IN["precision"].plainest
_NETWORK = (Column("model", "network"), Column("batch", "batch", numeric=True))


def why_text(file: File, compared: Sequence[Comparison]) -> str:
    """Where the time of an epoch and of a training step goes on the fastest way of each device,
    what more threads bring, what would change the crossover, when a start-up is repaid. Empty
    without a row that trains."""
    shown = {family: _own_rows(file, compared, family) for family in TRAINING}
    shown = {family: rows for family, rows in shown.items() if rows}
    if not shown:
        return ""
    blocks = []
    left = 0
    for family, rows in shown.items():
        blocks += _family(file, compared, rows)
        left += len(training_rows(file, family)) - len(_fastest(rows))
    if missing := missing_gpu(file):
        blocks.append(wrapped(printable(missing, 400)))
    if left:
        blocks.append(
            wrapped(
                f"Shown is the fastest way of each device; --all shows {left} more rows, each part "
                "of their time, and every change of the crossover."
            )
        )
    timed = " and ".join(f"the {FAMILIES[family].one}s" for family in shown)
    head = f"{printable(file.machine.id)}: why {timed} take the time they take"
    return "\n\n".join([wrapped(head), *filter(None, blocks)]) + "\n"


def _family(file: File, compared: Sequence[Comparison], rows: Sequence[Row]) -> list[str]:
    """The blocks on `rows`, which are of one family."""
    family = rows[0].family
    repaid = {item.gpu.index: item for item in repayments(rows)}
    own = [repaid[row.index] for row in _fastest(rows) if row.index in repaid]
    return [
        _block(_split_table(file, rows)),
        _changes(counterfactuals(file, compared, family), FAMILIES[family].over),
        _block(_thread_table(threads(rows), family)),
        _block(_repayment_table(own, FAMILIES[family].one)),
        _block(engine_table(file, _fastest(rows))),
    ]


def _block(table: Table) -> str:
    return as_text(table).rstrip() if table.lines else ""


def _own_rows(file: File, compared: Sequence[Comparison], family: str) -> list[Row]:
    """The rows of `family` in f32: of epochs on a ladder those at the headline's batch, of each
    network's training steps those in its largest batch."""
    rows = training_rows(file, family)
    rows = [row for row in rows if row.precision == _PLAIN] or rows
    if family == MINIBATCH:
        largest: dict[str, float] = {}
        for row in rows:
            model, batch = row.model, row.counters["batch"]
            largest[model] = max(batch, largest.get(model, batch))
        return [row for row in rows if row.counters["batch"] == largest[row.model]]
    of_all = own_batch(compared)
    own = [row for row in rows if not row.ladder or row.batch == (of_all or row.ladder.batch)]
    return own if any(row.ladder for row in own) else rows


def _fastest(rows: Sequence[Row]) -> list[Row]:
    """Of each network the fastest row of each device, the CPU's first."""
    found = []
    for members in networks(rows).values():
        devices = dict.fromkeys(row.device for row in members)
        found += [best(on_device(members, device)) for device in sorted(devices)]
    return found


def _split_table(file: File, rows: Sequence[Row]) -> Table:
    found = {split.row.index: split for split in splits(rows)}
    bound = bounds(file)
    keys = list(networks(rows))
    labels = {
        row.index: network_label(key, keys, row.axes)
        for key, members in networks(rows).items()
        for row in members
    }
    lines = tuple(
        (
            text_cell(labels[row.index]),
            count_cell(row.counters["batch"]),
            text_cell(device_name(row)),
            seconds_cell(row.median),
            _bound(bound.get(row.index)),
            text_cell(_shares(found[row.index])) if row.index in found else NOTHING,
        )
        for row in _fastest(rows)
    )
    words = FAMILIES[rows[0].family]
    return Table(
        f"Where the time of {words.a} goes",
        (
            *_NETWORK,
            Column("on", "on"),
            Column(f"{words.short}_seconds", words.short, numeric=True),
            Column("bound", "of its bound", numeric=True),
            Column("parts", "largest parts"),
        ),
        lines,
    )


def _shares(split: Split) -> str:
    """The largest parts in percent of the whole: "products 62 %, launch 30 %"."""
    seconds = {**split.parts, UNATTRIBUTED: split.unattributed}
    largest = sorted(seconds, key=lambda part: -abs(seconds[part]))[:_MOST_PARTS]
    shares = ((PARTS.get(part, part), 100 * seconds[part] / split.total) for part in largest)
    return ", ".join(f"{name} {share:.0f} %" for name, share in shares if abs(share) >= 0.5)


def _bound(bound: Bound | None) -> Cell:
    if bound is None or bound.name is None or bound.percent is None:
        return NOTHING
    text = f"{bound.name} {units.significant(bound.percent, 2)} %"
    return Cell(text, bound.percent)


def _thread_table(found: Sequence[Threads], family: str) -> Table:
    """For each network the fewest threads and the fastest number of them."""
    one, lines = FAMILIES[family].short, []
    for item in found:
        fewest = next(iter(item.rows))
        fastest = max(item.speed_ups, key=lambda count: item.speed_ups[count])
        row = item.rows[fewest]
        lines.append(
            (
                text_cell(row.model),
                count_cell(row.counters["batch"]),
                count_cell(fewest),
                seconds_cell(row.median),
                count_cell(fastest),
                seconds_cell(item.rows[fastest].median),
                Cell(
                    f"{item.speed_ups[fastest]:.2f}",
                    item.speed_ups[fastest],
                    marks=(1,) if fastest in item.unsure else (),
                ),
            )
        )
    unsure = any(line[-1].marks for line in lines)
    note = "The repetitions of both thread counts overlap: the difference may be chance."
    return Table(
        f"What more CPU threads bring{FAMILIES[family].beside('to')}",
        (
            *_NETWORK,
            Column("fewest", "threads", numeric=True, group="fewest"),
            Column("fewest_seconds", one, numeric=True, group="fewest"),
            Column("fastest", "threads", numeric=True, group="fastest"),
            Column("fastest_seconds", one, numeric=True, group="fastest"),
            Column("speed_up", "speedup", numeric=True),
        ),
        tuple(lines),
        (note,) if unsure else (),
    )


def _changes(found: Sequence[Counterfactual], over: str) -> str:
    """The changes that matter most, a sentence each."""
    sentences = [item.sentence for item in found[:_MOST_CHANGES]]
    if not sentences:
        return ""
    left = len(found) - len(sentences)
    lines = [f"What would change the crossover{over}", ""]
    for text in sentences:
        lines.append(wrapped(printable(sentence(text), 400), "  ", "- "))
    if left:
        lines.append(f"- {left} more with --all")
    return "\n".join(lines)


def _repayment_table(found: Sequence[Repayment], one: str) -> Table:
    lines = tuple(
        (
            text_cell(item.gpu.model),
            count_cell(item.gpu.counters["batch"]),
            text_cell(", ".join(_way(item.gpu))),
            seconds_cell(item.gpu.counters["first_call_seconds"]),
            seconds_cell(item.cpu.counters["first_call_seconds"]),
            Cell("never") if item.iterations is None else count_cell(item.iterations),
        )
        for item in found
    )
    return Table(
        f"After how many {one}s the GPU's start-up is repaid, against the fastest CPU row",
        (
            *_NETWORK,
            Column("gpu", "GPU"),
            Column("gpu_first_seconds", "GPU", numeric=True, group="first call"),
            Column("cpu_first_seconds", "CPU", numeric=True, group="first call"),
            Column("iterations", f"{one}s", numeric=True),
        ),
        lines,
    )


def _way(row: Row) -> list[str]:
    return row.axes.words(row.configuration, roles=["how"], without=["device"])
