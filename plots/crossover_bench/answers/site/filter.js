// SPDX-License-Identifier: Apache-2.0
// The ladder by card and processor: a choice for each, from what the table holds.
const filterForm = document.querySelector("#ladder .filter");
if (filterForm) {
  const table = document.querySelector("#ladder table"), rows = [...table.tBodies[0].rows];
  const keys = [...table.querySelectorAll("th[data-key]")].map(head => head.dataset.key);
  const textOf = (row, key) => {
    const cell = row.cells[keys.indexOf(key)];
    return cell.dataset.value ?? cell.textContent;
  };
  const output = filterForm.querySelector("output"), chosen = {};
  const apply = () => {
    const entries = Object.entries(chosen);
    for (const row of rows) row.hidden = entries.some(([key, {value}]) => value && textOf(row, key) !== value);
    output.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} lines`;
  };
  for (const [key, name] of [["gpu", "card"], ["cpu", "processor"]]) {
    const label = document.createElement("label"), select = document.createElement("select");
    const values = [...new Set(rows.map(row => textOf(row, key)))].sort();
    select.name = key;
    select.append(new Option("all", ""), ...values.map(value => new Option(value)));
    select.addEventListener("change", apply);
    chosen[key] = select;
    label.append(name, select);
    output.before(label);
  }
  apply();
  filterForm.hidden = false;
}
