// SPDX-License-Identifier: Apache-2.0
// A table that is wider than its place shows the columns that fit, which are those of the answer,
// and a button for the others; without this script it scrolls. A link in its title saves it as CSV.
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
const field = text => quoted(/^[=+\-@\t\r]/.test(text) && isNaN(text) ? `'${text}` : text);
const csv = table => {
  const [head] = [...table.tHead.rows].slice(-1);
  const value = cell => cell.dataset.value ?? (cell.textContent === "–" ? "" : cell.textContent);
  const lines = [[...head.cells].map(cell => cell.dataset.key)];
  for (const row of table.tBodies[0].rows) lines.push([...row.cells].map(value));
  return lines.map(line => line.map(field).join(",") + "\n").join("");
};
for (const box of boxes) {
  const table = box.querySelector("table"), caption = table.caption;
  const name = caption.textContent.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60);
  const save = Object.assign(link("a", "CSV"), {className: "csv", download: `${name}.csv`});
  save.href = "data:text/csv,";
  save.addEventListener("click", () => {
    save.href = `data:text/csv;charset=utf-8,${encodeURIComponent(csv(table))}`;
  });
  const button = Object.assign(link("button", ""), {className: "columns", type: "button"});
  button.addEventListener("click", () => { box.classList.toggle("every"); fit(); });
  caption.firstElementChild.append(" ", save, " ", button);
}
fit();
addEventListener("resize", fit);
document.addEventListener("toggle", fit, true);
