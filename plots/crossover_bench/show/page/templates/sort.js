// SPDX-License-Identifier: Apache-2.0
// A click on a column's heading sorts its table; without this script every table is readable.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const headings = table.tHead.rows[table.tHead.rows.length - 1].cells;
  if (body.rows.length < 2) continue;
  const read = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const compare = (a, b) => {
    const missing = (a === "–") - (b === "–");
    const difference = Number(a) - Number(b);
    return missing || (Number.isNaN(difference) ? a.localeCompare(b, "en", {numeric: true}) : difference);
  };
  [...headings].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [read(one, column), read(other, column)];
        // A dash stays below in either order.
        return a === "–" || b === "–" || !falling ? compare(a, b) : compare(b, a);
      });
      body.append(...rows);
    });
  });
}
