// SPDX-License-Identifier: Apache-2.0
// Every row: fills the table in from the data in the page, hides what is not chosen, and keeps the
// choice in the page's address, "#rows?family=Epoch&sort=-seconds". answers/rows/section.py
// makes the data and the first lines; a test holds both equal. sort.js and fit.js do the rest.
const rowsChoice = document.querySelector("#rows .choice");
if (rowsChoice) {
  const ON_PAPER = 20; // rows
  const known = JSON.parse(document.querySelector("#rows-data").textContent);
  const table = document.querySelector("#rows table"), body = table.tBodies[0];
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const again = document.querySelector("#rows .again"), output = rowsChoice.querySelector("output");
  const shows = {
    s: value => seconds(value), n: count, x: value => `${significant(value)}×`,
    "%": value => `${significant(value, 2)} %`, B: binaryBytes,
    "FLOP/s": value => rate(value, "FLOP/s"), "B/s": value => rate(value, "B/s"),
  };
  const element = (kind, text, className = "") =>
    Object.assign(document.createElement(kind), {textContent: text, className});

  // --- the rows of a file, each with its texts and numbers by column

  const runs = text => text.split(",").flatMap(run => {
    const [value, times] = run.split("*");
    return Array(Number(times ?? 1)).fill(value);
  });

  function whole(words) {
    let before = "";
    return words.map(word => (before = before.slice(0, parseInt(word[0], 36)) + word.slice(1)));
  }

  function rowsOf({words, values}) {
    const columns = Object.entries(values).map(([key, text]) => {
      const texts = runs(text), known = words[key] && whole(words[key]);
      return [key, known ? texts.map(at => known[at]) : texts.map(number => number === "" ? null : Number(number))];
    });
    return columns[0][1].map((_, at) => Object.fromEntries(columns.map(([key, column]) => [key, column[at]])));
  }

  function lineOf(row) {
    const line = document.createElement("tr");
    for (const {dataset: {key}} of heads) {
      const kind = known.kinds[key], value = row[key], text = kind && value !== null ? shows[kind](value) : value;
      const cell = element("td", text || "–", kind ? "" : text.length > 24 ? "long" : "word");
      if (kind && value !== null) cell.dataset.value = value;
      line.append(cell);
    }
    const button = element("button", row.network);
    Object.assign(button, {type: "button", tabIndex: -1});
    button.addEventListener("click", () => tell(row, button));
    line.cells[0].replaceChildren(button);
    return line;
  }

  // --- what is chosen

  let rows = [], lines = [], file = null;
  const selects = {};
  const chosen = key => selects[key]?.value ?? "";
  const has = (row, but) => known.filters.every(key => key === but || !chosen(key) || row[key] === chosen(key));

  function addSelect(key, values, every) {
    const label = element("label", key), select = document.createElement("select");
    select.name = key;
    select.append(...(every ? [new Option("all", "")] : []), ...values.map(value => new Option(value)));
    label.append(select);
    output.before(label);
    selects[key] = select;
  }

  function open(name) {
    const opened = known.files.find(each => each.name === name) ?? known.files[0];
    if (opened === file) return;
    file = opened;
    rows = rowsOf(file);
    lines = rows.map(lineOf);
    unsort();
    table.caption.querySelector("span").firstChild.textContent = `Rows of ${file.name}`;
    for (const key of known.filters) {
      selects[key]?.parentNode.remove();
      delete selects[key];
      const values = [...new Set(rows.map(row => row[key]))].filter(Boolean);
      if (values.length > 1) addSelect(key, values, true);
    }
    tell(null);
  }

  function unsort() {
    for (const head of heads) head.removeAttribute("aria-sort");
    body.replaceChildren(...lines);
  }

  function apply() {
    const shown = rows.filter((row, at) => !(lines[at].hidden = !has(row)));
    // What would leave no row is not offered.
    for (const key of known.filters.filter(key => selects[key])) {
      const possible = new Set(rows.filter(row => has(row, key)).map(row => row[key]));
      for (const option of selects[key].options) option.hidden = option.value !== "" && !possible.has(option.value);
    }
    output.textContent = `${shown.length} of ${rows.length} rows`;
    if (shown.length > ON_PAPER) output.append(element("span", `, the first ${ON_PAPER} on paper`, "paper"));
    order();
    fit();
  }

  /// After a choice or a sort: which lines are printed, and the one that a tab key reaches.
  function order() {
    const visible = [...body.rows].filter(line => !line.hidden);
    visible.forEach((line, at) => {
      line.classList.toggle("beyond", at >= ON_PAPER);
      line.querySelector("button").tabIndex = at ? -1 : 0;
    });
  }

  // --- the address

  const sorted = () => heads.find(head => head.hasAttribute("aria-sort"));

  function address() {
    const words = new URLSearchParams();
    if (known.files.length > 1 && file !== known.files[0]) words.set("machine", file.name);
    for (const key of known.filters) if (chosen(key)) words.set(key, chosen(key));
    const head = sorted(), falls = head?.getAttribute("aria-sort") === "descending";
    if (head) words.set("sort", `${falls ? "-" : ""}${head.dataset.key}`);
    return `#rows?${words}`.replace(/\?$/, "");
  }

  let follows = false; // a link, so that each step on the way is none
  const keep = () => { if (!follows && location.hash !== address()) location.hash = address(); };

  function follow() {
    if (!/^#rows(\?|$)/.test(location.hash) || location.hash === address()) return;
    const words = new URLSearchParams(location.hash.slice(6));
    follows = true;
    open(words.get("machine"));
    if (selects.machine) selects.machine.value = file.name;
    for (const key of known.filters.filter(key => selects[key])) {
      const value = words.get(key) ?? "";
      selects[key].value = [...selects[key].options].some(option => option.value === value) ? value : "";
    }
    const [, falls, key] = /^(-?)(\w+)$/.exec(words.get("sort") ?? "") ?? [];
    const head = heads.find(({dataset}) => dataset.key === key);
    const wanted = falls ? "descending" : "ascending";
    if (!head) unsort();
    for (let i = 0; head && i < 2 && head.getAttribute("aria-sort") !== wanted; i++) head.querySelector("button").click();
    apply();
    follows = false;
    document.querySelector("#rows").scrollIntoView();
  }

  // --- a row by itself

  function tell(row, button) {
    again.hidden = !row;
    if (!row) return;
    body.querySelector("[aria-pressed]")?.removeAttribute("aria-pressed");
    button.setAttribute("aria-pressed", "true");
    const peer = /\/program:(\w+)/.exec(row.tail), name = row.head + row.tail;
    const filter = name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replaceAll("'", `'"'"'`);
    const command = peer ? file.with_peers + peer[1] : file.again.replace(/ROW\$'$/, () => `${filter}$'`);
    const copy = Object.assign(element("button", "copy", "copy"), {type: "button"});
    copy.addEventListener("click", () => copyText(copy, command));
    const title = element("p", peer ? `${name}, measured again with all of its program:` : `${name}, measured again:`);
    title.append(" ", copy);
    const shell = document.createElement("pre");
    Object.assign(shell, {tabIndex: 0}).append(element("code", command));
    again.replaceChildren(title, shell, ...(row.remarks ? [element("p", row.remarks, "note")] : []));
  }

  body.addEventListener("keydown", event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key], visible = [...body.rows].filter(line => !line.hidden);
    const next = visible[visible.indexOf(event.target.closest("tr")) + step];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    Object.assign(next.querySelector("button"), {tabIndex: 0}).focus();
  });
  table.tHead.addEventListener("click", () => { order(); keep(); });
    rowsChoice.addEventListener("change", event => {
    if (event.target === selects.machine) open(selects.machine.value);
    apply();
    keep();
  });
  if (known.files.length > 1) addSelect("machine", known.files.map(({name}) => name), false);
  open("");
  apply();
  rowsChoice.hidden = false;
  for (const anchor of document.querySelectorAll("[data-choice]")) anchor.href = `#rows?${anchor.dataset.choice}`;
  addEventListener("hashchange", follow);
  follow();
}
