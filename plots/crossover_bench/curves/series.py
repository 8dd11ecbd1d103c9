# SPDX-License-Identifier: Apache-2.0
"""Groups of rows that differ in nothing but the network, which are what a line shows; and short
names for rows that are shown together."""

from collections.abc import Collection, Iterable, Sequence

from crossover_bench.files.axes import Label
from crossover_bench.files.rows import Row
from crossover_bench.words.text import printable, whole

SeriesKey = tuple[tuple[str, str], ...]

_LONGEST = 60  # characters of a label


def series_key(row: Row) -> SeriesKey:
    """How and where `row` computes: its configuration without family, model and batch size, which
    the place of a point shows."""
    return tuple(
        sorted(
            (key, value)
            for key, value in row.configuration.items()
            if row.axes[key].in_labels != "elsewhere"
        )
    )


def series_labels(rows: Iterable[Row]) -> dict[SeriesKey, str]:
    """A label for each series among `rows`, CPU first, by thread count: "CPU, 2 threads".

    What all series of a device have in common is left out: the precision, and on the CPU the
    execution.
    """
    axes = {series_key(row): row.axes for row in rows}
    keys = sorted(axes, key=cpu_first)
    others = [dict(key) for key in keys]
    labels = {key: printable(str(axes[key].label(dict(key), others)), _LONGEST) for key in keys}
    # Two keys could look alike once shortened; then all of the configuration is shown.
    texts = list(labels.values())
    return {
        key: text
        if texts.count(text) == 1
        else printable(", ".join(f"{name} {value}" for name, value in key), 400)
        for key, text in labels.items()
    }


def device_label(row: Row) -> Label:
    """Where and how `row` computes, but for its precision: "GPU, graph, pinned"."""
    return _label(row, dict(series_key(row)))


def device_name(row: Row, without: Collection[str] = ()) -> str:
    """The device, and how `row` computes there but for the keys in `without`: "CPU, 2 threads"."""
    how = {axis.key: value for axis, value in row.axes.of(row.configuration, "how")}
    return str(_label(row, how, without))


def chosen_words(row: Row) -> str:
    """What execution auto came to: "auto: fused", "auto: fused, 1 thread used" where the row may
    use more, "auto: graph, autotuned products"; empty for a row of any other."""
    if not row.chosen:
        return ""
    configuration, choice = row.configuration, dict(row.chosen)
    threads = choice.pop("cpu_threads", None)
    words = f"{configuration['execution']}: {', '.join(row.axes.words(choice))}"
    if threads and threads != configuration.get("cpu_threads"):
        words += f", {row.axes['cpu_threads'].word(threads)} used"
    return printable(words, _LONGEST)


def _label(row: Row, configuration: dict[str, str], without: Collection[str] = ()) -> Label:
    chosen = "" if "execution" in without else chosen_words(row)
    unsaid = {*without, "execution"} if chosen else without
    label = row.axes.label(configuration, without=unsaid)
    return Label(printable(label.where, _LONGEST), printable(label.how, _LONGEST), chosen=chosen)


def cpu_first(key: SeriesKey) -> tuple[bool, str, int, SeriesKey]:
    """The order of ways to compute: the CPU first, by its threads."""
    configuration = dict(key)
    device = configuration.get("device", "")
    return device != "cpu", device, whole(configuration.get("cpu_threads", "")) or 0, key


def short_names(rows: Iterable[Row]) -> tuple[dict[str, str], str]:
    """Name → short name of each of `rows`, and what all of them share ("" where nothing).

    A row that has no precision, say, does not keep the others from sharing theirs. Rows whose short
    names would be the same keep their names.
    """
    by_name = {row.name: row for row in rows}
    common = _common(list(by_name.values()))
    names = {
        name: " ".join(
            [
                row.family,
                ", ".join(
                    row.axes[key].word(value)
                    for key, value in row.configuration.items()
                    if key != "family" and key not in common
                ),
            ]
        ).strip()
        for name, row in by_name.items()
    }
    texts = list(names.values())
    unique = {
        name: text if texts.count(text) == 1 and text != name else name
        for name, text in names.items()
    }
    return unique, ", ".join(common.values())


def _common(rows: Sequence[Row]) -> dict[str, str]:
    """Key → value in words of what `rows` may be said to have in common, and do."""
    words: dict[str, set[str]] = {}
    for row in rows:
        # How and where first, then what.
        for axis, value in (
            *row.axes.of(row.configuration, "how", "alike"),
            *row.axes.of(row.configuration, "what"),
        ):
            if axis.is_common:
                words.setdefault(axis.key, set()).add(axis.word(value))
    return {key: next(iter(values)) for key, values in words.items() if len(values) == 1}
