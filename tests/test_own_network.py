# SPDX-License-Identifier: Apache-2.0
"""A network of one's own in a file: its form, measured in several sizes, and advised on."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
from bench_runs import BENCH, ROOT, SHORT, assert_refused, bench, measure
from scripts import script

from crossover_bench.files import loading
from crossover_bench.place import PACKAGE
from crossover_bench.run import own_network, run
from crossover_bench.run.console import Failure
from crossover_bench.shell.cli import main
from crossover_bench.words import units


@pytest.fixture
def network(tmp_path: Path) -> Path:
    path = tmp_path / "mine.json"
    layers = [
        {"name": "wide", "type": "linear", "out_features": 16},
        {"name": "bend", "type": "relu"},
        {"name": "head", "type": "linear", "out_features": 3},
    ]
    form = {"name": "mine", "input": {"shape": [8], "type": "f32"}, "classes": 3}
    described = {**form, "loss": "cross_entropy", "layers": layers, "training": {"batch": 20}}
    path.write_text(json.dumps(described), encoding="utf-8")
    return path


def test_it_is_measured_in_every_size_and_stands_in_the_file(network, tmp_path):
    flags = (f"--network={network}", "--scale=2,0.5,1", "--family=Epoch", "--threads=1", *SHORT)
    document = measure(tmp_path, *flags, "--cuda=off")
    crossover = document["context"]["crossover"]
    known = {row["configuration"]["model"]: row["network"] for row in document["rows"]}
    assert crossover["network_fingerprints"] == known
    file = loading.load_file(tmp_path / "result.json")
    assert [row.model for row in file.rows] == ["minex2", "minex0.5", "mine"]
    assert {row.counters["batch"] for row in file.rows} == {20}
    assert crossover["ladders"]["mine"] == ["minex0.5", "mine", "minex2"]
    assert crossover["ladder_batches"]["mine"] == 20
    assert "--network=mine.json" in crossover["configuration"]["command"]
    inner = [described["layers"][0]["out_features"] for described in crossover["networks"]]
    assert inner == [32, 8, 16]
    assert all(row.ladder and row.ladder.name == "mine" for row in file.rows)


@pytest.mark.slow
def test_it_is_advised_on_from_what_was_measured_of_it(network, tmp_path, capsys, monkeypatch):
    """Takes long where caches are large, as the probe of memory does."""
    monkeypatch.setenv("COLUMNS", "80")
    flags = (f"--network={network}", "--scale=1,64", "--batch=20,100", "--family=Epoch,Peak")
    few = ("--threads=1", "--benchmark_filter=Epoch|fma|triad", "--cuda=off")
    measure(tmp_path, *flags, *few, *SHORT)
    words = ["advise", "--network", str(network), "--gpu=rtx-4090", f"--bench={BENCH}"]
    words.append(str(tmp_path / "result.json"))
    assert main(words) == 0
    screen = capsys.readouterr().out
    text = " ".join(screen.split())
    caution = 2 if "Other programs used the processors" in text else 0  # lines
    assert max(map(len, screen.splitlines())) <= 80
    assert screen.count("\n") <= 27 + caution, screen  # with two lines for PyTorch
    assert "CPU, 1 thread" in text and "RTX 4090, predicted" in text
    assert "(measured: batch 20, 100)" in text and "(measured: scale 1, 64)" in text
    assert "a step on the RTX 4090" in text and "The CPU is bound by" in text
    cost = json.loads(bench("--cost", f"--network={network}", "--batch=20").stdout)
    planned = cost["device_bytes"]["cuda"]
    assert planned["bytes"] > planned["workspace_bytes"] > 0
    assert f"{units.binary_bytes(planned['bytes'])} on a GPU" in text


def test_it_is_listed_and_described(network):
    assert bench("--models", f"--network={network}").stdout.split()[0] == "mine"
    described = json.loads(bench("--describe", f"--network={network}").stdout)
    assert described["layers"] == json.loads(network.read_text(encoding="utf-8"))["layers"]


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An interpreter that imports all but bad.py and what ends it, trains all but worse.py, and
    writes its words; beside a bench that takes all but forecast.py."""
    monkeypatch.setattr(own_network, "FOLDER", tmp_path)
    bench = script(
        tmp_path / "bench",
        'import sys\nif "forecast" in sys.argv[2]:\n'
        '    print("bench: --network: it takes no places", file=sys.stderr)\n    sys.exit(2)\n',
    )
    monkeypatch.setattr(own_network.build, "BENCH", bench)
    return script(
        tmp_path / "python",
        'import sys\nwords = sys.argv[1:]\nout = words[words.index("-o") + 1]\n'
        'if "crossover_bench.networks" in words and ("bad" in out or "worse" in out):\n'
        '    print("crossover networks: it is bad", file=sys.stderr)\n    sys.exit(1)\n'
        'if "ends" in out and "crossover_bench.networks" in words:\n    sys.exit(0)\n'
        'if "worse" in out:\n    sys.exit(1)\n'
        'import shlex\nopen(out, "w").write(shlex.join(words))\n',
    )


def test_what_is_no_json_is_imported_first(tmp_path, python):
    pair = ["--input=scalar", "--input-type=tokens:9", "--input=3", "--input-type=tokens:7"]
    words = ["--network=a/net.py:make,b.json", *pair, "--batch=5"]
    got = own_network.imported(words, lambda: python)
    (made,) = tmp_path.glob("net-make-*.json")
    assert got == ["--batch=5", f"--network={made},{Path('b.json').absolute()}"]
    source = Path("a/net.py:make").absolute()
    command = ["-m", "crossover_bench.networks", "import", str(source), *pair, "-o", str(made)]
    assert shlex.split(made.read_text(encoding="utf-8")) == command
    remedy = r"bad\.onnx was not imported \(above\); .* as it is: --network=FILE\.py:CALLABLE"
    with pytest.raises(Failure, match=remedy):
        own_network.imported(["--network=bad.onnx"], lambda: python)
    plain = ["--network=b.json", "--input=3x8x8"]
    assert own_network.imported(plain, lambda: python) is plain
    # Whose files have one name are not one network, and an older file is not taken for a new one.
    twice = ["--network=a/net.py:make,c/net.py:make,a/net.py:make"]
    a, c, again = own_network.paths(own_network.imported(twice, lambda: python))
    told = [shlex.split(path.read_text(encoding="utf-8"))[-3] for path in (a, c, again)]
    assert told == ["--name=a-net-make-1", "--name=c-net-make", "--name=a-net-make-2"]
    script(python, "")  # as sys.exit(0) in net.py
    with pytest.raises(Failure, match="it ended the program"):
        own_network.imported(words, lambda: python)
    assert not made.exists()


def test_paths_begin_with_a_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    got = own_network.imported(["--network=~/c.json,~/d.json"], Path)
    assert got == [f"--network={tmp_path}/c.json,{tmp_path}/d.json"]


def test_what_is_refused_is_trained_as_it_is(tmp_path, python, capfd):
    words = ["--network=bad.py:make", "--input=4", "--batch=5", "--family=Epoch", "--out=x.json"]
    got = own_network.imported([*words, "--mode=eager"], lambda: python)
    (spec,) = tmp_path.glob("bad-make-*.module.json")
    assert got == [*words[2:], "--mode=eager", f"--network={spec}"]
    assert "crossover networks: it is bad" in capfd.readouterr().err
    told = shlex.split(spec.read_text(encoding="utf-8"))
    source = str(Path("bad.py:make").absolute())
    assert told[:5] == ["-m", "crossover_bench.peers.pytorch.own", "make", source, "--input=4"]
    assert "--name bad-make -o" in " ".join(told) and told[-1] == "--reason=it is bad"
    *bench, peer = own_network.as_it_is(got, lambda: python)
    assert bench == ["--out=x.json", "--family=Peak", "--program=pytorch"]
    ours = [str(python), "-m", "crossover_bench.peers.pytorch.own"]
    ours += ["--batch=5", "--mode=eager", "--family=Epoch"]
    start, safe, path, *command = shlex.split(peer)
    assert command == [*ours, f"--network={spec}"]
    assert (start, safe) == ("--peer=env", "PYTHONSAFEPATH=1") and path.startswith("PYTHONPATH=")
    beside = own_network.as_it_is([f"--network={spec},b.json", *words[2:4]], lambda: python)
    other = f"--network={Path('b.json').absolute()}"
    assert beside[:-1] == ["--batch=5", "--family=Epoch", other]
    assert own_network.as_it_is(words, lambda: python) is words
    assert own_network.modules(got) == [spec] and own_network.modules(words) == []
    ends = own_network.imported(["--network=ends.py:make"], lambda: python)
    assert ends == [f"--network={path}" for path in tmp_path.glob("ends-make-*.module.json")]
    with pytest.raises(Failure, match=r"worse\.py:make can't be trained"):
        own_network.imported(["--network=worse.py:make"], lambda: python)


def test_what_bench_refuses_is_trained_as_it_is(tmp_path, python, capfd):
    got = own_network.imported(["--network=forecast.py:make"], lambda: python)
    (spec,) = tmp_path.glob("forecast-make-*.module.json")
    assert got == [f"--network={spec}"]
    told = shlex.split(spec.read_text(encoding="utf-8"))
    assert told[-1] == "--reason=--network: it takes no places"
    assert "./run: bench refuses it: --network: it takes no places" in capfd.readouterr().err
    with pytest.raises(Failure, match=r"forecast\.onnx was imported, and bench can't train it"):
        own_network.imported(["--network=forecast.onnx"], lambda: python)
    assert "./run: bench refuses it: --network: it takes no places" in capfd.readouterr().err


# A bench whose rows of these networks all fail, and which says that it measured others.
FAILING_BENCH = """
import json, sys
words = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
if "--plan" in sys.argv:
    sys.exit(0)
print("bench:", " ".join(sys.argv[1:]), file=sys.stderr)
paths = filter(None, words.get("network", "").split(","))
names = [path.rsplit("/", 1)[1].rsplit("-", 1)[0] for path in paths]
failed = {"outcome": "failed", "error_message": "the loss of step 1 differs"}
rows = [{"configuration": {"family": "Peak"}}]
for name in names:
    rows += [{"configuration": {"model": f"{name}x2"}, **(failed if "odd" in name else {})}]
rows += [{"configuration": {"model": "odd-make"}}] if "peer" in words else []
open(words["out"], "w").write(json.dumps({"rows": rows}))
sys.exit(any("outcome" in row for row in rows))
"""


@pytest.mark.parametrize("others", [False, True])
def test_what_has_no_verified_row_is_measured_as_it_is(
    others, tmp_path, python, monkeypatch, capfd
):
    monkeypatch.setattr(own_network.build, "BENCH", script(tmp_path / "bench", FAILING_BENCH))
    script(
        python,
        "import json, sys\nwords = sys.argv[1:]\nout = words[words.index('-o') + 1]\n"
        "named = out.rsplit('/', 1)[1].rsplit('-', 1)[0]\n"
        "json.dump({'name': named, 'words': words}, open(out, 'w'))\n",
    )
    concluded: list[tuple[str, int]] = []

    def conclude(path: Path, code: int, parsed: run.Arguments) -> int:
        del parsed
        concluded.append((path.name, code))
        return code

    monkeypatch.setattr(run, "conclude", conclude)
    monkeypatch.setattr(run, "REPORT", tmp_path / "report")
    monkeypatch.setattr(run.results, "has_new_gpu", lambda *_: False)
    networks = "odd.py:make,odd.onnx" + (",good.py:make" if others else "")
    words = [f"--network={networks}", "--input=4", f"--out={tmp_path / 'x.json'}", "--batch=5"]
    parsed = run.parse([*words, f"--with-peers={python}", "--mode=eager"])
    parsed.peers = ()
    assert run.run_bench(parsed) == 1  # rows have failed
    second = "x-as-it-is.json" if others else "x.json"
    assert concluded == [("x.json", 1)] * others + [(second, 0)]
    first = tmp_path / ("x.json" if others else "x.json.failed")
    assert "Peak" in first.read_text(encoding="utf-8"), "no row is lost"
    (spec,) = tmp_path.glob("odd-make-*.module.json")
    made = json.loads(spec.read_text(encoding="utf-8"))["words"]
    assert made[1] == "crossover_bench.peers.pytorch.own" and "--batch=5" in made
    assert made[-1] == "--reason=the loss of step 1 differs"
    printed = capfd.readouterr().err
    assert (
        "./run: odd.py:make was imported, and has no verified row (above); it is measured"
        in printed
    )
    assert (
        "./run: odd.onnx was imported, and has no verified row (above); the module that" in printed
    )
    last = printed.rpartition("bench: ")[2]
    assert "--program=pytorch" in last and str(spec) in last and "good" not in last


@pytest.mark.parametrize(
    "flag", ["--loss-function=module", "--loss-function=net.py:loss", "--data=d.py:all"]
)
def test_what_only_modules_have_is_not_imported(flag, tmp_path, python):
    got = own_network.imported(["--network=net.py:make", flag, "--rows=9"], lambda: python)
    (spec,) = tmp_path.glob("net-make-*.module.json")
    assert got == ["--rows=9", f"--network={spec}"]
    command = shlex.split(spec.read_text(encoding="utf-8"))
    assert flag in command and command[-1] == f"--reason={flag} is of modules as they are"


def test_a_run_goes_on_with_its_network_where_that_is(tmp_path, monkeypatch):
    monkeypatch.setattr(own_network, "FOLDER", tmp_path / "imported")
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run.json"
    with pytest.raises(Failure, match=r"measured net\.json, .* --network=FOLDER/net\.json"):
        own_network.located("--network=net.json", run)
    (tmp_path / "imported").mkdir()
    for path in (tmp_path / "imported" / "net.json", tmp_path / "b.json"):
        path.write_text("{}", encoding="utf-8")
    places = f"{tmp_path}/imported/net.json,{tmp_path}/b.json"
    assert own_network.located("--network=net.json,b.json", run) == f"--network={places}"


# --- networks/schema.json of the package, its form for editors, says of files what bench does


SCHEMA = PACKAGE / "networks" / "schema.json"
NETWORKS = json.loads((ROOT / "tests" / "fixtures" / "networks.json").read_text("utf-8"))


def told(*words: str) -> str:
    done = bench(*words, code=0)
    return done.stdout


@pytest.fixture(scope="module")
def is_network() -> Callable[[Any], bool]:
    check = fastjsonschema.compile(json.loads(SCHEMA.read_text("utf-8")))

    def of(network: Any) -> bool:
        try:
            check(network)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return of


def test_the_file_is_what_bench_prints():
    assert SCHEMA.read_text("utf-8") == told("--network-schema"), (
        "bench --network-schema > plots/crossover_bench/networks/schema.json"
    )


def test_every_network_of_bench_has_the_form(is_network):
    for name in told("--models").split():
        assert is_network(json.loads(told("--describe", f"--model={name}"))), name
    for name, network in NETWORKS.items():
        assert is_network(network), name


SMALL = {
    "name": "small",
    "input": {"shape": [3, 8, 8], "type": "f32"},
    "classes": 4,
    "loss": "cross_entropy",
    "layers": [
        {"type": "conv2d", "out_channels": 4, "kernel_size": [3, 1]},
        {"name": "flat", "type": "flatten", "inputs": ["layer 0"]},
        {"type": "linear", "out_features": 4},
    ],
    "training": {"optimizer": "adamw", "weight_decay": 0},
}


def changed(**members: Any) -> dict[str, Any]:
    return {key: value for key, value in {**SMALL, **members}.items() if value is not None}


BAD = {
    "no loss": changed(loss=None),
    "another loss": changed(loss="hinge"),
    "outputs of a cross-entropy": changed(classes=None, outputs=4),
    "neither classes nor outputs": changed(classes=None),
    "a name with a space": changed(name="my net"),
    "no layers": changed(layers=[]),
    "a type that no layer has": changed(layers=[{"type": "linea", "out_features": 4}]),
    "a size that is missing": changed(layers=[{"type": "linear"}]),
    "a member of another layer": changed(
        layers=[{"type": "linear", "out_features": 4, "kernel_size": 3}]
    ),
    "a size of zero": changed(layers=[{"type": "linear", "out_features": 0}]),
    "three sizes of a window": changed(
        layers=[{"type": "conv2d", "out_channels": 4, "kernel_size": [3, 3, 3]}]
    ),
    "another optimizer": changed(training={"optimizer": "lion"}),
}


@pytest.mark.parametrize("what", BAD)
def test_what_the_schema_refuses_bench_refuses(what, is_network, tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(SMALL), "utf-8")
    bad.write_text(json.dumps(BAD[what]), "utf-8")
    assert is_network(SMALL)
    told("--describe", f"--network={good}")
    assert not is_network(BAD[what])
    assert_refused(bench("--describe", f"--network={bad}"), str(bad))
