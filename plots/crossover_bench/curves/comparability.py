# SPDX-License-Identifier: Apache-2.0
"""What in two files makes a ratio of their times meaningless, and what one should know with it.

Commits are compared to learn what the program does differently, machines to learn what the machine
does: compiler, flags, libraries, clocks and cards may differ then, and are notes. What was trained
and how denormal numbers were treated are part of the question, and must not differ.
"""

from collections.abc import Iterable, Iterator, Mapping

from crossover_bench.files.rows import File
from crossover_bench.words.text import listed

Facts = Mapping[str, object]


def obstacles(first: File, second: File) -> list[str]:
    """Why times of the two files can't be divided, a phrase each; empty where they can be."""
    facts, others = _decisive(first), _decisive(second)
    # A field that is not there says nothing.
    stated = [name for name in facts if not {"", None} & {facts[name], others[name]}]
    known, other_known = ({name: of[name] for name in stated} for of in (facts, others))
    phrases = _differences(known, other_known)
    if first.machine.id == second.machine.id:
        phrases += _differences(first.run.environment, second.run.environment)
    return phrases


def remarks(
    first: File, second: File, names: tuple[str, str] = ("baseline", "other file")
) -> list[str]:
    """All that differs or casts doubt, a phrase each, the obstacles first; `names` are what the
    files are called in them."""
    phrases = obstacles(first, second)
    is_same_machine = first.machine.id == second.machine.id
    if not is_same_machine and (families := _of_other_code(first, second)):
        code = f"the code of {listed(families)}"
        phrases.append(f"machine and {code} both differ, so these ratios are of both")
    decisive = _differences(_decisive(first), _decisive(second))
    phrases += [phrase for phrase in decisive if phrase not in phrases]
    if is_same_machine:
        phrases += _differences(_hardware(first), _hardware(second))
    else:
        phrases += _differences(first.run.environment, second.run.environment)
    phrases += _differences(_build(first), _build(second))
    libraries = first.software.libraries, second.software.libraries
    phrases += _differences(*libraries, "library ", "absent")
    for which, file in zip(names, (first, second), strict=True):
        phrases += (f"the {which} {doubt}" for doubt in _doubts(file))
    return phrases


def is_of_one_code(first: File, second: File, family: str, devices: Iterable[str]) -> bool:
    """Whether rows of `family` on `devices` ran through the same code in both files: at one commit,
    or at two between which its number stayed."""
    if first.software.commit == second.software.commit:
        return True
    numbers = [
        [file.code_versions.get(f"{family}/{device}") for device in devices]
        for file in (first, second)
    ]
    return numbers[0] == numbers[1] and None not in numbers[0]


def _of_other_code(first: File, second: File) -> list[str]:
    """Families of rows that both have, of which this is not known."""
    both = {(row.family, row.device): None for row in first.rows}
    theirs = {(row.family, row.device) for row in second.rows}
    return list(
        dict.fromkeys(
            family
            for family, device in both
            if (family, device) in theirs and not is_of_one_code(first, second, family, [device])
        )
    )


def _doubts(file: File) -> Iterator[str]:
    if file.software.dirty:
        yield "was measured with uncommitted changes"
    if not file.software.commit and not file.functions:  # whose program is its user's
        yield "does not say its commit"
    if not file.complete:
        yield f"is from a run that was {file.ended}: rows are missing"


def _decisive(file: File) -> Facts:
    run = file.run
    return {
        "build type": file.software.build_type,
        "data": run.data,
        "flush_to_zero": run.flush_to_zero,
    }


def _hardware(file: File) -> Facts:
    machine = file.machine
    return {
        "processor": machine.cpu.model,
        "GPU": machine.gpu or "none",
        "kernel": machine.kernel,
        "governor": machine.cpu.governor,
    }


def _build(file: File) -> Facts:
    return {
        "compiler": file.software.compiler,
        "flags": file.software.flags.strip(),
        "sweep": file.run.sweep,
        "repetitions": file.run.repetitions,
        "shortest time of a repetition (s)": file.run.min_time_seconds,
    }


def _differences(
    first: Facts, second: Facts, kind: str = "", absent: str = "not stated"
) -> list[str]:
    """The facts of one `kind` that differ between two files, a phrase each."""

    def shown(value: object) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        return absent if value in (None, "") else str(value)

    names = sorted({*first, *second}) if kind or first.keys() != second.keys() else first
    return [
        f"{kind}{name}: {shown(first.get(name))} and {shown(second.get(name))}"
        for name in names
        if first.get(name) != second.get(name)
    ]
