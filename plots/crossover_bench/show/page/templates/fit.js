// SPDX-License-Identifier: Apache-2.0
// A table that is wider than its place shows the columns that fit, which are those of the answer,
// and a button for the others; without this script it scrolls. A link in its title saves it as CSV,
// and a button copies it with tabs, as a spreadsheet takes it; each has the lines that are shown.
const boxes = document.querySelectorAll(".table");
const link = (kind, text) => Object.assign(document.createElement(kind), {textContent: text});
const show = (table, count) => {
  for (const row of table.rows) {
    let place = 0;
    for (const cell of row.cells) {
      const span = Number(cell.dataset.span ??= cell.colSpan);
      cell.hidden = place >= count;
      cell.colSpan = Math.max(1, Math.min(span, count - place));
      place += span;
    }
  }
  return table.tHead.rows[table.tHead.rows.length - 1].cells;
};
const overflows = box => box.scrollWidth > box.clientWidth + 1;
const fit = () => {
  for (const box of boxes) {
    if (box.closest("details:not([open])")) continue;
    const table = box.querySelector("table"), button = box.querySelector(".columns");
    const heads = [...show(table, Infinity)];
    let count = heads.length;
    if (overflows(box) && !box.classList.contains("every")) {
      const right = table.getBoundingClientRect().left + box.clientWidth + 1;
      count = Math.max(2, heads.filter(one => one.getBoundingClientRect().right <= right).length);
      show(table, count);
      while (overflows(box) && count > 2) show(table, --count);
    }
    const more = heads.length - count;
    button.hidden = !more && !overflows(box);
    button.textContent = more ? `${more} more column${more > 1 ? "s" : ""}` : "fewer columns";
  }
};
const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
const field = text => /^[=+\-@\t\r]/.test(text) && isNaN(text) ? `'${text}` : text;
const fields = table => {
  const [head] = [...table.tHead.rows].slice(-1);
  const value = cell => cell.dataset.value ?? (cell.textContent === "–" ? "" : cell.textContent);
  const rows = [...table.tBodies[0].rows].filter(row => !row.hidden);
  return [[...head.cells].map(cell => cell.dataset.key), ...rows.map(row => [...row.cells].map(value))]
    .map(line => line.map(field));
};
const csv = table => fields(table).map(line => line.map(quoted).join(",") + "\n").join("");
const tabbed = table =>
  fields(table).map(line => line.map(text => text.replace(/[\t\n\r]+/g, " ")).join("\t") + "\n").join("");
/// Puts `text` where one pastes from, and says so on the button. A page without TLS, such as one of
/// a server at home, has no clipboard: it copies what is selected.
const copyText = async (button, text) => {
  const name = button.dataset.name ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const place = Object.assign(link("textarea", ""), {value: text});
    button.after(place);
    place.select();
    document.execCommand("copy");
    place.remove();
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = name; }, 1500);
};
for (const box of boxes) {
  const table = box.querySelector("table"), caption = table.caption;
  const name = caption.textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60);
  const save = Object.assign(link("a", "CSV"), {className: "csv", download: `${name}.csv`});
  save.href = "data:text/csv,";
  save.addEventListener("click", () => {
    save.href = `data:text/csv;charset=utf-8,${encodeURIComponent(csv(table))}`;
  });
  const copy = Object.assign(link("button", "copy"), {className: "copy", type: "button"});
  copy.addEventListener("click", () => copyText(copy, tabbed(table)));
  const button = Object.assign(link("button", ""), {className: "columns", type: "button"});
  button.addEventListener("click", () => { box.classList.toggle("every"); fit(); });
  caption.firstElementChild.append(" ", save, " ", copy, " ", button);
}
fit();
addEventListener("resize", fit);
document.addEventListener("toggle", fit, true);
