// SPDX-License-Identifier: Apache-2.0
// What a point of a chart is: where the pointer is near it, or as the arrow keys reach it. Without
// this script the picture's own titles say it. A button below a chart copies the picture.
const NEAR = 24; // CSS pixels
for (const chart of document.querySelectorAll(".chart")) {
  const points = svg => [...svg.querySelectorAll("use")].filter(use => use.querySelector("title"));
  const pictures = [...chart.querySelectorAll("svg")].map(svg => ({svg, named: points(svg), at: -1}));
  const label = Object.assign(document.createElement("output"), {className: "hover", hidden: true});
  const middle = use => {
    const box = use.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const tell = use => {
    label.hidden = !use;
    if (!use) return;
    const frame = chart.getBoundingClientRect(), [x, y] = middle(use).map((at, i) => at - (i ? frame.top : frame.left));
    label.textContent = use.querySelector("title").textContent;
    label.style.left = `${Math.max(0, Math.min(x + 8, frame.width - label.offsetWidth))}px`;
    label.style.top = `${y > label.offsetHeight + 12 ? y - label.offsetHeight - 8 : y + 12}px`;
  };
  for (const picture of pictures.filter(({named}) => named.length)) {
    const {svg, named} = picture;
    chart.classList.add("told");
    svg.tabIndex = 0;
    const point = ({clientX, clientY}) => {
      const away = named.map(use => Math.hypot(...middle(use).map((at, i) => at - [clientX, clientY][i])));
      const nearest = Math.min(...away);
      tell(nearest < NEAR ? named[away.indexOf(nearest)] : null);
    };
    for (const move of ["pointermove", "pointerdown"]) svg.addEventListener(move, point);
    // A finger leaves as soon as it has tapped.
    svg.addEventListener("pointerleave", ({pointerType}) => { if (pointerType !== "touch") tell(null); });
    svg.addEventListener("blur", () => tell(null));
    svg.addEventListener("keydown", event => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (event.key === "Escape") tell(null);
      if (!step) return;
      event.preventDefault();
      const from = Math.max(picture.at, step < 0 ? 0 : -1);
      picture.at = (from + step + named.length) % named.length;
      tell(named[picture.at]);
    });
  }
  chart.append(label);
  const copy = Object.assign(document.createElement("button"), {className: "copy", type: "button", textContent: "copy"});
  copy.addEventListener("click", () => copyText(copy, alone(pictures.find(({svg}) => svg.getClientRects().length).svg)));
  chart.parentNode.querySelector("figcaption")?.append(" ", copy);
}

/// The picture by itself, as a file would have it: the page's classes as styles, in light colours.
function alone(svg) {
  const kept = svg.cloneNode(true), looks = {};
  for (const rule of document.styleSheets[0].cssRules) {
    const name = /^\.chart \.(z\d+)$/.exec(rule.selectorText ?? "");
    if (name) looks[name[1]] = rule.style.cssText.replace(/var\(--c-\w+, *(#\w+)\)/g, "$1");
  }
  for (const element of kept.querySelectorAll("[class]")) {
    element.setAttribute("style", looks[element.getAttribute("class")] ?? "");
    element.removeAttribute("class");
  }
  for (const name of ["class", "tabindex"]) kept.removeAttribute(name);
  const usual = {"font-family": "DejaVu Sans, Verdana, Helvetica, sans-serif", "stroke-linejoin": "round"};
  for (const [name, value] of Object.entries(usual)) kept.setAttribute(name, value);
  return new XMLSerializer().serializeToString(kept);
}
