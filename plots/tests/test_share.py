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

from plots.features.share import command
from plots.features.share.analysis import without_private
from plots.tests.synthetic import as_file
from plots.tests.synthetic_probes import everything
from plots.tests.test_fitness import NAME, fit

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
    form = (Path(__file__).parents[2] / ".github/ISSUE_TEMPLATE" / asked["template"]).read_text()
    assert all(f"id: {key}" in form for key in asked if key not in ("template", "title"))


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
    monkeypatch.setattr(command, "_ROOT", tmp_path)
    assert command._repository() == "somebody/cross.over"


def test_without_a_repository_the_form_is_named(share, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(command, "_ROOT", tmp_path)
    assert 'open an issue with the form "Result file of a machine"' in share(fit())[0].out.replace(
        "\n", " "
    )
