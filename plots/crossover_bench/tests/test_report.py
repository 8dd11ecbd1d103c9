# SPDX-License-Identifier: Apache-2.0
"""The report: what its page and pictures hold, whatever the files hold."""

import csv
import io
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from crossover_bench.answers.record import section as record
from crossover_bench.answers.report import report
from crossover_bench.answers.report.sections import SECTIONS
from crossover_bench.answers.report.summary import since, summary
from crossover_bench.answers.training.chart import best_of_devices, lines_of
from crossover_bench.answers.training.section import tables
from crossover_bench.curves.network import epoch_rows
from crossover_bench.curves.series import series_labels
from crossover_bench.files import loading
from crossover_bench.files.file_order import newest_per_machine
from crossover_bench.show.charts.lines import MOST_LINES
from crossover_bench.show.page.section import Context
from crossover_bench.show.tables.formats import as_text
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic, synthetic_probes, synthetic_sweep
from crossover_bench.words import units

HOSTILE = (
    'x|y `z` <script>alert(1)</script>\n# title $\\frac$ [a](b) ../../up \u202e "q" '
    "' onload=alert(2) <!-- ]]> &lt;b&gt; {{ 7*7 }} {% raw %} javascript:alert(3)"
)
HEADINGS = {"h1", "h2", "h3", "h4"}
VOID = {"meta", "br", "link", "img", "input", "hr"}
SVG_ELEMENTS = {"svg", "g", "path", "defs", "use", "text", "tspan", "clippath", "rect", "title"}
SVG_ELEMENTS |= {"desc"}


class Page(HTMLParser):
    """The elements of a page in order, and its text outside of style, script and pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "td":
            self._end_cell()
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag == "tr":
            self._end_cell()
        assert self._open.pop() == tag

    def _end_cell(self):
        """Cells have no end tags."""
        if self._open[-1] == "td":
            self._open.pop()

    def handle_data(self, data):
        if not {"style", "script", "svg"} & set(self._open):
            self.text += data
        elif "svg" in self._open:
            self.text += f"\n{data}"

    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Elements and the names of their attributes, but for what is within pictures."""
        plain = [
            (tag, tuple(sorted(attributes)))
            for tag, attributes in self.elements
            if "id" not in attributes or not attributes["id"].startswith("s")
        ]
        return [(tag, names) for tag, names in plain if tag not in SVG_ELEMENTS]


def build(*files, **options) -> dict[str, bytes]:
    return report.build_report(list(files), **options)


def page_of(contents: dict[str, bytes]) -> Page:
    return Page(contents[report.PAGE].decode())


def shown(text: str) -> str:
    """`text` as the page has it: a number and its unit are kept together."""
    return text.replace("\u00a0", " ")


@pytest.fixture
def sweep(read):
    """The file of a whole synthetic sweep with CPU and GPU."""
    return read(synthetic.sweep())


@pytest.fixture
def everything(report_of):
    """A file with rows of every family and all GPU modes."""
    return report_of("gpu").file


@pytest.fixture
def contents(report_of):
    """Its report."""
    return report_of("gpu").contents


@pytest.mark.slow
def test_charts_are_files_too(contents):
    stems = [name.removesuffix(".svg") for name in contents if name.endswith(".svg")]
    charts = {stem.removeprefix("synthetic-machine.").split("-")[0] for stem in stems}
    assert charts == {"strip", "crossover", "epochs", "copies", "products", "layers"}
    assert list(contents) == [
        "index.html",
        *(f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")),
    ]
    for stem in stems:
        picture = imread(io.BytesIO(contents[f"{stem}.png"]))
        assert picture.shape[0] > (300 if "strip" in stem else 600) and picture.shape[1] > 1000
        ink = np.mean(picture[..., :3].min(axis=2) < 0.9)
        assert 0.005 < ink < 0.5
        svg = ElementTree.fromstring(contents[f"{stem}.svg"])
        assert svg.tag.endswith("svg")
        assert not [element for element in svg.iter() if element.tag.endswith("script")]
        assert b"<dc:date>" not in contents[f"{stem}.svg"]


@pytest.mark.slow
def test_the_same_files_give_the_same_bytes(everything, contents):
    assert build(everything) == contents


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_its_headings_are_in_order(contents):
    page = page_of(contents)
    policy = next(
        attributes["content"]
        for tag, attributes in page.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy and "script-src 'sha256-" in policy
    for tag, attributes in page.elements:
        assert tag not in {"img", "link", "iframe", "object", "embed", "base", "form"}
        assert "src" not in attributes
        target = attributes.get("href")
        assert target is None or target.startswith(("#", "https://")) or target in contents
        if target and target.startswith("#"):
            assert target[1:] in ids(page)
    levels = [int(tag[1]) for tag, _ in page.elements if tag in HEADINGS]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.slow
def test_styles_and_pictures_refer_to_what_is_there(contents):
    source = contents[report.PAGE].decode()
    assert "@import" not in source and not re.search(r"url\((?!#)", source)
    # Colours of pictures can change with the page.
    style = source[source.index("<style>") : source.index("</style>")]
    dark = style[style.index("prefers-color-scheme: dark") :]
    used = set(re.findall(r"var\(--c-([0-9a-f]{6}),#\1\)", source))
    assert len(used) > 8
    assert not [colour for colour in used if f"--c-{colour}:" not in dark]
    pictures = re.findall(r"(?s)<svg\b.*?</svg>", source)
    assert any('href="#' in picture for picture in pictures)
    for picture in pictures:
        references = set(re.findall(r'(?:url\(#|href="#)([^")]+)', picture))
        assert references <= set(re.findall(r' id="([^"]+)"', picture))


def ids(page: Page) -> Counter[str]:
    return Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)


@pytest.mark.slow
def test_ids_are_unique_and_pictures_described(contents, sweep, read):
    document = synthetic.sweep(gpu=False)
    document["context"]["crossover"]["machine"]["id"] = "another"
    two_machines = build(sweep, read(document, "other.json"))
    for made, machines in ((contents, 1), (two_machines, 2)):
        page = page_of(made)
        known = ids(page)
        assert known.most_common(1)[0][1] == 1
        pictures = [attributes for tag, attributes in page.elements if tag == "svg"]
        assert len(pictures) == 2 * sum(name.endswith(".svg") for name in made) >= 8
        assert Counter(each["class"] for each in pictures) == dict.fromkeys(
            ("wide", "narrow"), len(pictures) // 2
        )
        for attributes in pictures:
            assert attributes["role"] == "img"
            assert all(name in known for name in attributes["aria-labelledby"].split())
        lines = page.text.splitlines()
        titles = [text for text in lines if text.startswith("Seconds per epoch again")]
        assert len(titles) == 2 * machines
        for _, attributes in page.elements:
            for reference in re.findall(r"url\(#([^)]+)\)", str(attributes)):
                assert reference in known


def test_tables_hold_the_medians_and_ranges(sweep):
    rows = epoch_rows(sweep)
    best, every = tables(rows)
    text = as_text(every)
    assert len(rows) == 41  # 14 networks on 3 series, less the skipped row
    for row in rows:
        assert units.seconds(float(np.median(row.samples))) in text
        assert units.seconds_range(row.samples.min(), row.samples.max()) in text
        assert f"{row.counters['params']:,.0f}" in text
    rates = {row.median: row.counters["rows"] / row.median for row in rows}
    assert rates == {
        line["seconds_per_epoch"]: line["samples_per_second"] for line in every.records()
    }
    for line in best.records():
        cpu, gpu = (
            min(
                (row.median for row in rows if (row.model, row.device) == (line["network"], on)),
                default=None,
            )
            for on in ("cpu", "cuda")
        )
        assert (line["cpu_seconds_per_epoch"], line["gpu_seconds_per_epoch"]) == (cpu, gpu)
        assert line["speed_up"] == (cpu and gpu and cpu / gpu)


def test_updates_that_were_not_verified_are_counted(small, read):
    for entry in small["benchmarks"]:
        entry["verification"]["undetermined_updates"] = 3
    file = read(small)
    (line,) = record.build([file], Context()).blocks[0].folds[0].tables[0].records()
    assert line["undetermined_updates"] == 3 * len(file.rows)


def test_meters_are_told_or_why_there_are_none_and_idle_power(small, read):
    def told(energy: dict, fact: str = "Energy") -> str:
        small["context"]["crossover"]["energy"] = energy
        return dict(record.build([read(small)], Context()).blocks[0].facts)[fact]

    idle = {"meters": ["package-0"], "idle_watts_before": 20.0, "idle_watts_after": 21.5}
    idle |= {"gpu_idle_watts_before": 70.0}  # the run was stopped before it was read again
    assert told(idle, "Idle power") == "processors 20.0 W before, 21.5 W after"
    idle["gpu_idle_watts_after"] = 75.0
    assert told(idle, "Idle power").endswith("; GPU 70.0 W before, 75.0 W after")
    meters = [
        {"name": name, "counts": counts, "resolution_joules": count, "update_seconds": pause}
        for name, counts, count, pause in (
            ("rapl package-0", "cpu", 1e-6, 0.00102),
            ("nvml", "gpu", 1e-3, 0.1),
            ("./wall", "machine", None, None),
        )
    ]
    assert told({"meters": meters}) == (
        "rapl package-0 counts the processors to 1.00 µJ, moves every 1.02 ms; nvml counts the GPU "
        "to 1.00 mJ, moves every 100 ms; ./wall counts the machine, moved less than twice in 5 s"
    )
    why = {"reason": "virtual machines have none", "gpu_reason": "its driver tells no energy"}
    assert told(why) == (
        "no meter of the processors: virtual machines have none; no meter of the GPU: its driver "
        "tells no energy"
    )
    assert told({"meters": ["rapl package-0"]}) == "rapl package-0"
    for place, entry in enumerate(small["benchmarks"]):
        entry |= {"joules": 1.0 + place, "joules_error": 0.0333 / (1 + place)}
    assert told({}) == "the meters may be off by 3.3 % of a row's energy, at most"


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_failures_flags_notes_and_record_are_told(read):
    document = synthetic.sweep(threads=(1, 4), gpu=False)
    document["context"]["crossover"]["complete"] = False
    document["context"]["crossover"]["software"]["dirty"] = True
    document["context"]["crossover"]["software"]["commit"] = "0123456789" * 4
    file = read(document)
    page = shown(page_of(build(file)).text)
    for text in (page, " ".join("\n".join(summary(Study(file))).split())):
        assert "too little memory: 9 GB needed" in text
        assert "oversubscribed: 4 threads on 2 cores" in text
        assert "not finished" in text and "uncommitted" in text
        assert "synthetic)" in text
    assert f"git checkout {'0123456789' * 4}\n" in page
    assert "27 of 28 rows have a result, 14 of 28 rows have a flag." in page


def filled_with(text: str) -> dict:
    """A file with `text` wherever a file may hold any text, and with text of 10,000 characters."""
    long = text[:1] * 10_000
    configuration = {**synthetic.cpu_configuration("heart", 2), "execution": text}
    entries = synthetic.samples(configuration, warnings=[text, long])
    for model in (text, long):
        changed = {**configuration, "model": model}
        name = synthetic.row_name(changed)
        entries += [
            {**entry, "name": name, "configuration": changed}
            for entry in entries[: synthetic.REPETITIONS]
        ]
    entries.append(synthetic.failure(synthetic.cpu_configuration("disc-2", 1), text))
    # The schema leaves these fields open, and only these.
    for configuration in (
        {"family": "Peak", "quantity": "triad", "device": text},
        {"family": "Peak", "quantity": "copy", "direction": text, "device": text},
        {"family": "Copy", "direction": "h2d", "memory": "pinned", "mode": "sync"}
        | {"bytes": "9", "device": text},
        {"family": "Copy", "direction": "h2d", "memory": "pinned", "mode": "sync"}
        | {"model": text, "batch": "9", "device": text},
    ):
        entries += synthetic_probes.operation(configuration, 1e-3, bytes=1e6)
    for configuration in (
        {"family": "Gemm", "m": "9", "n": "9", "k": "9", "transpose": "nn", "cache": "cold"}
        | {"precision": text, "device": "cpu", "cpu_threads": "9", "execution": text},
        {"family": "Layer", "width": "9", "batch": "9", "activation": text}
        | {"pass": "forward", "form": "fused", "precision": text, "device": text}
        | {"execution": long},
    ):
        entries += synthetic_probes.operation(
            configuration, 1e-3, 2, flops=1e9, bytes=1e6, verified_entries=1, width=9, batch=9
        )
    document = synthetic.document(entries, machine=text, gpu=text)
    crossover = document["context"]["crossover"]
    crossover["machine"]["cpu"]["model"] = text
    crossover["machine"]["os"] = long
    crossover["configuration"]["command"] = ["bench", text, "```"]
    crossover["configuration"]["environment"] = {text: text}
    crossover["software"]["libraries"] = {text: text}
    crossover["software"]["compiler"] = text
    return document


@pytest.mark.slow
def test_text_from_a_file_makes_no_element_and_no_attribute(read):
    harmless = re.sub(r"[^a-z0-9 ]", "x", HOSTILE)
    pages = []
    for text in (HOSTILE, harmless):
        file = read(filled_with(text), "any.json")
        other = read(filled_with(text), "other.json")
        contents = build(file, other, detailed=1, older=[file])
        pages.append(page_of(contents))
        assert all(re.fullmatch(r"[a-z0-9.-]+", name) for name in contents)
        assert not any(".." in name or name.startswith(".") for name in contents)
    hostile, tame = pages
    assert hostile.shape() == tame.shape()
    assert {tag for tag, _ in hostile.elements} == {tag for tag, _ in tame.elements}
    scripts = [attributes for tag, attributes in hostile.elements if tag == "script"]
    assert [each.get("type") for each in scripts] == ["application/json", None]  # the rows' data
    for _, attributes in hostile.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert not str(attributes.get("href", "")).startswith("javascript")
        assert "alert" not in attributes.get("style", "")
    assert "<script>alert(1)</script>" in hostile.text  # shown as text
    assert "{{ 7*7 }}" in hostile.text
    assert "\u202e" not in hostile.text and "\\u202e" in hostile.text
    assert "x" * 1000 not in hostile.text
    printed = "\n".join(summary(Study(file)))
    assert "\u202e" not in printed and "\x1b" not in printed


def test_a_few_times_are_of_the_batch_that_most_networks_have(read):
    usual = [synthetic.cpu_configuration(model, 1) for model in ("disc-2", "disc-5", "disc-8")]
    more = [synthetic.cpu_configuration("disc-5", 1, batch) for batch in (10, 1000)]
    entries = synthetic_sweep.epochs([*usual, *more], lambda *_: 1e-3)
    text = "\n".join(summary(Study(read(synthetic.document(entries)))))
    assert re.findall(r"^disc-\d +[\d,]+ +([\d,]+)", text, re.MULTILINE) == ["100"] * 3


def test_of_a_run_that_goes_on_only_what_is_new_is_said(tmp_path):
    """Each time against the last, by parts: a table with its title."""
    kept, table = tmp_path / "kept.txt", "Time of one epoch\n\ndisc-2  {} µs"
    parts = ["machine\nstrip\n\nThe GPU wins.", "- a line", table.format(9)]
    assert since([parts], kept)[:-1] == parts
    assert since([parts], kept) == ["The answer above stands."]
    finer = [*parts[:2], table.format(8)]
    assert since([finer], kept) == ["The answer above stands; this has changed:", finer[2]]
    other = ["machine\nstrip\n\nThe CPU wins.", *finer[1:]]
    assert since([other], kept) == ["Since the answer above this has changed:", other[0]]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_newest_file_of_each_machine_is_taken(small, write):
    for name, date in (
        ("old.json", "2020-01-01T12:00:00+00:00"),
        ("new.json", "2020-01-01T12:00:00-05:00"),
        ("middle.json", "2020-01-01T13:00:00"),
    ):
        small["context"]["date"] = date
        write(small, name)
    small["context"]["crossover"]["machine"]["id"] = "another"
    folder = write(small, "other.json").parent
    files, _ = loading.load_files([folder])
    chosen, older = newest_per_machine(files)
    assert [file.path.name for file in chosen] == ["new.json", "other.json"]
    assert [file.path.name for file in older] == ["middle.json", "old.json"]
    text = page_of(build(*chosen, older=older)).text
    assert "middle.json" in text and "2 older files" in text


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_only_some_machines_are_shown_in_full_each_with_its_own_pictures(small, read):
    files = []
    for number, machine in enumerate(
        ("Machine A", "machine-a", "machine 2", "machine 3", "machine 4")
    ):
        small["context"]["crossover"]["machine"]["id"] = machine
        files.append(read(small, f"{number}.json"))
    contents = build(*files, detailed=3)
    for kind in ("svg", "png"):
        names = [f"{stem}.epochs.{kind}" for stem in ("machine-a", "machine-a-2", "machine-2")]
        assert [name for name in contents if name.endswith(kind)] == names
    text = page_of(contents).text
    assert "show 3 of these 5 files" in text and "--detail=all" in text
    assert all(file.machine.id in text for file in files)


def test_every_section_builds_on_a_file_without_a_result(small, read):
    small["benchmarks"] = [synthetic.failure(synthetic.cpu_configuration("disc-2", 1), "why")]
    contents = build(read(small))
    assert list(contents) == ["index.html"]
    text = page_of(contents).text
    assert "No Epoch row of this file has a result" in text
    assert "This file has no ceilings" in text and "why" in text


@pytest.mark.usefixtures("undrawn")
@pytest.mark.slow
def test_sections_have_anchors_of_their_own(everything, contents):
    pictures = [content for name, content in contents.items() if name.endswith(".svg")]
    assert min(map(len, pictures)) > 5000, "the session's report has pictures, whoever asks first"
    built = [section_of([everything], report.Context()) for section_of in SECTIONS]
    anchors = [section.anchor for section in built if section]
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"[a-z][a-z-]*", anchor) for anchor in anchors)


@pytest.mark.slow
@pytest.mark.parametrize("models", [["heart"], ["disc-3"], ["heart", "mlp-784-512-10", "disc-12"]])
def test_few_points_are_drawn_too(read, models):
    entries = []
    for model in models:
        entries += synthetic.samples(synthetic.cpu_configuration(model, 1))
    assert len(build(read(synthetic.document(entries)))) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("value", "gpu"), [(1e-59, False), (9e39, True)])
def test_extreme_numbers_are_drawn_and_written(read, value, gpu):
    document = synthetic_probes.everything(gpu)
    for entry in document["benchmarks"]:
        for name in ("params", "flops", "bytes", "rows", "first_call_seconds", "width"):
            if name in entry:
                entry[name] = value
    contents = build(read(document))
    assert report.PAGE in contents and len(contents) >= 7


def test_files_in_the_folder_stay_and_links_are_not_followed(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (tmp_path / "elsewhere").write_text("mine too")
    (folder / "index.html").symlink_to(tmp_path / "elsewhere")
    assert report.write_report({"index.html": b"page"}, folder) == [folder / "index.html"]
    assert (folder / "index.html").read_bytes() == b"page"
    assert (tmp_path / "elsewhere").read_text() == "mine too"
    assert sorted(path.name for path in folder.iterdir()) == ["index.html", "notes.txt"]


def test_labels_say_what_differs(sweep, read):
    labels = list(series_labels(sweep.rows).values())
    assert labels == ["CPU, 1 thread", "CPU, 2 threads", "GPU, graph, pinned"]
    base = synthetic.cpu_configuration("disc-3", 1)
    entries = []
    for changes in ({}, {"precision": "bf16"}, {"execution": "fused"}, {"tiling": "blocked"}):
        entries += synthetic.samples({**base, **changes})
    file = read(synthetic.document(entries, axes=(synthetic.TILING,)))
    assert sorted(series_labels(file.rows).values()) == [
        "CPU, bf16, eager, 1 thread",
        "CPU, f32, eager, 1 thread",
        "CPU, f32, eager, 1 thread, tiling blocked",
        "CPU, f32, fused, 1 thread",
    ]


@pytest.mark.slow
def test_of_many_ways_the_fastest_of_each_device_is_drawn(everything, wide):
    for file in (everything, wide):
        rows = epoch_rows(file)
        shown = best_of_devices(rows)
        assert len(lines_of(rows)) > MOST_LINES and len(lines_of(shown)) == 2
        for device in ("cpu", "cuda"):
            medians = [
                np.prod([row.median for row in line])
                for line in lines_of(rows)
                if line[0].device == device and (line[0].batch, line[0].precision) == ("100", "f32")
            ]
            (line,) = [line for line in lines_of(shown) if line[0].device == device]
            assert np.prod([row.median for row in line]) == min(medians)
    few = [row for row in epoch_rows(everything) if row.device == "cpu"]
    assert best_of_devices(few) == few


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_tables_of_the_page_are_files_where_asked(simple, tmp_path, shell):
    shell("report", simple, "-o", tmp_path / "out", "--tables=csv")
    files = sorted(tmp_path.glob("out/*.csv"))
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert 5 < len(files) <= page.count("<table>")  # a table in short and whole is one
    assert all(re.fullmatch(r"[a-z0-9.-]+", path.name) for path in files)
    (table,) = (path for path in files if "epochs.epochs-the-fastest-way" in path.name)
    (first, *_) = csv.DictReader(table.open())
    assert first["network"] == "disc-2" and float(first["cpu_seconds_per_epoch"]) > 0
    assert first["params"] == "22"
