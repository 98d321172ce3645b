"use strict";
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const value = (row, column) => {
    const text = row.cells[column].textContent;
    const number = Number.parseFloat(text);
    return text === "" ? null : Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    // What was not measured stands last, whatever the order.
    if (a === null || b === null) return 0;
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  };
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => [value(row, column), row]);
    rows.sort(([a], [b]) => (a === null) - (b === null) || (down ? compare(b, a) : compare(a, b)));
    body.append(...rows.map(([, row]) => row));
  }));
}
const cases = document.getElementById("cases");
const switches = document.getElementById("switches");
if (cases && switches) {
  const show = () => {
    let shown = 0;
    for (const row of cases.tBodies[0].rows) {
      row.hidden = switches.value !== "" && row.cells[3].textContent !== switches.value;
      shown += row.hidden ? 0 : 1;
    }
    document.getElementById("rows").textContent = `${shown} of ${cases.tBodies[0].rows.length} cases`;
  };
  switches.addEventListener("change", show);
  show();
}
document.documentElement.dataset.ready = String(document.querySelectorAll("svg").length);
