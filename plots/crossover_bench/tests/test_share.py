# SPDX-License-Identifier: Apache-2.0
"""`share`: nothing private is in the copy wherever it stood in the file, all else is as it was, and
the link names the file's place."""

import json
import socket
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from crossover_bench.answers.share import command
from crossover_bench.answers.share.analysis import without_private
from crossover_bench.tests.synthetic import as_file
from crossover_bench.tests.synthetic_probes import everything
from crossover_bench.tests.test_fitness import NAME, fit

PRIVATE = ("alice", "secret", "10.1.2.3", "c0ffee", "/opt", "/data/", "C:")
UUID = "01234567-89ab-cdef-0123-456789c0ffee"
ANYWHERE = (
    f"/home/alice/a.so:/opt/secret/b.so -I/data/secret/include C:\\Users\\alice\\c ~/secret/d "
    f"alice@secret.example GPU-{UUID}"
)
WITHOUT_OTHERS = ("", "machine", "machine/cpu", "machine/gpu", "software", "configuration")


def at(document: dict[str, Any], place: str) -> dict[str, Any]:
    """What `document` has at a place in context.crossover."""
    holder = document["context"]["crossover"]
    for key in filter(None, place.split("/")):
        holder = holder[key]
    return holder


def private() -> dict[str, Any]:
    """A fit file with what is private in fields that no field's definition limits, and in those
    that are none."""
    document = as_file(fit())
    at(document, "machine")["gpu"] = {"name": "Synthetic", "power_limit_watts": 300, "ecc": False}
    for place in WITHOUT_OTHERS:
        at(document, place)["unknown"] = {"of": "alice"}
    document["context"]["host_name"] = "secret-host"
    at(document, "machine").update(
        gpu_reason="cannot open /home/alice/cuda/libcuda.so.1 on secret-host",
        os=f"Linux of alice {ANYWHERE}",
    )
    at(document, "software")["flags"] = "-O3 -I/home/alice/include -fmap=/data/src=. -L/opt/l"
    run = {
        "command": ["/opt/bench", "--out=~/a.json", "--benchmark_context=where=secret room"],
        "environment": {
            "OMP_NUM_THREADS": "2",
            "LD_PRELOAD": "/home/alice/libjemalloc.so:/opt/secret/libnuma.so",
            "NCCL_COMM_ID": "10.1.2.3:8000",
            "NCCL_HOSTID": "secret room",
        },
    }
    at(document, "configuration").update(run)
    failed = next(row for row in document["rows"] if "outcome" in row)
    failed |= {"error_message": f"{ANYWHERE} on secret-host", "warnings": ["alice is logged in"]}
    return document


@pytest.fixture
def share(write, tmp_path, monkeypatch, shell):
    """Runs `share` on one document; returns what was printed and the copy's path."""
    monkeypatch.setattr(socket, "gethostname", lambda: "secret-host.example")
    monkeypatch.setattr(command, "_repository", lambda: "somebody/crossover")
    monkeypatch.setenv("LOGNAME", "alice")

    def run(document: dict[str, Any], name: str = "file.json", code: int = 0) -> tuple[Any, Path]:
        folder = tmp_path / "copies"
        printed = shell("share", write(document, name), "-o", folder, code=code)
        return printed, next(folder.rglob("*.json"), folder) if code == 0 else folder

    return run


def test_nothing_private_is_left(share):
    printed, copy = share(private())
    text = copy.read_text(encoding="utf-8")
    assert [word for word in PRIVATE if word in text] == [] and "unknown" not in text
    assert copy.parts[-2:] == Path(NAME).parts[1:]
    machine, configuration = (at(json.loads(text), place) for place in ("machine", "configuration"))
    assert machine["gpu"] == {"name": "Synthetic", "power_limit_watts": 300, "ecc": False}
    assert machine["gpu_reason"] == "cannot open libcuda.so.1 on …"
    assert at(json.loads(text), "software")["flags"] == "-O3 -Iinclude -fmap=src=. -Ll"
    assert configuration["command"] == ["bench", "--out=a.json", "--benchmark_context=…"]
    assert configuration["environment"]["LD_PRELOAD"] == "libjemalloc.so:libnuma.so"
    assert configuration["environment"]["OMP_NUM_THREADS"] == "2"
    told = printed.out
    shown = told[told.index("What it says") : told.index("Left out")]
    assert "a-cpu-2c" in shown and not any(word in shown for word in PRIVATE)
    assert "  context.host_name\n" in told and "Nothing was sent." in told


def test_nothing_private_is_left_wherever_it_stood():
    def with_private(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: with_private(each) for key, each in value.items()}
        if isinstance(value, list):
            return [with_private(each) for each in value]
        return f"{value} {ANYWHERE}" if isinstance(value, str) else value

    text = json.dumps(without_private(with_private(as_file(everything()))).document)
    assert "a.so" in text and [word for word in PRIVATE if word in text] == []


# What stands in a file, and the words of it that are private. The rest tells what happened.
SECRETS = (
    ("cannot open /home/bob smith/net.py: gone", "bob", "smith"),
    ("cannot list '/home/bob smith'", "bob", "smith"),
    ("no /mnt/c/Users/Max Mustermann/data/x.csv", "Max", "Mustermann"),
    ("no C:\\Users\\Max Mustermann\\x.csv here", "Max", "Mustermann"),
    ("C:/Users/Max Mustermann is full", "Max", "Mustermann"),
    ("no /data/My Secret Project/x.csv", "My", "Secret", "Project"),
    ("no /export/home/carol", "carol"),
    ("no /data/users/carol/", "carol"),
    ("no /scratch/carol", "carol"),
    ("-isystem/home/carol/include", "carol"),
    ("no ~carol, no ~carol/", "carol"),
    ("no ../../carol/x.csv", "carol"),
    ("no ./carol/x.csv", "carol"),
    ("no \\\\files\\carol\\x.csv", "files", "carol"),
    ("on MY-HOST.Example", "MY-HOST"),
    ("Alice Ann is logged in", "Alice", "Ann"),
    ("mail erika@example.org, please", "erika", "example"),
    ("read https://erika:pass@git.example.org/x", "erika", "pass", "git"),
    ("from 10.1.2.3.", "10.1.2.3"),
    ("[::ffff:10.1.2.3]:80 and 192.168.0.17:8080", "10.1.2.3", "192.168", "8080"),
    ("no answer of fe80::1ff:fe23:4567:890a%eth0", "fe80", "890a", "eth0"),
    ("at 2001:0db8:0000:0000:0000:ff00:0042:8329", "2001", "8329"),
    ("eth0 00:1B:44:11:3a:b7 down, 00-1b-44-11-3a-b7", "44", "3a"),
    ("port fe80:0000:0000:1234 of 0123.4567.89ab", "1234", "4567"),
    ("GPU-01234567 fell off, MIG-GPU-89abcdef-0123", "01234567", "89abcdef", "0123"),
    ("4c4c4544-0042-3510-8052-b4c04f4d4d32 is the board", "4c4c4544", "4d4d32"),
    ("serial number: 1320123456; Serial=PF2ABC12; S/N 5CD0123ABC", "1320", "PF2", "5CD"),
    ("machine 0123456789abcdef0123456789abcdef", "456789"),
    ("HF_TOKEN=abcdefgh1 password: hunter22 'api_key': 'k3yk3y'", "abcdefgh1", "hunter", "k3y"),
    ("Bearer abc.def-ghi, ghp_0123456789abcdef, eyJhbGciOiJIUzI1N.eyJzdWIi", "abc", "def", "eyJ"),
)
ROW, ENTRY, HERE = "rows/0", "benchmarks/0", "context/crossover"
# Where it stands: in the text there, in a list, in a new field (*) or in the name of one (+).
PLACES = (
    *("context/date", "context/executable", "context/*", "context/caches/0/*"),
    *(f"{HERE}/*", f"{HERE}/machine/cpu/model", f"{HERE}/machine/*", f"{HERE}/machine/gpu/name"),
    *(f"{HERE}/machine/gpu/*", f"{HERE}/machine/os", f"{HERE}/machine/gpu_reason"),
    *(f"{HERE}/software/flags", f"{HERE}/software/libraries/*", f"{HERE}/software/libraries/+"),
    *(f"{HERE}/configuration/command/0", f"{HERE}/configuration/data"),
    *(f"{HERE}/configuration/environment/*", f"{HERE}/configuration/environment/+"),
    *(f"{HERE}/peers/pytorch/version", f"{HERE}/peers/pytorch/libraries/+"),
    *(f"{ROW}/error_message", f"{ROW}/warnings/0", f"{ROW}/label", f"{ROW}/*", f"{ROW}/+"),
    f"{ENTRY}/*",
)


def minimal() -> dict[str, Any]:
    """Objects for PLACES."""
    machine = {"cpu": {"model": ""}, "gpu": {"name": ""}, "os": "", "gpu_reason": ""}
    configuration = {"command": [""], "data": "", "environment": {}}
    crossover = {
        "machine": machine,
        "software": {"flags": "", "libraries": {}},
        "configuration": configuration,
        "peers": {"pytorch": {"version": "", "libraries": {}}},
    }
    context = {"date": "", "executable": "", "caches": [{}], "crossover": crossover}
    row = {"name": "a", "error_message": "", "warnings": [""], "label": ""}
    return {"context": context, "rows": [row], "benchmarks": [{"name": "a"}]}


@pytest.mark.parametrize(("secret", "words"), [(text, words) for text, *words in SECRETS])
def test_no_secret_stays_wherever_it_stands(secret, words):
    assert (len(SECRETS), len(PLACES)) == (30, 26)
    stayed = []
    for place in PLACES:
        document = minimal()
        *way, last = place.split("/")
        holder: Any = document
        for key in way:
            holder = holder[int(key) if isinstance(holder, list) else key]
        if isinstance(holder, list):
            holder[int(last)] = secret
        else:
            holder[secret if last == "+" else last.replace("*", "new")] = secret
        names = {"my-host", "my-host.example", "Alice Ann"}
        text = json.dumps(without_private(document, names).document)
        stayed += [(place, text) for word in words if word in text]
    assert stayed == []


def test_what_is_not_private_stays():
    told = [
        "cuDNN 9.19.0 in libcudnn.so.9: CUDNN_STATUS_NOT_SUPPORTED at layer 3/4 (ratio 1:2)",
        "std::bad_alloc in c10::Error; for each token: a row; run bench --mlp=4,8,2 and/or more",
        "the loss of step 12 is off by 5.7e-01 at 10:20:30; serial execution is 3 times as slow",
    ]
    row = {"name": "a", "warnings": told, "counted": 3}
    libraries = {"libraries": {"cublas": "13.1.0.3", "onednn": "v3.2"}}
    document = {
        "context": {"crossover": {"software": libraries}},
        "rows": [row],
        "benchmarks": [{"name": "a", "counted": 1.5, "cpu_serial": 12}],
    }
    shared = without_private(document)
    assert shared.changed == [] and shared.removed == ["benchmarks[0].cpu_serial"]
    assert shared.document["rows"] == [row]
    assert shared.document["context"] == document["context"]


@pytest.mark.parametrize(
    "letters", ["a", "a.", "/a", "/a b ", "a:", "::", "1.", "..\\", "~a", "eyJ"]
)
def test_no_rule_goes_again_and_again_over_a_long_text(letters):
    """One that did would be here for minutes."""
    text = letters * (400_000 // len(letters))
    document = {"context": {"date": text}}
    assert without_private(document).document["context"].keys() == {"date"}


@pytest.mark.parametrize(
    "document", [as_file(fit()), as_file(everything())], ids=["sweep", "everything"]
)
def test_what_bench_writes_stays_to_the_last_byte(document):
    shared = without_private(document, {"epoch", "host", "device"})
    assert shared.document == document
    assert (shared.removed, shared.changed) == ([], [])


def test_a_file_without_anything_private_is_copied_and_its_link_says_where_it_belongs(
    share, tmp_path
):
    printed, copy = share(fit(), "2020-01-01-0123456-2.json")
    assert copy.read_bytes() == (tmp_path / "2020-01-01-0123456-2.json").read_bytes()
    link = urlsplit(printed.out.splitlines()[-1])
    asked = {key: value for key, (value,) in parse_qs(link.query).items()}
    assert link.netloc + link.path == "github.com/somebody/crossover/issues/new"
    place = NAME.replace("456.", "456-2.")
    assert asked["place"] == place and place in printed.out
    form = (Path(__file__).parents[3] / ".github/ISSUE_TEMPLATE" / asked["template"]).read_text()
    assert all(f"id: {key}" in form for key in asked if key not in ("template", "title"))


@pytest.mark.parametrize(("start", "compiler"), [("\ufeff", "GCC"), ("", "\ud800")])
def test_a_byte_order_mark_is_read_and_half_a_character_refused(
    start, compiler, write, shell, tmp_path
):
    document = fit()
    document["context"]["crossover"]["software"]["compiler"] = compiler
    path = write(document)
    path.write_text(start + path.read_text("utf-8"), "utf-8")
    printed = shell("share", path, "-o", tmp_path / "copies", code=0 if start else 2)
    assert "wrote " in printed.out if start else "half of a character" in printed.err


def test_an_unfit_file_is_refused_and_nothing_written(share):
    document = fit()
    document["context"]["crossover"]["configuration"]["sweep"] = "quick"
    printed, folder = share(document, code=2)
    assert "not fit to be committed: its sweep is quick" in printed.err
    assert printed.out == "" and not folder.exists()


@pytest.mark.parametrize(
    "remote",
    [
        "git@github.com:somebody/cross.over.git",
        "https://somebody:token@github.com/somebody/cross.over",
        "ssh://git@github.com/somebody/cross.over.git/",
    ],
)
def test_the_form_is_that_of_the_checkouts_repository(remote, tmp_path, monkeypatch):
    for words in (["init", "-q"], ["remote", "add", "origin", remote]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    assert command._repository() == "somebody/cross.over"


def test_without_a_repository_the_form_is_named(share, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(command, "ROOT", tmp_path)
    assert 'open an issue with the form "Result file of a machine"' in share(fit())[0].out.replace(
        "\n", " "
    )
