# SPDX-License-Identifier: Apache-2.0
"""The run that --resume goes on with, and which of its flags come back.

Its file says them, and a file may be anybody's: it starts no command, and names no folder. So only
what a run of this machine left in results/tries/ counts, flags that are known to be harmless come
back by themselves, and all others have to be given again.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crossover_bench.peers.frameworks import FRAMEWORKS
from crossover_bench.place import RUN
from crossover_bench.run import own_network, peers
from crossover_bench.run.console import Failure, friendly, stored
from crossover_bench.run.results import PARTIAL, folders_of
from crossover_bench.words.text import printable

WITH_PEERS = "--with-peers"
_NETWORK, _DATA = own_network.FLAG.removesuffix("="), "--data"
# Of bench and its peers those whose value is neither a command nor a path. Not among them: --peer
# and --meter, which are run.
HARMLESS = {
    *("--accumulate", "--activation", "--batch", "--bucket", "--copies", "--cuda", "--cudnn"),
    *("--energy", "--execution", "--family", "--in-process", "--loader", "--loss"),
    *("--loss-function", "--lr", "--memory-limit", "--mixed", "--mlp", "--model", "--optimizer"),
    *(
        "--patience",
        "--peers-share",
        "--placement",
        "--planned-memory",
        "--precision",
        "--products",
        "--program",
    ),
    *("--ranks", "--refine", "--rows", "--scale", "--shuffle", "--sweep", "--threads"),
    *("--v", "--weight-decay", "--zero"),
    *("--benchmark_color", "--benchmark_context", "--benchmark_counters_tabular"),
    *("--benchmark_display_aggregates_only", "--benchmark_dry_run"),
    *("--benchmark_enable_random_interleaving", "--benchmark_filter", "--benchmark_format"),
    *("--benchmark_min_time", "--benchmark_min_warmup_time", "--benchmark_out_format"),
    *("--benchmark_perf_counters", "--benchmark_repetitions"),
    *("--benchmark_report_aggregates_only", "--benchmark_time_unit"),
    *(flag for framework in FRAMEWORKS.values() for flag in framework.flags),
}
_OF_ONE_RUN = ("--out=", "--benchmark_out=", "--budget=", "--resume")


@dataclass(frozen=True)
class EarlierRun:
    """A run that ended, before its last row or with all."""

    out: Path  # the file it is for; its rows may be beside that in a .partial
    rows: int
    flags: tuple[str, ...]  # bench's, but for where the rows go and how long it may take


def earlier_runs(machine: str, commit: str, complete: bool) -> list[EarlierRun]:
    """Those of this machine and commit that have all rows (`complete`), or lack some; the latest
    first. What lacks rows is a try: among the results that answer for a machine it is not ours."""
    with suppress(OSError):
        files = [
            (path.stat().st_mtime, path)
            for pattern in ("*.json", f"*.json{PARTIAL}")
            for folder in folders_of(machine)[: 2 if complete else 1]
            for path in folder.glob(pattern)
        ]
        runs = (_earlier_run(path, commit, complete) for _, path in sorted(files)[::-1])
        return list(filter(None, runs))
    return []


def _earlier_run(path: Path, commit: str, complete: bool) -> EarlierRun | None:
    try:
        document = stored(path)
        crossover = document["context"]["crossover"]
        software = crossover["software"]
        known, dirty = software["commit"][:7], software["dirty"]
        of_commit = known + ("-dirty" if dirty else "") if known else "unknown"
        if crossover["complete"] is not complete or of_commit != commit:
            return None
        words = [str(word) for word in crossover["configuration"]["command"][1:]]
        return EarlierRun(
            out=path.with_name(path.name.removesuffix(PARTIAL)),
            rows=len(document["rows"]),
            flags=tuple(word for word in words if not word.startswith(_OF_ONE_RUN)),
        )
    except (KeyError, TypeError):
        return None


def flags_of(run: EarlierRun, given: set[str]) -> tuple[list[str], list[str]]:
    """Of a run that goes on the words for bench, but for the flags that are `given`; and the names
    of its peers, which ./run starts itself. Failure at a word that no file may bring."""
    words: list[str] = []
    names: list[str] = []
    for word in run.flags:
        flag, _, value = word.partition("=")
        if flag in given:
            continue
        if flag == WITH_PEERS and (not value or value in FRAMEWORKS):
            names += peers.named(value)[0]
        elif flag == _NETWORK and value:
            words.append(own_network.FLAG + ",".join(_located(run, value)))
        elif flag == _DATA and value:
            words.append(f"{_DATA}={_data(run, value)}")
        elif flag in HARMLESS:
            words.append(word)
        else:
            raise Failure(
                f"{friendly(run.out)} says that it was measured with {word!r}, which is taken from "
                f"no file, as it may start a program; if it is yours, give it again: {RUN} "
                f"--resume {flag}{'=...' if value else ''}",
                2,
            )
    return words, list(dict.fromkeys(names))


def _is_name(text: str) -> bool:
    """bench writes names without folders."""
    return Path(text).name == text and text.isprintable()


def _located(run: EarlierRun, value: str) -> list[str]:
    """The files of the networks that are named. A module as it is tells which program to start, and
    is one that ./run wrote itself."""
    places = []
    for name in value.split(","):
        made = own_network.FOLDER / name
        if _is_name(name) and name.endswith(".module.json") and made.is_file():
            places.append(str(made))
        elif _is_name(name) and name.endswith(".json") and not name.endswith(".module.json"):
            located = own_network.located(own_network.FLAG + name, run.out)
            places.append(located.removeprefix(own_network.FLAG))
        else:
            raise Failure(
                f"the run in {friendly(run.out)} measured {printable(name)}, which is not in "
                f"{friendly(own_network.FOLDER)}; say where it is: {RUN} --resume "
                f"--network=FOLDER/{printable(Path(name).name)}",
                2,
            )
    return places


def _data(run: EarlierRun, value: str) -> str:
    if not (_is_name(value) and Path(value).exists()):
        raise Failure(
            f"the run in {friendly(run.out)} read {printable(value)}, and result files name no "
            f"folders; say where it is: {RUN} --resume --data=FOLDER/{printable(Path(value).name)}",
            2,
        )
    return value
