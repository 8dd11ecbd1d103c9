# SPDX-License-Identifier: Apache-2.0
"""`compare`: machines or commits side by side, and one's CPU with another's GPU."""

import argparse
import math
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from crossover_bench.answers.answer import section as answer
from crossover_bench.answers.command import (
    EXIT_OK,
    EXIT_SLOWER,
    add_baseline,
    add_charts,
    add_format,
    add_of,
    add_paths,
    add_sort,
    asked_for,
    charts_missing,
    complain,
    named_path,
    print_blocks,
    print_sections,
    quantity_of,
    save_charts,
    tell_written,
)
from crossover_bench.answers.compare.analysis import FEWEST_REPETITIONS, Comparison, compare
from crossover_bench.answers.compare.table import compare_tables
from crossover_bench.answers.crossover import section as crossover
from crossover_bench.answers.machines.table import machines_table, verdicts
from crossover_bench.answers.two.answered import answered
from crossover_bench.answers.two.flags import OF_ROWS, add_threshold, add_wanted, refuse, wanted
from crossover_bench.answers.two.function_problems import asked_of
from crossover_bench.answers.two.moved import move_words, moves, moves_table
from crossover_bench.answers.two.problems import Found, problems_of
from crossover_bench.answers.two.sides import AskError
from crossover_bench.answers.two.threshold import read as read_thresholds
from crossover_bench.answers.two.threshold import thresholds_of
from crossover_bench.curves.comparability import obstacles, remarks
from crossover_bench.curves.crossover_words import other_work
from crossover_bench.files import loading
from crossover_bench.files.builds import other_builds
from crossover_bench.files.families import FUNCTION, TRAINING
from crossover_bench.files.file_order import gpus_first, machine, newest_per_machine
from crossover_bench.files.google_benchmark import Timing, split
from crossover_bench.files.quantities import TIME
from crossover_bench.files.refusal import BadFileError
from crossover_bench.files.rows import File
from crossover_bench.place import RUN_OF_CHECKOUT
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.study.machines import (
    SideBySide,
    UnknownMachineError,
    named,
    networks_of,
    side_by_side,
)
from crossover_bench.study.study import Study
from crossover_bench.words.text import counted, printable, sentence

DESCRIPTION = (
    "Shows files of several machines side by side, with crossovers, times and the geometric mean "
    "of the ratio to one of them. For files of one machine, compares the rows with those of the "
    "first file, the baseline: ratio of times, 95 % interval, and a verdict "
    "(docs/method/comparing.md); --of compares another quantity than time, of several machines row "
    "by row. Of files of Google Benchmark and of functions it says which crossovers have moved, or "
    "with --threshold which have since that was written; of functions, which rows have, too. Exits "
    "with 2 if files can't be compared. With --cpu-of and --gpu-of instead: the size "
    "from which the second machine's GPU would win against the first machine's CPU."
)
EXAMPLE = "compare before.json after.json --fail-on-slower=5%"
_TOO_FEW = (
    f"compare: needs two files or more, the baseline first; one of {RUN_OF_CHECKOUT} "
    "--compare-with=COMMIT; or "
    "--cpu-of and --gpu-of"
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser, "*", "result file, or folder: every *.json below it")
    add_of(parser)
    add_sort(parser)
    add_baseline(parser, "that of the first file; of a folder the newest with a GPU")
    parser.add_argument(
        "--all",
        action="store_true",
        help="list all rows, not only those that changed, and all files of each of several "
        "machines, not only the newest",
    )
    parser.add_argument(
        "--rows",
        action="store_true",
        help="of several machines, also compare the rows of each with the baseline's, as "
        "--fail-on-slower does",
    )
    parser.add_argument(
        "--minimum-effect",
        type=_percentage,
        default=0.03,
        metavar="P%",
        help="what is called faster or slower differs by more, what is called the same by less "
        "(default: 3%%)",
    )
    parser.add_argument(
        "--fail-on-slower",
        type=_percentage,
        metavar="P%",
        help="exit with 1 if a row of --family is shown to be slower by more than this and by a "
        "microsecond, or failed where the baseline has a result",
    )
    parser.add_argument(
        "--family",
        type=lambda text: tuple(text.split(",")),
        default=TRAINING,
        metavar="A,B",
        help=f"the families that --fail-on-slower looks at (default: {','.join(TRAINING)}; of "
        f"functions {FUNCTION})",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="compare files whose configurations differ in what makes ratios meaningless",
    )
    add_charts(parser, "also draw the ratios, as PNG and SVG, into DIR")
    parser.add_argument(
        "--cpu-of",
        type=named_path,
        metavar="FILE",
        help="the machine that would get another GPU",
    )
    parser.add_argument(
        "--gpu-of", type=named_path, metavar="FILE", help="the machine that has that GPU"
    )
    add_wanted(parser)
    add_threshold(
        parser,
        "compare files of Google Benchmark, together, with what two --threshold has written",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    fault = _wrong_usage(options)
    read = [] if fault else [split([path]) for path in options.paths]
    if fault or (read and all(timings and not rest for rest, timings, _ in read)):
        return complain([fault]) if fault else _compare_rows(read, options)
    try:
        return _compare_results(options)
    except (BadFileError, NothingToMixError, UnknownMachineError) as error:
        return complain([str(error)])


def _compare_results(options: argparse.Namespace) -> int:
    """Compares result files; raises BadFileError and what has nothing to compare."""
    if options.cpu_of:
        refuse(options, "compare", (*OF_ROWS, "threshold"))
        cpu, gpu = asked_for([_load(options.cpu_of), _load(options.gpu_of)], options)
        return _run_mix(cpu, gpu, options)
    loaded = [loading.load_files([path]) for path in options.paths]  # one may be named twice
    files = [file for of_path, _ in loaded for file in of_path]
    problems = [fault for _, faults in loaded for fault in faults]
    if files and all(file.functions and not file.rows for file in files):
        return _compare_functions(files, problems, options)
    refuse(options, "compare", (*OF_ROWS, "threshold"))
    if len(files) == 1:  # measured in turn with other builds
        files = [*other_builds(files[0]).values(), *files]
    if len(files) < 2:
        return complain(problems[:1] or [_TOO_FEW])
    files = asked_for(files, options)
    baseline = None if os.path.isdir(options.paths[0]) else files[0]  # of a folder not known
    if options.baseline:
        baseline = named(files, options.baseline)
    blocks: list[Block] = []
    if _are_of_several(files) and options.of == TIME.name:
        side = _side_by_side(files, baseline, options)
        files, baseline = [standing.file for standing in side.standings], side.baseline
        blocks.append(Block(points=tuple(verdicts(side)), tables=(machines_table(side),)))
        if not options.rows and options.fail_on_slower is None:
            print_blocks(blocks, options)
            apart = [standing.file for standing in side.standings if standing.obstacle]
            problems += (_refusal(baseline, file) for file in apart)
            return complain(
                problems + (_draw_machines(side, options.charts) if options.charts else [])
            )
    means = not blocks  # of machines there is another one
    return _run_comparison(files, baseline or files[0], blocks, problems, options, means=means)


def _are_of_several(files: Sequence[File]) -> bool:
    """Whether they are of several machines: one measured without its GPU is no other."""
    gpus = {file.machine.gpu for file in files if file.machine.gpu}
    return len({file.machine.id for file in files}) > 1 or len(gpus) > 1


def _compare_functions(
    files: Sequence[File], problems: list[str], options: argparse.Namespace
) -> int:
    """Says which crossovers of functions have moved, and of one machine which rows."""
    refuse(options, "compare", OF_ROWS)
    paths, asked = [file.path for file in files], [asked_of(file) for file in files]
    has_rows = not _are_of_several(files) or options.rows or options.fail_on_slower is not None
    if options.threshold or len(files) < 2 or not has_rows:
        return complain(problems) | _compare_problems(paths, asked, options)
    if options.family == TRAINING:
        options.family = (FUNCTION,)
    blocks, faults = _moved(paths, asked, options)
    problems += [fault for fault in faults if fault not in problems]
    rows = [replace(file, rows=file.functions) for file in files]
    return _run_comparison(rows, rows[0], blocks, problems, options, means=True)


def _compare_rows(
    read: Sequence[tuple[list[Path], list[Timing], list[str]]], options: argparse.Namespace
) -> int:
    """Compares what was `read` of each path, files of other programs' benchmarks: with --threshold
    all together are one question."""
    problems = [fault for _, _, faults in read for fault in faults]
    each = [timings for _, timings, _ in read]
    questions = [[of for timings in each for of in timings]] if options.threshold else each
    try:
        asked = [problems_of(timings, wanted(options)) for timings in questions]
    except AskError as error:
        return complain([*problems, f"compare: {error}"])
    return complain(problems) | _compare_problems(options.paths, asked, options)


def _compare_problems(
    paths: Sequence[Path], asked: Sequence[Found], options: argparse.Namespace
) -> int:
    """Says which crossovers of the problems `asked` of `paths` have moved."""
    try:
        blocks, problems = _moved(paths, asked, options)
    except BadFileError as error:
        return complain([f"compare: {error}"])
    print_blocks(blocks, options)
    return complain(problems if len(asked) > 1 or options.threshold else [_TOO_FEW])


def _moved(
    paths: Sequence[Path], asked: Sequence[Found], options: argparse.Namespace
) -> tuple[list[Block], list[str]]:
    """A block for each of `paths` of which crossovers are known: whether they have moved since
    --threshold was written, which raises BadFileError where it can't be read, else since the first
    of the paths; and what is wrong, a sentence each."""
    known = [answered(found) for found in asked]
    problems = [fault for _, faults in known for fault in faults]
    made = [thresholds_of(answers) for answers, _ in known]
    if options.threshold:
        made.insert(0, read_thresholds(options.threshold))
    else:  # of several GPUs as well
        made = [[replace(of, device="") for of in thresholds] for thresholds in made]
    blocks = []
    baseline = printable(str(options.threshold or paths[0]))
    others = paths if options.threshold else paths[1:]
    for path, after in zip(others, made[1:], strict=False):
        if moved := moves(made[0], after):
            blocks.append(Block(points=tuple(map(move_words, moved)), tables=(moves_table(moved),)))
        elif after:
            name = printable(str(path))
            problems.append(f"{name}: has no problem of {baseline}; name files of one program")
    return blocks, problems


def _wrong_usage(options: argparse.Namespace) -> str:
    mixing = options.cpu_of or options.gpu_of
    if mixing and (options.paths or not (options.cpu_of and options.gpu_of)):
        return "compare: --cpu-of and --gpu-of each need one file, and no other files are allowed"
    if mixing and (options.charts or options.fail_on_slower is not None):
        return "compare: --charts and --fail-on-slower need files to compare, not --cpu-of"
    if not mixing and not options.paths:
        return _TOO_FEW
    if options.fail_on_slower is not None and options.fail_on_slower < options.minimum_effect:
        return (
            "compare: --fail-on-slower is below --minimum-effect, so nothing could be shown to be "
            "slower by so little; lower --minimum-effect as well"
        )
    return ""


def _load(path: Path) -> File:
    if os.path.isdir(path):  # Path.is_dir() raises where a name is too long
        raise BadFileError(f"{printable(str(path))}: is a folder; name one result file")
    return loading.load_file(path)


def _refusal(first: File, second: File) -> str:
    names = " and ".join(printable(str(file.path)) for file in (first, second))
    reasons = "; ".join(map(printable, obstacles(first, second)))
    remedy = "measure both alike, or add --anyway"
    return f"{names} can't be compared, as they differ in {reasons}; {remedy}" if reasons else ""


def _run_comparison(
    files: list[File],
    baseline: File,
    blocks: list[Block],
    problems: list[str],
    options: argparse.Namespace,
    *,
    means: bool,
) -> int:
    """Compares the rows of `files` with those of `baseline`, one of them; prints that behind
    `blocks`. `means`: with the mean ratio of each family."""
    place = next(place for place, file in enumerate(files) if file is baseline)
    done: list[Comparison] = []
    for other in (*files[:place], *files[place + 1 :]):
        if not options.anyway and (refusal := _refusal(baseline, other)):
            problems.append(refusal)
            continue
        comparison = compare(baseline, other, options.minimum_effect)
        done.append(comparison)
        tables = compare_tables(comparison, options.all, means)
        blocks.append(Block(tables=tuple(tables)))
        if not comparison.pairs:
            problems.append(
                f"{printable(str(other.path))}: no row has a result both here and in the baseline "
                f"{printable(str(baseline.path))}, so nothing was compared; name files of one sweep"
            )
    print_blocks(blocks, options)
    if options.charts:
        problems += _draw([comparison for comparison in done if comparison.pairs], options.charts)
    slower: list[str] = []
    for comparison in done if options.fail_on_slower is not None else ():
        slower += _slower(comparison, options.fail_on_slower, options.family)
        problems += _untold(comparison, options.family)
    for fault in slower:
        print(fault, file=sys.stderr)
    return complain(problems) or (EXIT_SLOWER if slower else EXIT_OK)


def _untold(comparison: Comparison, families: Sequence[str]) -> list[str]:
    """Why no row of `families` can be shown to be slower, in a sentence; none where one can."""
    pairs = [pair for pair in comparison.pairs if pair.baseline.family in families]
    if comparison.pairs and not pairs:
        reason = (
            f"no row of {printable(' or '.join(families))} was compared, so none can be shown to "
            "be slower; name others with --family"
        )
    elif comparison.cannot_tell:
        reason = comparison.cannot_tell
    elif pairs and max(pair.repetitions for pair in pairs) < FEWEST_REPETITIONS:
        reason = (
            f"no row has {FEWEST_REPETITIONS} repetitions here and in the baseline, so none can be "
            "shown to be slower; measure both with --benchmark_repetitions=9"
        )
    else:
        return []
    return [f"{printable(str(comparison.other.path))}: {reason}"]


def _slower(comparison: Comparison, fraction: float, families: Sequence[str]) -> list[str]:
    """What is slower for --fail-on-slower, or failed, in a sentence; none where nothing is."""
    faults = []
    if slower := comparison.worse_than(fraction, families):
        worst = max(slower, key=lambda pair: abs(math.log(pair.ratio)))
        faults.append(
            f"{len(slower)} {'row is' if len(slower) == 1 else 'rows are'} "
            f"{comparison.quantity.worse} by more than {100 * fraction:g} %, most of all "
            f"{printable(worst.baseline.name)} ({abs(100 * (worst.ratio - 1)):.0f} %)"
        )
    failed = [unmatched.row for unmatched in comparison.unmatched if unmatched.lost]
    if lost := [printable(row.name) for row in failed if row.family in families]:
        rows_lost = counted(len(lost), "row")
        faults.append(f"{rows_lost} failed that the baseline has, such as {lost[0]}")
    path = printable(str(comparison.other.path))
    return [f"{path}: {' and '.join(faults)}"] if faults else []


def _side_by_side(
    files: Sequence[File], baseline: File | None, options: argparse.Namespace
) -> SideBySide:
    """The newest file of each machine, or with --all every file, as --sort has them.

    The ratios are to the machine of `baseline`; without one, to the newest with a GPU.
    """
    shown, older = (list(files), []) if options.all else newest_per_machine(files)
    wanted = [file for file in shown if file is baseline]
    wanted += [file for file in shown if baseline and machine(file) == machine(baseline)]
    return side_by_side(
        shown,
        older=older,
        baseline=(wanted or gpus_first(shown))[0],
        sort=options.sort,
        refuse=not options.anyway,
    )


def _draw_machines(side: SideBySide, folder: Path) -> list[str]:
    """Writes the chart of all machines; returns what is wrong, a sentence each."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.answers.machines.section import draw_machines  # noqa: PLC0415
    from crossover_bench.show.charts.files import write_pictures  # noqa: PLC0415

    chart = draw_machines(side)
    if chart is None:
        networks = printable(networks_of(side.standings))
        return [f"no chart was drawn, as no machine has times of two {networks}"]
    try:
        tell_written(write_pictures(chart.pictures, folder, chart.name))
    except OSError as error:
        return [charts_missing(error, folder)]
    return []


def _draw(done: Sequence[Comparison], folder: Path) -> list[str]:
    """Writes the charts; returns what is wrong, a sentence each."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.answers.compare.chart import draw_comparison  # noqa: PLC0415

    charts = [[draw_comparison(comparison)] for comparison in done]
    files = [comparison.other for comparison in done]
    problems = save_charts(files, charts, folder) if done else []
    for (chart,) in charts if not problems else ():
        print(f"which shows: {chart.alt}", file=sys.stderr)
    return problems


def _run_mix(cpu_file: File, gpu_file: File, options: argparse.Namespace) -> int:
    if not options.anyway and (refusal := _refusal(cpu_file, gpu_file)):
        return complain([refusal])
    mixed = mix(cpu_file, gpu_file)
    study = Study(mixed)
    if not study.comparisons:
        other = other_work(mixed)
        problem = (
            f"{printable(str(gpu_file.path))}: its GPU rows have no two sizes in common with "
            f"the CPU rows of {printable(str(cpu_file.path))}{f': {other}' if other else ''}; "
            "name files of one sweep"
        )
        return complain([problem])
    quantity = quantity_of([mixed], options)
    context = Context(studies={mixed.path: study}, quantity=quantity, draws=False)
    built = [build([mixed], context) for build in (answer.build, crossover.build)]
    notes = map(sentence, remarks(cpu_file, gpu_file, ("CPU's file", "GPU's file")))
    doubts = Section(title="Doubts", anchor="doubts", blocks=(Block(notes=(CAVEAT, *notes)),))
    print_sections([*(section for section in built if section), doubts], options)
    return EXIT_OK


def _percentage(text: str) -> float:
    if re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?%", text):
        return float(text[:-1]) / 100
    raise argparse.ArgumentTypeError(f"{printable(text, 40)!r} is no percentage such as 5%")


# ---- one machine's CPU with another's GPU: what would it be like to buy that card?


CAVEAT = (
    "Launches and copies are made by the host: GPU rows are those of the other machine's host. "
    "Where data is not resident on the GPU, and in small networks, whose time is that of launches, "
    "the card may be faster or slower in your machine."
)


class NothingToMixError(Exception):
    """A file lacks the rows it was to give; the message is one sentence with a remedy."""


def mix(cpu_file: File, gpu_file: File) -> File:
    """A file with the CPU's rows of `cpu_file` and all other rows of `gpu_file`.

    It says of itself what both have in common. Raises NothingToMixError.
    """
    cpu_rows = [row for row in cpu_file.rows if row.device == "cpu"]
    gpu_rows = [row for row in gpu_file.rows if row.configuration.get("device", "cpu") != "cpu"]
    for file, kept, device in ((cpu_file, cpu_rows, "CPU"), (gpu_file, gpu_rows, "GPU")):
        if not kept:
            raise NothingToMixError(
                f"{printable(str(file.path))}: has no row of a {device}; name a file that has"
            )
    same_commit = cpu_file.software.commit == gpu_file.software.commit
    return File(
        path=Path(f"{cpu_file.path.name} with {gpu_file.path.name}"),
        date=max(cpu_file.date, gpu_file.date),
        complete=cpu_file.complete and gpu_file.complete,
        machine=replace(
            cpu_file.machine,
            id=f"{cpu_file.machine.id}'s CPU with {gpu_file.machine.id}'s GPU",
            gpu=gpu_file.machine.gpu,
            gpu_reason=gpu_file.machine.gpu_reason,
        ),
        software=replace(
            cpu_file.software,
            commit=cpu_file.software.commit if same_commit else "",
            dirty=cpu_file.software.dirty or gpu_file.software.dirty,
        ),
        run=cpu_file.run,
        rows=(*cpu_rows, *gpu_rows),
    )
