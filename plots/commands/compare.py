# SPDX-License-Identifier: Apache-2.0
"""`compare`: machines or commits side by side, and one's CPU with another's GPU."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from plots import loading, rows
from plots.analysis import mix
from plots.analysis.comparability import obstacles, remarks
from plots.commands.shared import EXIT_BAD_INPUT, EXIT_SLOWER, add_format, complain, print_tables
from plots.tables.table import Table
from plots.text import printable, slug

NAME = "compare"
HELP = "compare machines or commits row by row, or mix a CPU with another machine's GPU"
DESCRIPTION = (
    "Compares the rows of files with those of the same name in the first one, the baseline: ratio "
    "of times, 95 % interval, and whether the other is faster, slower, the same, or nothing of "
    "that is shown (docs/method/comparing.md). Exits with 2 where files can't be compared. "
    "With --cpu-of and --gpu-of instead: from which size on the second machine's GPU would win "
    "against the first one's CPU."
)
EXAMPLE = "python -m plots compare before.json after.json --fail-on-slower=5%"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="FILE", help="result file; the first is the baseline"
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
        help="exit with 1 if a row is called slower and is so by more than this, or failed where "
        "the baseline has a result",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="compare files whose configurations differ in what makes ratios meaningless",
    )
    parser.add_argument(
        "--charts", type=Path, metavar="DIR", help="also draw the ratios, as PNG and SVG, into DIR"
    )
    parser.add_argument(
        "--cpu-of", type=Path, metavar="FILE", help="the machine that would get another GPU"
    )
    parser.add_argument("--gpu-of", type=Path, metavar="FILE", help="the machine that has that GPU")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; returns the exit code."""
    fault = _wrong_usage(options)
    if fault:
        return complain([fault])
    paths = options.paths or [options.cpu_of, options.gpu_of]
    try:
        files = [_load(path) for path in paths]
        return _run_mix(*files, options) if options.cpu_of else _run_comparison(files, options)
    except (loading.BadFileError, mix.NothingToMixError) as error:
        return complain([str(error)])


def _wrong_usage(options: argparse.Namespace) -> str:
    mixing = options.cpu_of or options.gpu_of
    if mixing and (options.paths or not (options.cpu_of and options.gpu_of)):
        return "compare: --cpu-of and --gpu-of each need one file, and no other files are allowed"
    if mixing and (options.charts or options.fail_on_slower is not None):
        return "compare: --charts and --fail-on-slower need files to compare, not --cpu-of"
    if not mixing and len(options.paths) < 2:
        return "compare: needs two files or more, the baseline first; or --cpu-of and --gpu-of"
    if options.fail_on_slower is not None and options.fail_on_slower < options.minimum_effect:
        return (
            "compare: --fail-on-slower is below --minimum-effect, so nothing could be shown to be "
            "slower by so little; lower --minimum-effect as well"
        )
    return ""


def _load(path: Path) -> rows.File:
    if path.is_dir():
        raise loading.BadFileError(f"{printable(str(path))}: is a folder; name one result file")
    return loading.load_file(path)


def _refusal(first: rows.File, second: rows.File) -> str:
    names = " and ".join(printable(str(file.path)) for file in (first, second))
    found = "; ".join(printable(obstacle) for obstacle in obstacles(first, second))
    return (
        f"{names} can't be compared, as they differ in {found}; measure both alike, or add --anyway"
        if found
        else ""
    )


def _run_comparison(files: list[rows.File], options: argparse.Namespace) -> int:
    # Imported here because scipy takes longer to load than a refusal takes.
    from plots.analysis.compare import Comparison, compare  # noqa: PLC0415
    from plots.tables.compare import compare_tables  # noqa: PLC0415

    baseline, *others = files
    problems: list[str] = []
    tables: list[Table] = []
    done: list[Comparison] = []
    for other in others:
        refusal = "" if options.anyway else _refusal(baseline, other)
        if refusal:
            problems.append(refusal)
            continue
        comparison = compare(baseline, other, options.minimum_effect)
        done.append(comparison)
        tables += compare_tables(comparison)
        if not comparison.pairs:
            problems.append(
                f"{printable(str(other.path))}: no row has a result both here and in the baseline "
                f"{printable(str(baseline.path))}, so nothing was compared; name files of one sweep"
            )
    if tables:
        print_tables(tables, options)
    if options.charts:
        problems += _draw([comparison for comparison in done if comparison.pairs], options.charts)
    slower = [] if options.fail_on_slower is None else _slower(done, options.fail_on_slower)
    for sentence in slower:
        print(sentence, file=sys.stderr)
    if problems:
        return complain(problems)
    return EXIT_SLOWER if slower else complain([])


def _slower(done: list, fraction: float) -> list[str]:
    """What --fail-on-slower found, a sentence for each file."""
    found = []
    for comparison in done:
        slower = comparison.slower_than(fraction)
        lost = [unmatched for unmatched in comparison.unmatched if unmatched.lost]
        faults = []
        if slower:
            worst = max(slower, key=lambda pair: pair.ratio)
            faults.append(
                f"{len(slower)} {'row is' if len(slower) == 1 else 'rows are'} slower by more than "
                f"{100 * fraction:g} %, most of all {printable(worst.baseline.name)} "
                f"({100 * (worst.ratio - 1):.0f} %)"
            )
        if lost:
            faults.append(
                f"{len(lost)} {'row' if len(lost) == 1 else 'rows'} failed that the baseline has, "
                f"such as {printable(lost[0].row.name)}"
            )
        if faults:
            found.append(f"{printable(str(comparison.other.path))}: {' and '.join(faults)}")
    return found


def _draw(done: list, folder: Path) -> list[str]:
    """Writes the charts; returns what is wrong, a sentence each."""
    # Imported here because matplotlib takes long to load.
    from plots.charts.compare import alt_text, draw_comparison  # noqa: PLC0415
    from plots.charts.files import stems, write_pictures  # noqa: PLC0415

    written: list[Path] = []
    try:
        for comparison, stem in zip(done, stems([one.other for one in done]), strict=True):
            name = f"{stem}.compare-{slug(comparison.other.path.stem)}"
            paths = write_pictures(draw_comparison(comparison), folder, name, written)
            written += paths
            for path in paths:
                print(f"wrote {printable(str(path), 400)}", file=sys.stderr)
            print(f"which shows: {alt_text(comparison)}", file=sys.stderr)
    except OSError as error:
        place = printable(str(error.filename or folder))
        return [f"{place}: {error.strerror}, so charts are missing; choose another --charts"]
    return []


def _run_mix(cpu_file: rows.File, gpu_file: rows.File, options: argparse.Namespace) -> int:
    refusal = "" if options.anyway else _refusal(cpu_file, gpu_file)
    if refusal:
        print(refusal, file=sys.stderr)
        return EXIT_BAD_INPUT
    mixed = mix.mix(cpu_file, gpu_file)
    found = remarks(cpu_file, gpu_file, ("CPU's file", "GPU's file"))
    notes = [f"{remark[:1].upper()}{remark[1:]}." for remark in found]
    if left_out := mix.misnamed(cpu_file, gpu_file):
        notes.append(
            f"{len(left_out)} of the GPU's rows left out, as they train differently (optimizer, "
            "data or size) than the CPU's of the same network."
        )
    table = mix.crossovers_of_mix(mixed, notes)
    if table is None:
        return complain(
            [
                f"{printable(str(gpu_file.path))}: its GPU rows have no two sizes in common with "
                f"the CPU rows of {printable(str(cpu_file.path))}; name files of one sweep"
            ]
        )
    print_tables([table], options)
    return complain([])


def _percentage(text: str) -> float:
    if re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?%", text):
        return float(text[:-1]) / 100
    raise argparse.ArgumentTypeError(f"{printable(text, 40)!r} is no percentage such as 5%")
