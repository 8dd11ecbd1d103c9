# SPDX-License-Identifier: Apache-2.0
"""The commands as a user runs them: what they print, what they write, their exit codes; and the
command that measures a file again."""

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover_bench import __version__
from crossover_bench.curves import crossover
from crossover_bench.curves.curves import pairings
from crossover_bench.files.again import command
from crossover_bench.files.rows import Run
from crossover_bench.place import ALONE
from crossover_bench.shell.cli import main
from crossover_bench.shell.commands import COMMANDS
from crossover_bench.tests import synthetic, synthetic_whole
from tools.sources import tracked_files, tracked_results

ROOT = Path(__file__).parents[3]


def test_validate_reports_each_file(small, write, tmp_path, shell):
    good = write(small, "good.json")
    assert shell("validate", good).out == f"{good}: valid, 1 row\n"
    for entry in small["benchmarks"]:
        del entry["params"]
    bad = write(small, "bad.json")
    missing = tmp_path / "missing.json"
    printed = shell("validate", bad, good, missing, code=2)
    assert printed.out == f"{good}: valid, 1 row\n"
    sentences = printed.err.splitlines()
    assert len(sentences) == 2
    assert 'field "params": is missing' in sentences[0] and "no such file" in sentences[1]


def test_the_committed_results_are_valid(capsys):
    assert main(["validate", *map(str, tracked_results())]) == 0
    results = ROOT / "results"
    others = tracked_files() - {*tracked_results()}
    assert [path for path in others if results in path.parents] == [results / "README.md"]
    assert not [path for path in tracked_results() if results / "tries" in path.parents]


@pytest.mark.usefixtures("undrawn")
def test_report_writes_and_says_what(write, tmp_path, capsys):
    write(synthetic.sweep(), "in/file.json")
    output = tmp_path / "out" / "report"
    assert main(["report", str(tmp_path / "in"), "-o", str(output)]) == 0
    names = sorted(path.name for path in output.iterdir())
    kinds = ("crossover-epoch-100-f32", "epochs", "predicted-epoch-100-f32", "strip")
    charts = [f"synthetic-machine.{kind}" for kind in kinds]
    assert names == [
        "index.html",
        *(f"{chart}.{kind}" for chart in charts for kind in ("png", "svg")),
    ]
    printed = capsys.readouterr().out
    assert printed == f"wrote {output / 'index.html'}, and 8 files of charts beside it\n"


@pytest.mark.usefixtures("undrawn")
def test_a_page_and_its_summary_pair_the_rows_of_each_answer_once(
    write, tmp_path, monkeypatch, shell
):
    """Over sizes and network by network: ours, which are over copies, too, then with those of
    other programs, and each of these alone."""
    path, seen = write(synthetic_whole.whole()), []

    def seen_pairings(file, scales):
        seen.extend(row.program for row in file.rows[:1])
        return pairings(file, scales)

    monkeypatch.setattr(crossover, "pairings", seen_pairings)
    asked = ("report", path, "-o", tmp_path / "out", "--since", tmp_path / "kept")
    first = shell(*asked).out
    assert seen.count("bench") == 3 + 2 and len(seen) <= 5 + 5, seen
    assert "the GPU wins from " in first and "The answer so far is above" in first
    assert shell(*asked).out.startswith("The answer above stands.\n\nwrote ")


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_report_all_shows_every_file_and_into_a_file_it_is_refused(small, write, tmp_path, shell):
    write(small, "in/1.json")
    folder = write(small, "in/2.json").parent
    for options, pictures in ([], 1), (["--all"], 2), (["--all", "--detail=1"], 1):
        output = tmp_path / "".join(["out", *options])
        shell("report", folder, "-o", output, *options)
        assert len(list(output.glob("*.svg"))) == pictures
    (tmp_path / "taken").write_text("keep me")
    assert shell("report", folder, "-o", tmp_path / "taken", code=2).err.count("\n") == 1
    assert (tmp_path / "taken").read_text() == "keep me"


@pytest.mark.parametrize(
    "arguments",
    [[], ["validate"], ["report", "a", "--wrong"], ["report", "a", "--detail=0"]],
)
def test_wrong_usage_is_one_sentence(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and "--help" in printed.err


def test_the_nearest_command_is_named(shell):
    assert "no command 'repot'; did you mean report? " in shell("repot", "a", code=2).err
    assert "no command 'zzz'; crossover --help lists all" in shell("zzz", code=2).err


def python(*arguments: str, env: dict[str, str] | None = None) -> Any:
    words = [sys.executable, *arguments]
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def test_a_missing_package_is_one_sentence():
    code = (
        "import runpy, sys; sys.modules['fastjsonschema'] = None; sys.argv = ['plots', 'shi'];"
        "runpy.run_module('plots', run_name='__main__')"
    )
    finished = python("-c", code)
    assert finished.returncode == 2 and finished.stderr.count("\n") == 1
    for part in ("no package fastjsonschema", ".venv/bin/crossover"):
        assert part in finished.stderr


def test_times_needs_no_package_of_the_page(small, write):
    code = (
        "import sys; sys.modules |= dict.fromkeys(('matplotlib', 'markupsafe', 'jinja2', 'scipy'));"
        "from crossover_bench.shell.cli import main; sys.exit(main(['times', sys.argv[1]]))"
    )
    finished = python("-c", code, str(write(small)), env={"PYTHONPATH": str(ALONE)})
    assert finished.returncode == 0 and "20.0 ms" in finished.stdout, finished.stderr


def test_the_module_runs_on_a_plain_terminal(small, write):
    ascii_alone = {"PYTHONIOENCODING": "ascii"}
    finished = python("-m", "plots", "validate", str(write(small)), env=ascii_alone)
    assert finished.returncode == 0 and "valid, 1 row" in finished.stdout


def test_the_module_tells_its_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"crossover {__version__}\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_each_command_has_an_example(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*filter(None, [command]), "--help"])
    assert stopped.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"usage: crossover {command}".rstrip() in printed
    assert f"example: crossover {command}".rstrip() in printed


# --- the command that measures a file again: it survives a shell


def test_a_shell_gives_back_the_words_without_the_results_place_and_filter():
    words = "--mlp=784,512,10 --out=a.json --benchmark_out=b --benchmark_filter=x --resume"
    run = Run(
        command=("bench", *words.split()),
        sweep="default",
        repetitions=9,
        min_time_seconds=0.1,
        environment={},
        data="",
        flush_to_zero=None,
    )
    assert command(run) == "./build/bench --mlp=784,512,10"
    data = "--data=it's $HOME `x`.csv"
    run = replace(run, command=("bench", data), environment={"OMP_NUM_THREADS": "2 ; rm x"})
    assert shlex.split(command(run)) == ["OMP_NUM_THREADS=2 ; rm x", "./build/bench", data]
    # Nor does it when it is copied: nothing is started, loaded or written that the file names.
    words = ("bench", "--meter=touch x", "--peer=touch x", "--threads=1")
    told = {"LD_PRELOAD": "./x.so", "a b": "1", "LOG": "/x"}
    copied = ["./build/bench", "--meter=COMMAND", "--peer=COMMAND", "--threads=1"]
    assert shlex.split(command(replace(run, command=words, environment=told))) == copied


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("comp", {"compare"}),
        ("compare --fail", {"--fail-on-slower"}),
        ("compare --format jso", {"json"}),
    ],
)
def test_bash_completes_commands_flags_and_choices(line, words, capsys, tmp_path):
    assert main(["--print-completion"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    asked = (
        f". {script}; COMP_WORDS=(crossover {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        '_crossover; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == words and not done.stderr
