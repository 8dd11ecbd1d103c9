# SPDX-License-Identifier: Apache-2.0
"""The numbers of bench/file/code_versions.json say in a result file what was timed: files are
compared where they are equal (docs/method/comparing.md). One is raised where its code changes.

python tests/test_code_versions.py              take the hashes of the sources as they are
python tests/test_code_versions.py --history    number the commits of files without numbers
"""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "plots")]

from crossover_bench.counts.reference import REFERENCE  # noqa: E402
from crossover_bench.files.loading import load_files  # noqa: E402
from crossover_bench.files.rows import File  # noqa: E402
from tools.sources import tracked_files  # noqa: E402

TABLE = ROOT / "bench" / "file" / "code_versions.json"
HISTORY = REFERENCE / "code_versions.json"
SOURCE = re.compile(r"(bench|include|src)/.*\.(cpp|h|cu|cuh)")
EARLIER = {  # where a part stood in commits from before the table
    "clock": ["bench/sampler.*", "bench/measure.h"],
    "training": [
        *("bench/*epoch.cpp", "bench/*minibatch.cpp"),
        *("bench/*training_row*.*", "bench/*training_program.cpp"),
    ],
    "probes": ["bench/*probe_row.*", "bench/*peak.cpp", "bench/*copy.cpp"],
    "cpu-probes": ["src/cpu/matrix_probe.*", "src/cpu/primitive.*", "src/cpu/product.*"],
}
TOKEN = re.compile(
    r"(?P<unread>//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*(?:include|pragma[ \t]+once)[^\n]*)"
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[\w.]+|\S""",
    re.DOTALL | re.MULTILINE,
)
Sources = Mapping[str, str]  # path from the root → text


@cache
def declarations(text: str) -> frozenset[str]:
    """What stands outside of all braces but those of namespaces, without comments and includes: so
    it is nothing new in another file, or beside other declarations."""
    those: set[str] = set()
    tokens: list[str] = []
    braces: list[bool] = []  # that are open: whether they are a namespace's
    for match in TOKEN.finditer(text):
        token = match[0]
        if match["unread"]:
            continue
        if token == "{":
            braces.append(tokens[:1] == ["namespace"])
            if braces[-1]:
                tokens.clear()
                continue
        elif token == "}" and braces and braces.pop():
            continue
        tokens.append(token)
        if token in ";}" and all(braces):
            those.add(" ".join(tokens))
            tokens.clear()
    return frozenset({*those, " ".join(tokens)})


def is_named(path: str, globs: Iterable[str]) -> bool:
    """By one of `globs`, and by none behind "!"; * also stands for folders."""
    wanted = [glob for glob in globs if not glob.startswith("!")]
    return any(fnmatchcase(path, glob) for glob in wanted) and not any(
        fnmatchcase(path, glob[1:]) for glob in globs if glob.startswith("!")
    )


def hash_of(sources: Sources, parts: Iterable[list[str]]) -> str:
    """Of all declarations of `parts`, in any order."""
    those: set[str] = set()
    for globs in parts:
        those.update(*(declarations(sources[path]) for path in sources if is_named(path, globs)))
    return hashlib.sha256("\n".join(sorted(those)).encode()).hexdigest()[:16]


def table() -> dict:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def hashes(sources: Sources, earlier: Mapping[str, list[str]] = {}) -> dict[str, str]:
    """Family/device → the hash of what its rows run through."""
    parts = {name: [*globs, *earlier.get(name, ())] for name, globs in table()["parts"].items()}
    return {
        key: hash_of(sources, [parts[name] for name in version["parts"].split()])
        for key, version in table()["versions"].items()
    }


def sources_here() -> Sources:
    paths = {path.relative_to(ROOT).as_posix(): path for path in tracked_files()}
    return {
        name: path.read_text(encoding="utf-8")
        for name, path in paths.items()
        if SOURCE.fullmatch(name) and path.exists()
    }


def git(*words: str, given: str = "") -> bytes:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, input=given.encode(), capture_output=True, check=True).stdout


def sources_at(commit: str) -> Sources:
    listed = git("ls-tree", "-r", "--name-only", commit).decode().splitlines()
    names = [name for name in listed if SOURCE.fullmatch(name)]
    data = git("cat-file", "--batch", given="".join(f"{commit}:{name}\n" for name in names))
    texts = {}
    for name in names:
        head, _, rest = data.partition(b"\n")
        size = int(head.split()[-1])
        texts[name], data = rest[:size].decode(), rest[size + 1 :]
    return texts


def committed() -> Iterable[File]:
    ours = tracked_files()  # what else lies there is its user's
    return [file for file in load_files([ROOT / "results"])[0] if file.path in ours]


def keys(file: File) -> set[str]:
    return {f"{row.family}/{row.device}" for row in file.own_rows}


def history() -> dict[str, dict[str, int]]:
    """Commit → family/device → number, of files that do not say theirs: from 1 on, the same number
    where the hash is the same."""
    known: dict[str, set[str]] = {}
    for file in committed():
        if '"code_versions"' not in file.path.read_text(encoding="utf-8"):
            known.setdefault(file.software.commit, set()).update(keys(file))
    seen: dict[str, dict[str, int]] = {key: {} for key in table()["versions"]}
    numbers = {}
    for commit in git("rev-list", "--reverse", "HEAD").decode().split():
        if commit in known:
            numbers[commit] = {
                key: seen[key].setdefault(hashed, len(seen[key]) + 1)
                for key, hashed in hashes(sources_at(commit), EARLIER).items()
                if key in known[commit]
            }
    return numbers


# ---- the tests


def test_a_number_is_raised_where_the_code_that_is_timed_changes():
    now = hashes(sources_here())
    changed = [key for key, of in table()["versions"].items() if of["hash"] != now[key]]
    assert not changed, (
        f"The code that rows of {', '.join(changed)} run through has changed: raise their numbers "
        f"in {TABLE.relative_to(ROOT)}, unless ./run --compare-with=COMMIT shows equal times; then "
        "run .venv/bin/python tests/test_code_versions.py"
    )


def test_each_glob_names_a_source():
    for globs in table()["parts"].values():
        for glob in globs:
            assert any(is_named(name, [glob.removeprefix("!")]) for name in sources_here()), glob


def test_committed_files_have_numbers_and_none_is_above_the_present():
    for file in committed():
        for key in keys(file):
            assert file.code_versions[key] <= table()["versions"][key]["number"], (file.path, key)


HERE = {
    "src/a.cpp": '#include "a.h"\nnamespace a {\nint one() { return 1; }  // 1\n'
    "int two() { f(); g(); }\n}\n",
    "src/b.cpp": "int three = 3;\n",
}
ALIKE = {
    "a file that moved": {"src/c/d.cpp": HERE["src/a.cpp"], "src/b.cpp": HERE["src/b.cpp"]},
    "another file": {
        "src/a.cpp": "/* two */ int\n two()\n{ f(); g(); }\nint three = 3;",
        "src/z.h": "#pragma once\nnamespace { int one() { return 1; } }",
    },
}
UNLIKE = {
    "other numbers": {**HERE, "src/b.cpp": "int three = 4;"},
    "another order": {**HERE, "src/a.cpp": HERE["src/a.cpp"].replace("f(); g();", "g(); f();")},
    "a string": {**HERE, "src/b.cpp": 'int three = 3; auto s = "//";'},
    "one that is gone": {"src/a.cpp": HERE["src/a.cpp"]},
}


@pytest.mark.parametrize("name", [*ALIKE, *UNLIKE])
def test_the_hash_is_of_what_runs(name):
    same = hash_of({**ALIKE, **UNLIKE}[name], [["src/*"]]) == hash_of(HERE, [["src/*"]])
    assert same == (name in ALIKE)


if __name__ == "__main__":
    if sys.argv[1:] == ["--history"]:
        lines = (f" {json.dumps(commit)}: {json.dumps(of)}" for commit, of in history().items())
        HISTORY.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    else:
        text = TABLE.read_text(encoding="utf-8")
        for key, hashed in hashes(sources_here()).items():
            line = rf'("{key}": .*"hash": ")\w*'
            text = re.sub(line, rf"\g<1>{hashed}", text)
        TABLE.write_text(text, "utf-8")
