# SPDX-License-Identifier: Apache-2.0
"""What in two files makes a ratio of their times meaningless, and what one should know with it.

Commits are compared to learn what the program does differently, machines to learn what the machine
does: compiler, flags, libraries, clocks and cards may differ then, and are notes. What was trained
and how denormal numbers were treated are part of the question, and must not differ.
"""

from collections.abc import Iterator

from plots.file.rows import File


def obstacles(first: File, second: File) -> list[str]:
    """Why times of the two files can't be divided, a phrase each; empty where they can be."""
    # A field that is not there says nothing.
    stated = {
        name: values
        for name, values in _decisive(first, second).items()
        if "" not in values and None not in values
    }
    found = _differences(stated)
    if first.machine.id == second.machine.id:
        found += _environment(first, second)
    return found


def remarks(
    first: File, second: File, names: tuple[str, str] = ("baseline", "other file")
) -> list[str]:
    """All that differs or casts doubt, a phrase each, the obstacles first; `names` are what the
    files are called in them."""
    found = obstacles(first, second)
    one_machine = first.machine.id == second.machine.id
    if not one_machine and first.software.commit != second.software.commit:
        found.append("machine and commit both differ, so a ratio is of both")
    found += (each for each in _differences(_decisive(first, second)) if each not in found)
    found += (
        _environment(first, second)
        if not one_machine
        else _differences(
            {
                "processor": (first.machine.cpu.model, second.machine.cpu.model),
                "GPU": (first.machine.gpu or "none", second.machine.gpu or "none"),
                "kernel": (first.machine.kernel, second.machine.kernel),
                "governor": (first.machine.cpu.governor, second.machine.cpu.governor),
            }
        )
    )
    one, other = first.software.libraries, second.software.libraries
    found += _differences(
        {
            "compiler": (first.software.compiler, second.software.compiler),
            "flags": (first.software.flags.strip(), second.software.flags.strip()),
            "sweep": (first.run.sweep, second.run.sweep),
            "repetitions": (first.run.repetitions, second.run.repetitions),
            "shortest time of a repetition (s)": (
                *(first.run.min_time_seconds, second.run.min_time_seconds),
            ),
            **{
                f"library {name}": (one.get(name, "absent"), other.get(name, "absent"))
                for name in sorted(one | other)
            },
        }
    )
    for which, file in zip(names, (first, second), strict=True):
        found += (f"the {which} {doubt}" for doubt in _doubts(file))
    return found


def _doubts(file: File) -> Iterator[str]:
    if file.software.dirty:
        yield "was measured with uncommitted changes"
    if not file.software.commit:
        yield "does not say its commit"
    if not file.complete:
        yield f"is from a run that was {file.ended}: rows are missing"


def _decisive(first: File, second: File) -> dict[str, tuple[object, object]]:
    return {
        "build type": (first.software.build_type, second.software.build_type),
        "data": (first.run.data, second.run.data),
        "flush_to_zero": (first.run.flush_to_zero, second.run.flush_to_zero),
    }


def _environment(first: File, second: File) -> list[str]:
    one, other = first.run.environment, second.run.environment
    return _differences({name: (one.get(name), other.get(name)) for name in sorted(one | other)})


def _differences(pairs: dict[str, tuple[object, object]]) -> list[str]:
    return [
        f"{name}: {_shown(one)} and {_shown(other)}"
        for name, (one, other) in pairs.items()
        if one != other
    ]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "not stated" if value in (None, "") else str(value)
