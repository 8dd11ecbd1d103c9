# SPDX-License-Identifier: Apache-2.0
"""The site of everybody's results: what its ladder says, that its links lead somewhere, and that
its form filters."""

import re
from pathlib import Path
from typing import Any

import pytest

from crossover_bench.answers.predict import analysis, answer
from crossover_bench.answers.report import report
from crossover_bench.shell.cli import main
from crossover_bench.tests import synthetic, synthetic_sweep
from crossover_bench.tests.conftest import browse, with_browser

NAMES = ("synthetic-a-8c", "synthetic-b-64c")
LINK = re.compile(r'href="([^"#]+)"')
# Chooses a card, and leaves what is to be seen then.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body><script>
const frame = document.createElement("iframe");
frame.onload = () => {
  const page = frame.contentDocument, select = page.querySelector("#ladder select[name=gpu]");
  const shown = () => [...page.querySelectorAll("#ladder tbody tr")].filter(row => !row.hidden);
  const all = shown().length;
  select.value = "Synth 100";
  select.dispatchEvent(new frame.contentWindow.Event("change"));
  const output = page.querySelector("#ladder output").textContent;
  const names = shown().map(row => row.cells[0].textContent);
  document.body.textContent = `FOUND ${all} ${names} ${output} END`;
};
frame.srcdoc = SOURCE;
document.body.append(frame);
</script></body>"""


def lines(page: str) -> list[list[str]]:
    """The cells of the ladder's lines, without markup."""
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    rows = (re.sub("<td", "|<td", row) for row in body.split("</tr>")[:-1])
    return [re.sub("<[^>]*>|\n", "", row).replace("\u00a0", " ").split("|")[1:] for row in rows]


def _try() -> dict[str, Any]:
    """A machine whose run was told which rows to measure."""
    document = synthetic.sweep()
    crossover = document["context"]["crossover"]
    crossover["machine"]["id"] = "tried"
    crossover["configuration"]["command"] = ["bench", "--model=disc-3"]
    return document


@pytest.fixture(scope="module")
def site(five, tmp_path_factory):
    """The site of three machines, one without a GPU and one with three batches, and of one card;
    the machines' own pages, which other tests look at, hold their link back alone."""
    folder = tmp_path_factory.mktemp("site")
    wide = synthetic.write(folder / "wide.json", synthetic_sweep.wide_sweep())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "BENCH_PATH", Path("none"))
        patch.setattr(answer, "DEFAULT_CARDS", answer.DEFAULT_CARDS[:1])
        patch.setattr(
            report, "build_report", lambda files, **options: {report.PAGE: options["home"].encode()}
        )
        paths = [str(five / name) for name in NAMES]
        tried = synthetic.write(folder / "tried.json", _try())
        assert main(["site", *paths, str(wide), str(tried), "-o", str(folder / "public")]) == 0
    return folder / "public"


@pytest.mark.slow
def test_the_ladder_has_each_machine_and_card_and_every_link_leads_to_a_file(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    ladder = lines(page)
    measured = [line for line in ladder if "predicted" not in line[1]]
    assert ladder[: len(measured)] == measured
    unfit = {line[0] for line in ladder} - {*NAMES, "synthetic machine"}
    assert len(unfit) == 1 and "tried: no complete default or full sweep: flags chose its" in page
    (wide,) = (line for line in measured if line[0] == "synthetic machine")
    assert wide[2].startswith("GPU at every size measured")
    assert all(re.fullmatch(r"from \d+ parameters \(\d+ to \d+\)", text) for text in wide[3:5])
    (other,) = (line for line in measured if line[1] == "Synth 100")
    assert [other[2], *other[4:7]] == ["–", "–", "Synthetic B, 64 cores", "2020-01-01"]
    for link in set(LINK.findall(page)):
        assert (site / link).is_file(), link
    for path in site.glob("*/index.html"):
        assert (path.parent / path.read_text()).resolve() == site / "index.html"


@with_browser[0]
@with_browser[1]
def test_a_reader_filters_by_card_without_a_server(site, tmp_path):
    source = (site / "index.html").read_text(encoding="utf-8")
    content = PROBE.replace("SOURCE", repr(source).replace("</", "<\\/"))
    (tmp_path / "probe.html").write_text(content, encoding="utf-8")
    dumped = browse(tmp_path / "probe.html", tmp_path / "profile").stdout
    assert "FOUND 7 synthetic-b-64c 1 of 7 lines END" in dumped


def test_a_site_without_a_file_is_refused(tmp_path, shell):
    printed = shell("site", tmp_path, "-o", tmp_path / "public", code=2)
    assert printed.err.endswith("no site was written, because there is no valid result file\n")
    assert not (tmp_path / "public").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_file_in_the_sites_place_is_named(five, tmp_path, monkeypatch, shell):
    monkeypatch.setattr(report, "build_report", lambda files, **options: {})
    (tmp_path / "taken").write_text("")
    printed = shell("site", five / NAMES[0], "-o", tmp_path / "taken", code=2)
    assert "taken" in printed.err and printed.err.rstrip().endswith("another folder with -o")
