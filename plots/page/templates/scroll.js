// SPDX-License-Identifier: Apache-2.0
// A table that is wider than its place says so; without this script a shadow alone does.
const watch = new ResizeObserver(entries => {
  for (const {target} of entries) {
    target.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
  }
});
for (const table of document.querySelectorAll(".table")) watch.observe(table);
