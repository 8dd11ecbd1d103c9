# SPDX-License-Identifier: Apache-2.0
"""What several tests need."""

import os
import shutil
import subprocess
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.predict import analysis as predict
from crossover_bench.answers.predict import answer as predicted
from crossover_bench.answers.predict import fit as fitting
from crossover_bench.answers.predict.data import Observation, observations
from crossover_bench.answers.report import report
from crossover_bench.answers.why.section import of_times
from crossover_bench.curves.crossover import Comparison
from crossover_bench.files import loading
from crossover_bench.files.rows import File
from crossover_bench.shell.cli import main
from crossover_bench.show.charts import style
from crossover_bench.show.page.section import Context
from crossover_bench.show.page.text import tables_of
from crossover_bench.show.tables.table import Table
from crossover_bench.study.study import Study, studies_of
from crossover_bench.tests import synthetic, synthetic_machines, synthetic_probes, synthetic_sweep

# A fit takes seconds, and most tests ask for the same: that to what was published.
_fit = fitting.fit
_fits: dict[Hashable, fitting.Fit] = {}


def fit_once(observed: Sequence[Observation]) -> fitting.Fit:
    key = tuple(map(_key, observed))
    if key not in _fits:
        _fits[key] = _fit(observed)
    return _fits[key]


def _key(observation: Observation) -> Hashable:
    """Its values, those in arrays too: a demand is equal to nothing but itself."""
    demand = [
        np.asarray(getattr(observation.demand, each.name)) for each in fields(observation.demand)
    ]
    others = [
        getattr(observation, each.name) for each in fields(observation) if each.name != "demand"
    ]
    return (*others, *((array.shape, array.tobytes()) for array in demand))


for _module in (fitting, predicted):  # a plain assignment is no function of that type to mypy
    vars(_module)["fit"] = fit_once


_DRAWING = {name: getattr(style, name) for name in ("place", "_saved")}


@dataclass(frozen=True)
class Report:
    """The report on `file`: what build_report() gave, and where it was written."""

    file: File
    contents: dict[str, bytes]
    folder: Path


@pytest.fixture(scope="session")
def report_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    """Reports that take long to draw, each drawn once: of every family with a "gpu", of a "cpu"
    alone, and with "hostile" names, as bad as can be."""
    # What one of pytest's processes has drawn, the others read.
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    @cache
    def built(kind: str) -> Report:
        folder = shared / f"report-{kind}"
        if not folder.exists():
            drawn = draw(kind, tmp_path_factory.mktemp(kind))
            with suppress(OSError):  # another was as fast
                drawn.rename(folder)
        file = loading.load_file(folder / "everything.json")
        names = (folder / "names").read_text().splitlines()
        contents = {name: (folder / "out" / name).read_bytes() for name in names}
        return Report(file, contents, folder / "out")

    def draw(kind: str, folder: Path) -> Path:
        document = synthetic_probes.everything(gpu=kind != "cpu")
        if kind == "hostile":
            document = synthetic.sweep()
            crossover = document["context"]["crossover"]
            crossover["machine"]["id"] = crossover["machine"]["cpu"]["model"] = "W" * 10_000
            crossover["software"]["flags"] = "<img src=x onerror=alert(1)>" * 20
        file = loading.load_file(synthetic.write(folder / "everything.json", document))
        with pytest.MonkeyPatch.context() as patch:
            for name, function in _DRAWING.items():  # the first to ask may be a test with `undrawn`
                patch.setattr(style, name, function)
            contents = report.build_report([file])
        report.write_report(contents, folder / "out")
        (folder / "names").write_text("\n".join(contents))  # in their order
        return folder

    return built


def undraw(patch: pytest.MonkeyPatch) -> None:
    """Pictures stay empty from now on."""
    empty = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
    patch.setattr(style, "place", lambda figure: None)
    patch.setattr(style, "_saved", lambda figure, kind, metadata: empty)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures stay empty, for tests of what stands beside them."""
    undraw(monkeypatch)


@pytest.fixture(scope="session")
def fitted() -> fitting.Fit:
    """The fit to what was published."""
    return fit_once(observations())


@pytest.fixture
def simple(write: Callable[..., Path]) -> Path:
    """A file with one crossover, at 50,000 parameters."""
    entries = synthetic_sweep.known()
    return write(synthetic.document(entries, gpu="synthetic GPU"), "simple.json")


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> File:
    """The file with three thread counts, five GPU modes, two precisions, three batch sizes."""
    path = tmp_path_factory.mktemp("wide") / "w.json"
    return loading.load_file(synthetic.write(path, synthetic_sweep.wide_sweep()))


@pytest.fixture(scope="session")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of five machines' files, two without a GPU."""
    folder = tmp_path_factory.mktemp("five")
    synthetic_machines.write_all(folder)
    return folder


@pytest.fixture(scope="session")
def five_files(five: Path) -> list[File]:
    return loading.load_files([five])[0]


@pytest.fixture(scope="session")
def five_studies(five_files: list[File]) -> dict[Path, Study]:
    return studies_of(five_files)


@pytest.fixture
def small() -> dict[str, Any]:
    """A valid file with one row of three repetitions, whose median is 20 ms."""
    entries = synthetic.samples(synthetic.cpu_configuration("disc-3", 2), [0.030, 0.010, 0.020])
    return synthetic.document(entries)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    return lambda content, name="file.json": synthetic.write(tmp_path / name, content)


@pytest.fixture
def read(write: Callable[..., Path]) -> Callable[..., File]:
    """Writes a document, and returns the file that is read from it."""
    return lambda *args, **options: loading.load_file(write(*args, **options))


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs a command line, which ends with `code` (None: with any), and returns its `out` and
    `err`."""

    def run(*arguments: object, code: int | None = 0) -> Any:
        ended = main([*map(str, arguments)])
        assert code is None or ended == code
        return capsys.readouterr()

    return run


@pytest.fixture(autouse=True)
def _line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def hide_bench(patch: pytest.MonkeyPatch) -> None:
    """What is not kept is not counted: these tests need no bench."""
    patch.setattr(predict, "BENCH_PATH", Path("none"))


@pytest.fixture(autouse=True)
def _without_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_bench(monkeypatch)


# A headless browser, for the tests of pages.
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
with_browser = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium here; apt-get install chromium"
    ),
    pytest.mark.slow,
]


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Opens `page`; prints its document as the scripts leave it, and what they complain of."""
    assert CHROMIUM
    finished = subprocess.run(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            *options,
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished


def why_tables(file: File, compared: Sequence[Comparison] = ()) -> list[Table]:
    """What programs read of `why` on `file`, whose comparisons() are `compared`."""
    study = Study(file, compared=compared)
    section = of_times([file], Context(studies={file.path: study}, draws=False))
    return tables_of([section] if section else [])
