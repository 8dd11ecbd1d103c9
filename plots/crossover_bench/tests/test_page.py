# SPDX-License-Identifier: Apache-2.0
"""The page as a browser shows it: no error, nothing missing, no sideways scrolling on a phone."""

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from crossover_bench.tests.conftest import browse, with_browser

pytestmark = with_browser

# Opens the page in a frame of each width, looks at it, sorts a table, and leaves what it found.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body><script>
const source = SOURCE;
function look(width) {
  return new Promise(resolve => {
    const frame = document.createElement("iframe");
    frame.style.width = width + "px";
    frame.style.height = "900px";
    frame.style.border = "0";
    frame.onload = () => {
      const page = frame.contentDocument, root = page.documentElement;
      page.querySelectorAll("details").forEach(details => { details.open = true; });
      frame.contentWindow.dispatchEvent(new Event("resize"));
      const heading = page.querySelector("#epochs thead tr:last-child th.number");
      const column = [...heading.parentNode.cells].indexOf(heading);
      const body = heading.closest("table").tBodies[0];
      heading.querySelector("button")?.click();
      const sorted = [...body.rows].map(row => Number(row.cells[column].dataset.value));
      const drawn = [...page.querySelectorAll(".chart svg")].filter(svg => svg.checkVisibility());
      const boxes = drawn.map(svg => svg.getBoundingClientRect());
      const folded = table => table.closest("details");
      const heads = table => [...table.querySelectorAll("thead tr:last-child th")];
      const columns = table => heads(table).length;
      const shown = table => heads(table).filter(head => !head.hidden).length;
      const open = table => {
        if (!table) return null;
        const button = table.querySelector(".columns"), before = shown(table);
        button.click();
        const all = shown(table) === columns(table);
        button.click();
        return all && shown(table) === before;
      };
      const save = table => {
        const link = table.querySelector(".csv");
        link.addEventListener("click", event => event.preventDefault());
        link.click();
        const cells = [...table.querySelector("tbody").rows].map(row => [...row.cells].map(
          cell => cell.dataset.value ?? (cell.innerText === "–" ? "" : cell.textContent)));
        const keys = heads(table).map(head => head.dataset.key);
        return [link.download, decodeURIComponent(link.href), [keys, ...cells]];
      };
      const tables = [...page.querySelectorAll(".table")];
      const cells = [...page.querySelectorAll("td, th")];
      const view = {
        width: root.clientWidth,
        content: root.scrollWidth,
        pictures: boxes.map(box => [box.width, box.height]),
        kinds: drawn.map(svg => svg.classList.value),
        charts: page.querySelectorAll(".chart").length,
        beyond: boxes.filter(box => box.right > root.clientWidth).length,
        scrolling: tables.filter(table => table.scrollWidth > table.clientWidth + 1)
          .map(table => table.querySelector("caption").innerText),
        hidden: tables.filter(table => !folded(table) && !table.closest("#rows"))
          .filter(table => shown(table) < columns(table))
          .map(table => table.querySelector("caption").innerText),
        untold: tables.filter(table => shown(table) < columns(table) &&
          !table.querySelector(".columns").innerText.includes("more")).length,
        opened: open(tables.find(table => shown(table) < columns(table))),
        saved: tables.map(save),
        overflowing: cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1)
          .map(cell => cell.innerText),
        reach: [...page.querySelectorAll("#epochs table")[0].tBodies[0].rows[0].cells]
          .map(cell => cell.getBoundingClientRect().right),
        sorted: sorted,
        order: heading.getAttribute("aria-sort"),
        answer: page.querySelector(".answer").innerText,
        paper: getComputedStyle(page.body).backgroundColor,
      };
      frame.remove();
      resolve(view);
    };
    frame.srcdoc = source;
    document.body.append(frame);
  });
}
(async () => {
  const views = [];
  for (const width of [390, 1280]) views.push(await look(width));
  document.body.textContent = "FOUND" + JSON.stringify(views) + "END";
})();
</script></body>"""


@pytest.fixture(scope="session", params=["gpu", "cpu", "hostile"])
def folder(request, report_of) -> Path:
    return report_of(request.param).folder


@pytest.fixture(scope="session")
def seen(folder, tmp_path_factory) -> list[dict[str, Any]]:
    """What a reader in the light sees of it on a phone, then on a desk."""
    source = (folder / "index.html").read_text(encoding="utf-8")
    return probe(source, tmp_path_factory.mktemp("seen"), "--blink-settings=preferredColorScheme=1")


def test_the_page_opens_without_a_complaint(folder, tmp_path):
    """Takes long, as the first to ask for a page draws it."""
    opened = browse(folder / "index.html", tmp_path / "profile")
    assert "CONSOLE" not in opened.stderr
    assert 'class="answer"' in opened.stdout
    assert "<button" in opened.stdout  # the one script ran
    for name in re.findall(r'href="([^"#:]+)"', opened.stdout):
        assert (folder / html.unescape(name)).is_file()


def test_the_page_fits_a_phone_and_a_desk(seen):
    for view in seen:
        assert view["content"] <= view["width"]
        assert view["pictures"] and all(min(box) > 100 for box in view["pictures"])
        assert not view["beyond"] and len(view["pictures"]) == view["charts"]
        assert set(view["kinds"]) == {"narrow" if view["width"] < 600 else "wide"}
        assert not view["scrolling"] and not view["overflowing"]
        assert view["order"] == "ascending" and view["sorted"] == sorted(view["sorted"])
        assert len(set(view["sorted"])) > 1
        assert "GPU" in view["answer"]
        assert not view["untold"]
    phone, desk = seen
    # Network and speedup, or the median where there is one device; on a desk all columns of all
    # tables that are not folded, but for that of every row.
    assert 0 < phone["reach"][1] < phone["width"] and 0 < phone["reach"][2] < phone["width"]
    assert not desk["hidden"]
    assert phone["hidden"] and phone["opened"]  # columns that do not fit open when asked to


def test_every_table_can_be_saved(seen):
    for view in seen:
        assert len(view["saved"]) > 5
        for name, address, cells in view["saved"]:
            assert re.fullmatch(r"[a-z0-9-]+\.csv", name)
            kind, _, content = address.partition(",")
            assert kind == "data:text/csv;charset=utf-8"
            assert list(csv.reader(io.StringIO(content))) == cells


def test_the_page_is_dark_where_the_reader_is(folder, seen, tmp_path):
    source = (folder / "index.html").read_text(encoding="utf-8")
    dark = probe(source, tmp_path, "--blink-settings=preferredColorScheme=0")[0]["paper"]
    assert seen[0]["paper"] == "rgb(255, 255, 255)"
    assert max(map(int, re.findall(r"\d+", dark))) < 64


def probe(source: str, place: Path, *options: str) -> list[dict[str, Any]]:
    page = place / "probe.html"
    # No "</script>" of the page may end the probe's.
    page.write_text(
        PROBE.replace("SOURCE", json.dumps(source).replace("<", "\\u003c")), encoding="utf-8"
    )
    opened = browse(page, place / "profile", *options)
    match = re.search(r"FOUND(.*)END", opened.stdout)
    assert match, opened.stderr
    return json.loads(html.unescape(match[1]))
