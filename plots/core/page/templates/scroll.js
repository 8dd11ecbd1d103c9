// SPDX-License-Identifier: Apache-2.0
// A table that is wider than its place says so; without this script a shadow alone does.
const tables = document.querySelectorAll(".table");
const mark = () => {
  const wide = [...tables].map(one => one.scrollWidth > one.clientWidth + 1);
  tables.forEach((one, place) => one.classList.toggle("wide", wide[place]));
};
mark();
addEventListener("resize", mark);
document.addEventListener("toggle", mark, true);
