# SPDX-License-Identifier: Apache-2.0
"""./run, and `crossover run` of an installed copy: set up, build, measure and draw."""

import ctypes
import datetime
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from crossover_bench import __version__
from crossover_bench.files.shortcomings import own_words
from crossover_bench.peers.frameworks import FRAMEWORKS
from crossover_bench.place import CROSSOVER, IS_CHECKOUT, ROOT, RUN, RUN_OF_CHECKOUT
from crossover_bench.run import (
    build,
    cuda,
    drivers,
    environment,
    own_network,
    peers,
    results,
    resume,
    setup,
    two,
)
from crossover_bench.run.console import HOME, SIGNALS, Failure, Parser, friendly, say

_USAGE = f"""\
usage: {RUN} [--setup-only] [--no-report] [--cuda=auto|on|off] [--budget=TIME] [--resume]
             [--with-peers[=NAMES|PYTHON|no]] [--compare-with=COMMIT] [--check-statistics]
             [arguments for bench ...]
       {RUN} two ...  any two commands, each with a size and a number of steps: {RUN} two --help

Installs what is missing (system packages with apt, Python packages into .venv), builds, measures,
writes results/<machine>/<date>-<commit>.json and draws report/index.html from it: one page with
the answer, charts and tables. All that is no complete default or full sweep is a try: it stays in
results/tries/<machine>/, which git ignores, and its page is report/try/index.html.

The answer is printed, and on report/try/index.html, as soon as every second network has five
repetitions on each side, or after 45 s. Measuring then goes on, and the end says what has changed.

  --setup-only    set up and build, but measure nothing
  --cuda=MODE     auto (the default): with an NVIDIA driver use the installed CUDA toolkit, or its
                  Python wheels; without one no GPU. on: require a GPU, and build for it without a
                  driver, too; off: no GPU, and a build without CUDA unless there is one with it.
                  Also passed on to bench
  --compare-with=COMMIT
                  build that commit as well, measure both in turn, and say which rows differ and,
                  in pairs, which networks do by 5 % or less
  --ranks=1,2     train also on that many processes (ranks), which share each batch and sum their
                  gradients over MPI (docs/cluster.md); installs Open MPI where there is none
"""
# Of an installed copy, which sets up and builds nothing.
_USAGE_INSTALLED = f"""\
usage: {RUN} [--no-report] [--cuda=auto|on|off] [--budget=TIME] [--resume]
             [--with-peers[=NAMES|PYTHON|no]] [--check-statistics] [arguments for bench ...]
       {RUN} two ...  any two commands, each with a size and a number of steps: {RUN} two --help

Measures, writes results/<machine>/<date>-<commit>.json and draws report/index.html from it: one
page with the answer, charts and tables. All that is no complete default or full sweep is a try: it
stays in results/tries/<machine>/, and its page is report/try/index.html. results/, report/ and
.venv-peers lie in {HOME}; the pages of docs/ that texts name in
{ROOT}. To measure several ranks or another commit (--ranks, --compare-with) takes a
checkout of the repository.

  --cuda=MODE     auto (the default): use a GPU where there is one; on: require it; off: no GPU. It
                  takes NVIDIA's libraries: pip install 'crossover-bench[cuda]'
"""


def _named_framework(name: str) -> str:
    """What --help says of its name."""
    framework = FRAMEWORKS[name]
    files = environment.FOR_FRAMEWORKS[name]
    measures = f" measures {framework.measures};" if framework.measures else ""
    text = (
        f"{name}:{measures} {environment.DOWNLOADS[files[-1].name].size} to download into "
        f"{environment.OF_FRAMEWORKS[name].place.name}; its rows are chosen by "
        f"{', '.join(framework.flags)}"
    )
    lines = textwrap.wrap(text, 80, subsequent_indent="  ", break_on_hyphens=False)
    return "".join(f"\n{' ' * 18}{line}" for line in lines)


_NAMES = "".join(map(_named_framework, FRAMEWORKS))
_PYTORCH = environment.DOWNLOADS[environment.FOR_FRAMEWORKS["pytorch"][0].name].size
_FLAGS = f"""\
  --no-report     measure, but draw no report
  --budget=TIME   measure for this time (90s, 5m, 1.5h), what matters most first; setting up and
                  building come before and are not counted
  --resume        go on with the latest run of this machine and commit that did not finish, with
                  its flags; with --budget, for that time. With --out, with the run in that file
  --with-peers    measure PyTorch on the same work, in turn with bench, and print the ratios. PYTHON
                  is an interpreter that has it; without one it is installed. NAMES, with commas
                  between them, are of{_NAMES}
                  docs/method/peers.md says what these flags take; --program=pytorch measures no
                  rows of bench's. Without --with-peers, a run whose rows no flag chooses measures
                  some of PyTorch's, in a part of its time, by the first Python that has it: of the
                  active environment, conda, python3 on the PATH, or .venv-peers;
                  --with-peers=no leaves them out
  --check-statistics
                  measure this build against itself, in turn: how often is a difference seen where
                  there is none? It takes the quick sweep, unless flags say otherwise
  --network=X     a network of your own: a file in JSON (docs/networks.md), or mynet.py:make or
                  mynet.onnx, which are imported by a PyTorch: that of --with-peers ({_PYTORCH} to
                  download), or that of an interpreter of yours, --with-peers=PYTHON.
                  --input=3x32x32 gives the shape of a sample, once for each of several inputs;
                  --scale=0.25,1,4 and --batch=10,100,1000 find the size and the batch from which a
                  GPU pays. It ends with the answer on one screen; --gpu=4090,h200 names the cards
                  in it ({CROSSOVER} advise --help). A module of PyTorch's that can't be
                  imported is trained there as it is; --loss-function=, --output=0,
                  --data=mynet.py:batches and --torch-device= say how (docs/networks.md)
  --out=FILE      write the results to FILE
  --check         tell in a minute at most what works on this machine, and measure nothing; runs by
                  itself before the first run on a GPU, and is kept beside the results as .check
  --version       print the version
  -h, --help      print this text, and bench's flags once it is built

All other arguments go to bench, for example

  {RUN} --sweep=quick
  {RUN} --model=disc-10 --threads=1,2

Paths are relative to the current directory. Exit codes: 0 all rows measured, 1 a row failed
or was skipped, 2 wrong usage or something to install first, 130 stopped by Ctrl-C.
"""
HELP = (_USAGE if IS_CHECKOUT else _USAGE_INSTALLED) + _FLAGS

# With one of these bench only tells something: there will be no results to keep or draw.
TELLING = {
    "--check",
    "--machine",
    "--models",
    "--commit",
    "--cost",
    "--describe",
    "--context",
    "--plan",
    "--benchmark_list_tests",
}
OUTPUTS = ("--out=", "--benchmark_out=")
# Flags that say which rows to measure, in place of a sweep's.
ROWS = ("--sweep=", "--family=", "--model=", "--mlp=", "--network=", "--benchmark_filter=")
REPORT = HOME / "report"
_BUILDS = ("--compare-with", "--ranks")
CHECK_SECONDS = 180  # of one that hangs; it takes a minute at most


class Arguments(Namespace):
    """The command line, taken apart into our own flags and what bench gets."""

    report = True
    bench: list[str] = []  # noqa: RUF012 - parse() sets it
    check_statistics = resume = False
    peers: tuple[str, ...] = ()
    peers_python: str | None = None  # that of PyTorch, where one is named
    with_peers: str | None = None
    compare_with: str | None = None
    gpu: str | None = None
    networks: list[Path] = []  # noqa: RUF012 - main() sets it
    modules: list[Path] = []  # noqa: RUF012 - main() sets it: what is measured as it is
    cuda = "auto"
    commands: two.Asked | None = None  # of ./run two; parse() sets it

    @property
    def only_tells(self) -> bool:
        flags = (argument.partition("=") for argument in self.bench)
        off = ("false", "no", "off", "0")
        return any(name in TELLING and value.lower() not in off for name, _, value in flags)

    @property
    def measures_builds(self) -> bool:
        return bool(self.compare_with) or self.check_statistics

    @property
    def looks_for_pytorch(self) -> bool:
        """Whether it measures the PyTorch that is found here, which nobody named: of a run that has
        the rows of a default or quick sweep. One that goes on has what it had."""
        sweep = [word for word in self.bench if word.startswith("--sweep=")][-1:]
        goes_on = self.resume and self.out is None
        is_plain = sweep in ([], ["--sweep=default"], ["--sweep=quick"])
        is_other = goes_on or self.measures_builds or self.commands or self.with_peers is not None
        return is_plain and not is_other and not own_words(["bench", *self.bench])

    @property
    def out(self) -> Path | None:
        """The file the user names for the results; the last one counts, as in bench."""
        given = [word.partition("=")[2] for word in self.bench if word.startswith(OUTPUTS)]
        return Path(given[-1]).absolute() if given else None


def _at_home(argument: str) -> str:
    """With the home folder for a ~ behind =, where a shell leaves it."""
    name, equals, value = argument.partition("=")
    is_home = equals and value.startswith("~") and not argument.startswith(own_network.FLAG)
    return f"{name}={os.path.expanduser(value)}" if is_home else argument


def parse(arguments: list[str]) -> Arguments:
    for word in arguments:
        if not IS_CHECKOUT and word.startswith(_BUILDS):
            raise Failure(
                f"{word} builds what an installed copy does not have; it takes a checkout of the "
                "repository",
                2,
            )
    parser = Parser(prog=RUN, add_help=False, allow_abbrev=False)
    for flags in (["--setup-only"], ["-h", "--help"], ["--version"], ["--check-statistics"]):
        parser.add_argument(*flags, action="store_true")
    parser.add_argument("--no-report", dest="report", action="store_false")
    parser.add_argument(resume.WITH_PEERS, dest="with_peers", nargs="?", const="")
    parser.add_argument("--compare-with", type=peers.commit_named)
    parser.add_argument("--gpu")
    commands = two.asked(arguments[1:]) if arguments[:1] == [two.WORD] else None
    words = [_at_home(word) for word in (commands.words if commands else arguments)]
    parsed = Arguments()
    _, parsed.bench = parser.parse_known_args(words, parsed)
    parsed.commands = commands
    if parsed.with_peers not in (None, peers.NO):
        parsed.peers, parsed.peers_python = peers.named(parsed.with_peers)
    parsed.resume = "--resume" in parsed.bench
    modes = [mode for mode in map(cuda.parse, parsed.bench) if mode]
    parsed.cuda = modes[-1] if modes else "auto"
    _check_combination(parsed)
    return parsed


def _check_combination(parsed: Arguments) -> None:
    others = (parsed.peers, parsed.compare_with, parsed.check_statistics)
    if sum(map(bool, others)) > 1:
        raise Failure(
            "--with-peers, --compare-with and --check-statistics each measure something in turn "
            "with bench; ask for one of them",
            2,
        )
    is_own = any(word.startswith(("--mlp=", own_network.FLAG)) for word in parsed.bench)
    if parsed.gpu is not None and not (parsed.resume or is_own):
        raise Failure("--gpu names cards for the answer on --network or --mlp; name one, too", 2)
    if parsed.measures_builds and parsed.resume:
        raise Failure("--resume can't go on with two builds in turn; measure them again", 2)


def show_help(parsed: Arguments) -> int:
    if parsed.commands:
        print(two.HELP, end="")
        return 0
    print(HELP, flush=True)
    if not build.BENCH.exists():
        print(f"(bench is not built yet; {RUN} --setup-only builds it)")
        return 0
    print("bench:", flush=True)
    return subprocess.run([build.BENCH, "--help"], check=False).returncode


def with_other(parsed: Arguments, command: list[str]) -> Path:
    """Has `command` measure another build of bench, or this one again, in turn. The results are no
    run of this machine, and stand beside that build."""
    name, bench = "same", build.BENCH
    if parsed.compare_with:
        name, bench = peers.built(parsed.compare_with, parsed.cuda)
    flags = [word for word in command[1:] if not word.startswith((*OUTPUTS, "--resume"))]
    if not any(word.startswith(ROWS) for word in flags):
        flags.append("--sweep=quick")
        command.append("--sweep=quick")
    if not any(word.startswith("--refine=") for word in flags):
        command.append("--refine=program")
    words = ["crossover_bench.peers.bench", name, str(bench), *flags]
    command.append(environment.as_peer(environment.PYTHON, *words))
    path = parsed.out
    if path is None:
        commit, folder = results.commit_of(build.BENCH), peers.COMMITS / "results" / name
        path = results.new_file(commit, datetime.date.today(), folder)
        results.make_folder(path.parent)
        command.append(f"--out={path}")
    return path


_LIBC = ctypes.CDLL(None if os.name == "posix" else "msvcrt")
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>


def _end_with_parent() -> None:
    """Of a child: asked to end, as by kill, when we do, be it by `kill -9`. The rows that have
    finished are kept."""
    with suppress(AttributeError):  # a system without it
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def measure(command: list[str]) -> int:
    """Run bench to its end, whatever signals come, and return its exit code as a shell would.

    Ctrl-C goes to everything on the terminal, so bench has it too, keeps its finished rows and
    ends; we wait for that. Other signals may come to us alone and are handed on. While bench is
    being started, a signal may miss it, Ctrl-C too: it is handed on as soon as bench runs.
    """
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def hand_on(signum: int, _frame: FrameType | None) -> None:
        if process is None:
            early.append(signum)
        elif signum != signal.SIGINT:
            process.send_signal(signum)

    before = {}
    for signum in SIGNALS:
        if signal.getsignal(signum) != signal.SIG_IGN:
            before[signum] = signal.signal(signum, hand_on)
    try:
        process = subprocess.Popen(command, preexec_fn=_end_with_parent)  # noqa: PLW1509 - one thread
        for missed in early:
            process.send_signal(missed)
        returncode = process.wait()
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if returncode >= 0:
        return returncode
    say(f"{RUN}: bench was ended by a signal ({signal.strsignal(-returncode)})")
    return 128 - returncode


def check(out: Path) -> None:
    """Tell what works, and keep it as JSON, before anything is measured; whatever comes of it."""
    say(f"no complete run of this GPU yet: first what works on it, also in {friendly(out)}")
    with suppress(OSError, subprocess.TimeoutExpired):
        command: list[str | Path] = [build.BENCH, "--check", f"--out={out}"]
        subprocess.run(command, check=False, timeout=CHECK_SECONDS)
    print(flush=True)


def plots(*words: str | Path, module: str = "crossover_bench") -> bool:
    """Run `crossover`; False if it failed."""
    sys.stdout.flush()
    command = [environment.PYTHON, "-m", module, *words]
    variables = environment.variables()
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode == 0


def first_answer() -> Path:
    """Where what is said of a run that goes on is kept, beside its page; while it is a try."""
    return REPORT / "try" / "answer.txt"


def when_answered(parsed: Arguments, file: Path) -> list[str]:
    """The flag that has bench show what `file` says as soon as there is an answer, where the end
    has a summary for it to be compared with."""
    has_own_screen = parsed.networks or parsed.modules or parsed.commands or parsed.measures_builds
    if has_own_screen or not parsed.report:
        return []
    kept = first_answer()
    words = ["report", file, "-o", kept.parent, "--since", kept]
    show = environment.started(environment.PYTHON, "crossover_bench", *map(str, words))
    return [f"--when-answered={show}"]


def destination(parsed: Arguments, command: list[str]) -> Path:
    """Where the results of a run go that names no file; `command` gets what follows from it."""
    machine, commit = results.machine_of(build.BENCH), results.commit_of(build.BENCH)

    def runs(complete: bool) -> list[resume.EarlierRun]:
        of_commit = resume.earlier_runs(machine, commit, complete)
        return [r for r in of_commit if (two.FAMILY in r.flags) == (parsed.commands is not None)]

    earlier = runs(complete=False)
    if parsed.resume:
        if not earlier and (whole := runs(complete=True)):
            say(
                f"{friendly(whole[0].out)} is complete: no row is left to measure; {RUN} without "
                "--resume measures all again"
            )
            sys.exit(0)
        if not earlier:
            raise Failure(
                f"{machine} has no unfinished run of commit {commit} to go on with; {RUN} without "
                "--resume starts one",
                2,
            )
        path = earlier[0].out
        given = {word.partition("=")[0] for word in command}
        flags, names = resume.flags_of(earlier[0], given)
        command += flags
        if names and parsed.with_peers == peers.NO:
            raise Failure(
                f"{friendly(path)} has rows of {', '.join(names)}, and goes on with them; leave "
                "out --with-peers=no, or --resume",
                2,
            )
        parsed.peers = tuple(dict.fromkeys([*parsed.peers, *names]))
    else:
        path = results.new_file(commit, datetime.date.today(), *results.folders_of(machine))
        if earlier:
            again = f"{RUN} {'two ... ' if parsed.commands else ''}--resume"
            say(
                f"{friendly(earlier[0].out)} has {earlier[0].rows} rows of a run that did not "
                f"finish; {again} goes on with it. This is a new one"
            )
    results.make_folder(path.parent)
    command.append(f"--out={path}")
    return path


def built_for(parsed: Arguments) -> str:
    """The --cuda to build with: where none is given, that of the run that --resume goes on with."""
    given = any(cuda.parse(word) for word in parsed.bench)
    if parsed.resume and not given and parsed.out is None and build.BENCH.exists():
        with suppress(Failure):  # a program that cannot be asked will be built anew
            machine, commit = results.machine_of(build.BENCH), results.commit_of(build.BENCH)
            for earlier in resume.earlier_runs(machine, commit, complete=False)[:1]:
                return next(filter(None, map(cuda.parse, earlier.flags)), parsed.cuda)
    return parsed.cuda


def conclude(path: Path | None, code: int, parsed: Arguments) -> int:
    """Say where everything is, with the rows in `path`, if bench wrote any; rows that finished are
    drawn even if others failed."""
    rows = results.finished_rows(path) if path else 0
    if path is None or rows == 0:
        return code
    counted = f"{rows} finished row{'' if rows == 1 else 's'}"
    kept = first_answer()
    if code not in (0, 1):
        drawn_on = friendly(kept.with_name("index.html"))
        answer = f"; the answer so far is on {drawn_on}" if kept.exists() else ""
        say(
            f"\n{RUN}: bench ended early (exit code {code}); {counted} kept in {friendly(path)}; "
            f"--resume goes on with them{answer}"
        )
        return code
    if parsed.measures_builds:
        same = "crossover_bench.answers.check_statistics"
        is_compared = plots("compare", path) if parsed.compare_with else plots(path, module=same)
        print(f"\nresults: {friendly(path)}")
        return code or (0 if is_compared else 1)
    if parsed.commands:
        plots(*two.screen(path, parsed.commands.at))
    elif parsed.peers and (parsed.networks or not parsed.modules):
        plots("peers", path)  # what others take for the same work
    why_try = results.why_try(path)
    path = results.settle(path)
    page = REPORT / "try" if why_try else REPORT
    networks: list[list[str | Path]] = [
        ["--network", path] for path in (*parsed.networks, *parsed.modules)
    ]
    networks += [["--model", name, *told] for name, told in results.by_widths(path)]
    summary: list[str | Path] = [] if networks or parsed.commands else ["--summary"]
    if summary and kept.exists():
        summary = ["--since", kept]
    drawn = parsed.report and plots("report", path, "-o", page, *summary)
    if drawn and kept.exists() and page != kept.parent:  # whoever has the first answer's page open
        shutil.copyfile(page / "index.html", kept.with_name("index.html"))
    cards = [] if parsed.gpu is None else ["--gpu", parsed.gpu]
    for network in networks:
        plots("advise", *network, *cards, path)
    print(f"\nresults: {friendly(path)}")
    if why_try:
        print(f"a try:   {why_try}; report/index.html stays as it was")
    if drawn:
        print(f"report:  {friendly(page / 'index.html')}")
    elif parsed.report:
        say(f"{RUN}: the report could not be written, but the results are there")
        return code or 1
    return code


def only_set_up(parsed: Arguments) -> int:
    measuring = [given for given in parsed.bench if cuda.parse(given) is None]
    if measuring:
        raise Failure(f"--setup-only measures nothing, but got {' '.join(measuring)}", 2)
    for name in parsed.peers:
        say(f"ready: {friendly(peers.python_of(name, parsed.peers_python))}")
    say(f"ready: {friendly(build.BENCH)}")
    return 0


def pythons_of(parsed: Arguments, command: list[str]) -> dict[str, Path]:
    """The frameworks that take turns with bench, each with its interpreter; `command` gets what
    follows from a PyTorch that is found."""
    was_found = parsed.resume and parsed.with_peers is None and parsed.peers == ("pytorch",)
    was_found &= all(word in command for word in peers.OF_A_FOUND_ONE)
    if not (parsed.looks_for_pytorch or was_found):
        return {name: peers.python_of(name, parsed.peers_python) for name in parsed.peers}
    pytorch = peers.found()
    if pytorch is None and was_found:
        raise Failure(
            "this run has rows of a PyTorch that is not found now; activate its environment, or "
            "name its Python: --with-peers=PYTHON",
            2,
        )
    parsed.peers = ()  # which have a screen of their own
    if pytorch is None:
        return {}
    python = friendly(pytorch.python)
    say(f"PyTorch {pytorch.version} of {python} is measured, too; --with-peers=no leaves it out")
    is_told = any(word.startswith(peers.TORCH_DEVICE) for word in command) or parsed.cuda == "off"
    if pytorch.torch_device and not (is_told or results.has_gpu(build.BENCH)):
        say(f"bench has no GPU here; PyTorch's is measured, too ({pytorch.torch_device})")
        command.append(f"{peers.TORCH_DEVICE}{pytorch.torch_device}")
    if not was_found:
        has_budget = any(word.startswith("--budget=") for word in command)
        command += [peers.SHARE_OF_A_BUDGET if has_budget else peers.SHARE, *peers.OF_A_FOUND_ONE]
    return {"pytorch": pytorch.python}


def run_bench(parsed: Arguments) -> int:
    """Measure what is asked for, beside whatever else, and show what came of it. Imported networks
    that have no verified row then are measured as they are."""

    def python() -> Path:
        return peers.python_of("pytorch", parsed.peers_python)

    asked = parsed.bench
    parsed.bench = own_network.imported(asked, python)
    if parsed.only_tells:
        return measure([str(build.BENCH), *own_network.as_it_is(parsed.bench, python)])

    command = [str(build.BENCH), *parsed.bench]
    if parsed.measures_builds:
        path = with_other(parsed, command)
    else:
        path = parsed.out or destination(parsed, command)
    code, written = run_words(parsed, command, path, python)
    if code != 1 or written is None or parsed.measures_builds:
        return conclude(written, code, parsed)
    if not (reasons := own_network.unverified(asked, written)):
        return conclude(written, code, parsed)
    has_others = own_network.has_networks(written)
    if has_others:
        conclude(written, code, parsed)
    words, left = own_network.going_on(asked, reasons, python)
    for sentence in left:
        say(f"{RUN}: {sentence}")
    if not words:
        return code if has_others else conclude(written, code, parsed)
    words = [word for word in words if not word.startswith((*OUTPUTS, "--resume"))]
    if has_others:
        path = path.with_stem(f"{path.stem}-as-it-is")
    else:
        # In its place. Rows of other things than networks may be in it, and the next run may fail.
        failed = written.rename(written.with_name(f"{written.name}.failed"))
        say(f"{RUN}: its rows so far are in {friendly(failed)}")
    parsed.peers, parsed.resume = (), False
    command = [str(build.BENCH), *words, f"--out={path}"]
    after, written = run_words(parsed, command, path, python)
    return max(code, conclude(written, after, parsed))


def run_words(
    parsed: Arguments, command: list[str], path: Path, python: Callable[[], Path]
) -> tuple[int, Path | None]:
    """Has bench measure what `command` says into the file `path`. Its exit code, and where its rows
    are, if it wrote any."""
    asked, command = command, own_network.as_it_is(command, python, bool(parsed.peers))
    parsed.networks = own_network.paths(command)
    parsed.modules = own_network.modules(asked)
    is_first = parsed.cuda != "off" and not (parsed.resume or parsed.commands)
    if is_first and results.has_new_gpu(build.BENCH, path):
        check(path.with_suffix(".check"))
    pythons = pythons_of(parsed, command)
    if pythons:
        command = peers.beside(pythons, command)
    first_answer().unlink(missing_ok=True)
    command += when_answered(parsed, results.place(path, parsed.resume))
    before = results.states(path)
    try:
        code = measure(command)
    finally:
        if parsed.out is None:
            results.remove_if_empty(path)
    return code, results.written(path, before)


def main(arguments: list[str]) -> int:
    parsed = parse(arguments)
    if parsed.help:
        return show_help(parsed)
    if parsed.version:
        print(f"crossover {__version__}")
        return 0
    checks = "--check" in parsed.bench
    if checks and not parsed.commands:
        for sentence in drivers.words(build.cuda_major()):
            say(sentence)
    if checks and not (IS_CHECKOUT or build.BENCH.exists()):
        say(drivers.pytorch_words())
        return 0
    if not (IS_CHECKOUT or build.BENCH.exists()):
        raise Failure(
            f"this copy has no bench and measures no networks; {RUN_OF_CHECKOUT} does. What reads "
            "files works here, and crossover_bench.two() in Python",
            2,
        )
    if IS_CHECKOUT:
        with setup.alone():
            ranks = any(word.startswith("--ranks=") for word in parsed.bench)
            build.program(setup.for_run(built_for(parsed), ranks))
    return only_set_up(parsed) if parsed.setup_only else run_bench(parsed)
