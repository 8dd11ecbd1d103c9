# SPDX-License-Identifier: Apache-2.0
"""The command that imports, where torch is installed: a user's file as Python runs it; usage."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed here")

from crossover_bench.networks.__main__ import main
from crossover_bench.networks.tests.proved import ZOO

MLP = "from torch import nn\ndef make():\n    return nn.Sequential(nn.Linear(20, 3), nn.ReLU())\n"
PARSES = "import argparse\np = argparse.ArgumentParser()\np.add_argument({})\np.parse_args()\n"


def of_file(capsys: Any, path: Path, text: str, *flags: str) -> tuple[int, str, str]:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + MLP, "utf-8")
    code = main(["import", f"{path}:make", "--input=20", *flags])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (PARSES.format("'data'"), "train.py can't be imported: it ends the program (train.py:4)"),
        ("import sys\nsys.exit(0)\n", "it ends the program (train.py:2)"),
        ("width = int(input('how wide? '))\n", "it asks for input (train.py:1)"),
    ],
)
def test_a_script_without_a_guard_ends_in_one_sentence(capsys, tmp_path, text, sentence):
    code, out, err = of_file(capsys, tmp_path / "train.py", text)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert sentence in err and 'belongs under if __name__ == "__main__":' in err


def test_a_file_is_imported_as_python_runs_it(capsys, tmp_path, monkeypatch):
    """Options have their defaults, a new folder is left again, the output is where it was said."""
    monkeypatch.chdir(tmp_path)
    text = PARSES.format("'--width', default=3") + "import os\nos.chdir('/')\nprint('epoch 1')\n"
    code, out, err = of_file(capsys, tmp_path / "train.py", text, "-o", "net.json")
    assert (code, out) == (0, "") and "epoch 1" not in err
    assert json.loads((tmp_path / "net.json").read_text("utf-8"))["name"] == "train-make"


def test_the_users_own_modules_are_found_first(capsys, tmp_path):
    for name in ("networks", "peers"):
        (tmp_path / f"{name}.py").write_text(f"mine = {name!r}\n", "utf-8")
    text = "import networks, peers\nassert [mine.mine for mine in (networks, peers)]\n"
    assert of_file(capsys, tmp_path / "train.py", text)[0] == 0
    assert of_file(capsys, tmp_path / "networks.py", "")[0] == 0


def test_names_and_letters_that_others_lack(capsys, tmp_path, monkeypatch):
    path = tmp_path / "Übung, 1" / "größe neu.py"
    code, out, _ = of_file(capsys, path, "")
    assert code == 0 and json.loads(out)["name"] == "grosse_neu-make"
    layers = {"layers": [{"name": "größe", "type": "relu"}]}
    described = {"name": "x", "input": {"shape": [3], "type": "f32"}, **layers}
    (tmp_path / "net.json").write_text(json.dumps(described), "utf-8")
    for words in (["show", str(tmp_path / "net.json")], ["import", f"{ZOO}:foreign", "--input=4"]):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(words) == 0
        stream.flush()
        text = stream.buffer.getvalue().decode("ascii")
        assert "gr??e" in text or json.loads(text)["layers"][0]["name"] == "größe"


def test_files_that_are_not_there_or_fail(capsys, tmp_path):
    missing = tmp_path / "absent.py"
    assert main(["import", f"{missing}:make", "--input=3"]) == 1
    assert capsys.readouterr().err.endswith(f"{missing}: there is no such file\n")
    broken = tmp_path / "broken.py"
    broken.write_text("import no_such_package\n", "utf-8")
    assert main(["import", f"{broken}:make", "--input=3"]) == 1
    printed = capsys.readouterr().err
    assert "can't be imported: ModuleNotFoundError: No module named" in printed
    assert printed.endswith(f"is to be installed beside PyTorch, for {sys.executable}\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["net.txt"], "'net.txt' is neither FILE.py:CALLABLE nor a file .onnx"),
        ([f"{ZOO}:mlp"], "--input is missing, the shape of one sample"),
        ([f"{ZOO}:mlp", "--input=3x0"], "'3x0' is no shape such as 784 or 3x32x32"),
        (
            [f"{ZOO}:both", "--input=scalar", "--input-type=tokens:9", "--input=4"],
            "--input is given 2 times and --input-type 1 times; say it for each input",
        ),
        (
            [f"{ZOO}:mlp", "--input=3", "--input-type=words"],
            "'words' is neither numbers nor tokens:N",
        ),
        ([f"{ZOO}:mlp", "--input=3", "--loss-function=l1"], "invalid choice: 'l1'"),
        (
            [f"{ZOO}:mlp", "--input=3", "--output=all"],
            "--output=all makes a row of numbers; --loss-function=mse or bce trains it",
        ),
        (["x.onnx", "--output=all"], "--output=all is of a module; of a .onnx one output is"),
        ([f"{ZOO}:mlp", "--input=3", "--output=x.json"], "counts no output from 0; a file is -o"),
        ([f"{ZOO}:mlp", "--input=3", "--name=größe"], "'größe' is no name of letters, digits,"),
    ],
)
def test_wrong_usage_is_a_sentence(capsys, words, sentence):
    with pytest.raises(SystemExit) as ended:
        main(["import", *words])
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert sentence in err and err.count("\n") == 1
