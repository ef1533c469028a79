// What can be taken away: a picture, the ranking, the query.

import { make } from "./controls.js";

/** What decides how a drawing looks, written into it so that it looks the same elsewhere. */
const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "text-anchor"];

function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [[...svg.querySelectorAll("*")], [...copy.querySelectorAll("*")]];
  from.forEach((element, at) => {
    const style = getComputedStyle(element);
    for (const look of LOOKS) to[at].setAttribute(look, style.getPropertyValue(look));
    to[at].removeAttribute("class");
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["width", "100%"], ["height", "100%"], ["fill", getComputedStyle(svg.parentElement).backgroundColor]]) paper.setAttribute(name, value);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

const cell = (value) => (value === undefined ? "" : /[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

/** The columns of an answer that come first, as in SQL. */
const FIRST = ["rank", "feature", "score", "gain", "train_score", "valid_score", "valid_error", "coefficient"];

function csv(rows) {
  const known = new Set(rows.flatMap((row) => Object.keys(row)));
  known.delete("standardized");
  const columns = [...FIRST.filter((name) => known.delete(name)), ...known];
  return [columns, ...rows.map((row) => columns.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Saves or copies what was asked for. */
export async function offer(kind, { svg, name, rows, sql, text, button }) {
  if (kind === "svg") save(`${name}.svg`, "image/svg+xml", standalone(svg));
  if (kind === "csv") save("ranking.csv", "text/csv", csv(rows));
  if (kind === "sql") save("ranking.sql", "application/sql", `${sql.join(";\n\n")};\n`);
  if (kind === "copy") {
    await navigator.clipboard.writeText(text);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  }
}
