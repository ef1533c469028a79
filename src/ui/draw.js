// Tables and pictures of an answer. Each is drawn into its place, and drawn again when the answer changes.

import { $, make, state } from "./controls.js";

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const titled = (element, text) => { element.append(shape("title", {}, text)); return element; };

/** Four digits that matter. */
export function number(x) {
  if (x === undefined || x === null) return "";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e6 || size < 1e-4) return x.toExponential(2);
  return String(Number(x.toPrecision(size >= 1000 ? 5 : 3)));
}

export const whole = (x) => x.toLocaleString("en");
const short = (name, letters) => (name.length > letters ? `${name.slice(0, letters - 1)}…` : name);
const side = (pane) => (pane === 0 ? "one" : "two");

/** The width of each card, told by the browser when it changes: to ask for it would lay the page out anew in the middle of drawing. */
const widths = new WeakMap();
const watch = new ResizeObserver((entries) => entries.forEach(({ target, contentRect }) => widths.set(target, contentRect.width)));
let rem = 16;
const measure = () => { rem = parseFloat(getComputedStyle(document.documentElement).fontSize); };
measure();
addEventListener("resize", measure);

/** The pixels of a rem and the width of a drawing. */
function frame(svg, heightOf) {
  const card = svg.parentElement;
  if (!widths.has(card)) {
    widths.set(card, card.clientWidth - 2.3 * rem);
    watch.observe(card);
  }
  const width = Math.max(widths.get(card), 12 * rem);
  const height = heightOf(rem, width);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  return { rem, width, height };
}

/** A tick box for a feature. */
function tick(kind, feature) {
  const list = kind === "force" ? "forced" : "forbidden";
  const box = make("input", { type: "checkbox", checked: state[list].includes(feature) });
  box.dataset[kind] = feature;
  box.setAttribute("aria-label", `${kind} ${feature}`);
  return box;
}

function nameCell(feature) {
  const button = make("button", { type: "button", title: feature }, feature);
  button.dataset.feature = feature;
  return make("td", { className: "name" }, button);
}

const heading = (...names) => make("tr", {}, ...names.map(([text, className]) => make("th", { className: className ?? "", scope: "col" }, text)));

/** The ranking of a pane as a table. Rows that are there are used again. */
export function drawRanking(place, pane, rows, other) {
  let table = $("table", place);
  const held = rows.some((row) => row.valid_score !== undefined);
  if (!table || table.dataset.held !== String(held)) {
    const columns = [["#", "number"], ["feature"], ["", "bar"], ["score", "number"], ["explained", "number"], ...(held ? [["held out", "number"]] : []), ["force", "tickbox"], ["forbid", "tickbox"]];
    table = make("table", { className: pane ? "two-pane" : "" }, make("thead", {}, heading(...columns)), make("tbody"));
    table.dataset.held = held;
    $("table", place)?.remove();
    place.append(table);
  }
  const body = $("tbody", table);
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  const most = Math.max(...rows.map((row) => Math.abs(row.score)), 1e-300);
  rows.forEach((row, at) => {
    let line = body.rows[at];
    if (!line) {
      const rail = make("div", { className: "rail" }, make("div"));
      const cells = [make("td", { className: "rank number" }), nameCell(row.feature), make("td", { className: "bar" }, rail)];
      for (let more = held ? 3 : 2; more > 0; more -= 1) cells.push(make("td", { className: "number" }));
      line = make("tr", {}, ...cells, make("td", { className: "tickbox" }, tick("force", row.feature)), make("td", { className: "tickbox" }, tick("forbid", row.feature)));
      body.append(line);
    }
    const cells = line.cells;
    if (line.dataset.feature !== row.feature) {
      line.dataset.feature = row.feature;
      const button = cells[1].firstChild;
      [button.textContent, button.title, button.dataset.feature] = [row.feature, row.note ?? row.feature, row.feature];
      for (const [cell, kind] of [[cells[cells.length - 2], "force"], [cells[cells.length - 1], "forbid"]]) cell.replaceChildren(tick(kind, row.feature));
    } else {
      cells[1].firstChild.title = row.note ?? row.feature;
      cells[cells.length - 2].firstChild.checked = state.forced.includes(row.feature);
      cells[cells.length - 1].firstChild.checked = state.forbidden.includes(row.feature);
    }
    line.className = other && !other.has(row.feature) ? "alone" : "";
    cells[0].textContent = row.rank;
    cells[2].firstChild.firstChild.style.width = `${(100 * Math.abs(row.score)) / most}%`;
    cells[3].textContent = number(row.score);
    cells[4].textContent = number(row.train_score);
    if (held) cells[5].textContent = number(row.valid_score);
  });
}

/** How much of the variance is explained by the first so many, of all rows and of rows held out. */
export function drawCurve(svg, series) {
  const { rem, width, height } = frame(svg, (rem) => 15 * rem);
  const [left, right, top, bottom] = [2.8 * rem, width - 0.6 * rem, 0.6 * rem, height - 2.2 * rem];
  const of = (name) => series.flatMap(({ rows }) => rows.map((row) => row[name]).filter((x) => x !== undefined));
  const values = [...of("train_score"), ...of("valid_score")];
  const steps = Math.max(1, ...series.map(({ rows }) => rows.length));
  const high = Math.max(0.05, ...values), low = Math.min(0, Math.max(-1, Math.min(...values, 0)));
  const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5].find((one) => (high - low) / one <= 6) ?? 0.5;
  const [from, to] = [Math.floor(low / step) * step, Math.ceil(high / step - 1e-9) * step];
  const x = (rank) => (steps === 1 ? (left + right) / 2 : left + ((rank - 1) / (steps - 1)) * (right - left - rem) + rem / 2);
  const y = (value) => bottom - ((Math.max(value, from) - from) / (to - from)) * (bottom - top);
  for (let at = 0; at <= Math.round((to - from) / step); at += 1) {
    const value = from + at * step;
    svg.append(shape("line", { class: Math.abs(value) < 1e-9 ? "zero" : "axis", x1: left, x2: right, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: left - 0.5 * rem, y: y(value) + 0.28 * rem, "text-anchor": "end" }, String(Number(value.toFixed(2)))));
  }
  const every = Math.max(1, Math.ceil(steps / Math.floor((right - left) / (2.2 * rem))));
  for (let rank = 1; rank <= steps; rank += every) svg.append(shape("text", { x: x(rank), y: bottom + 1.1 * rem, "text-anchor": "middle" }, rank));
  svg.append(shape("text", { x: (left + right) / 2, y: height - 0.1 * rem, "text-anchor": "middle" }, "features chosen"));
  const path = (points) => points.map(([a, b], at) => `${at ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`).join("");
  for (const { pane, rows } of series) {
    const held = rows.filter((row) => row.valid_score !== undefined);
    if (held.length) {
      const edge = (sign) => held.map((row) => [x(row.rank), y(row.valid_score + sign * (row.valid_error ?? 0))]);
      svg.append(shape("path", { class: `band ${side(pane)}`, d: `${path([...edge(1), ...edge(-1).reverse()])}Z` }));
      svg.append(shape("path", { class: `path held ${side(pane)}`, d: path(held.map((row) => [x(row.rank), y(row.valid_score)])) }));
    }
    const known = rows.filter((row) => row.train_score !== undefined);
    svg.append(shape("path", { class: `path ${side(pane)}`, d: path(known.map((row) => [x(row.rank), y(row.train_score)])) }));
    if (steps <= 60) {
      for (const row of known) svg.append(titled(shape("circle", { class: side(pane), cx: x(row.rank), cy: y(row.train_score), r: 0.22 * rem }), `${row.rank}. ${row.feature}: ${number(row.train_score)}`));
    }
  }
}

/** Bars to both sides of zero. */
export function drawCoefficients(svg, series) {
  const rows = series.flatMap(({ pane, rows: all }) => all.slice(0, 30).filter((row) => row.standardized !== undefined).map((row) => ({ pane, ...row })));
  const names = [...new Set(rows.map((row) => row.feature))];
  const { rem, width } = frame(svg, (rem) => Math.max(4, 1.5 * Math.max(names.length, 1) + 0.4) * rem);
  if (!names.length) {
    svg.append(shape("text", { x: 0, y: 1.4 * rem }, "None: texts, groups and several classes have no single coefficient."));
    return;
  }
  const letters = Math.min(22, Math.max(...names.map((name) => name.length)));
  const left = Math.min(letters * 0.52 * rem + 0.6 * rem, width * 0.42), right = width - 3.6 * rem;
  const most = Math.max(...rows.map((row) => Math.abs(row.standardized)), 1e-300);
  const hasMinus = rows.some((row) => row.standardized < 0), hasPlus = rows.some((row) => row.standardized > 0);
  const room = hasMinus ? 3 * rem : 0;
  const zero = hasMinus && hasPlus ? left + room + (right - left - room) / 2 : hasMinus ? right : left;
  const unit = (hasMinus && hasPlus ? (right - left - room) / 2 : right - left - room) / most;
  const fits = Math.floor(left / (0.52 * rem));
  names.forEach((name, at) => {
    const line = (0.2 + 1.5 * at) * rem;
    svg.append(titled(shape("text", { class: "ink", x: 0, y: line + 0.95 * rem }, short(name, fits)), name));
    const bars = rows.filter((row) => row.feature === name);
    bars.forEach((row, of) => {
      const size = Math.max(1, Math.abs(row.standardized) * unit), tall = (1.1 * rem) / bars.length;
      const start = row.standardized < 0 ? zero - size : zero;
      svg.append(titled(shape("rect", { class: side(row.pane), x: start, y: line + of * tall, width: size, height: tall - 1, rx: 2 }), `${name}: ${number(row.coefficient)} in the column's own units`));
      if (bars.length === 1) svg.append(shape("text", { x: row.standardized < 0 ? start - 0.3 * rem : start + size + 0.3 * rem, y: line + 0.9 * rem, "text-anchor": row.standardized < 0 ? "end" : "start" }, number(row.standardized)));
    });
  });
  svg.append(shape("line", { class: "zero", x1: zero, x2: zero, y1: 0, y2: (0.2 + 1.5 * names.length) * rem }));
}

/** Shades of a colour that an eye tells apart. */
const SHADES = 24;

/** The correlations of the chosen features with each other, and with the label in the last column. */
export function drawCorrelation(svg, correlation) {
  const names = correlation?.features ?? [];
  const letters = Math.min(20, Math.max(4, ...names.map((name) => name.length)));
  const layout = (rem, width) => {
    const left = Math.min(letters * 0.52 * rem + 2 * rem, width * 0.4);
    const cell = Math.min((width - left - 1.2 * rem) / (names.length + 1.4), 2 * rem);
    return { left, cell };
  };
  const { rem, width } = frame(svg, (rem, width) => Math.max(4 * rem, 1.5 * rem + names.length * layout(rem, width).cell + 0.4 * rem));
  if (!names.length) {
    svg.append(shape("text", { x: 0, y: 1.4 * rem }, "Nothing is chosen yet."));
    return;
  }
  const { left, cell } = layout(rem, width);
  const fits = Math.floor((left - 1.8 * rem) / (0.52 * rem)), size = Math.min(0.78 * rem, cell * 0.85);
  // Cells of one shade are one path: a few dozen of them instead of a thousand squares.
  const paths = new Map();
  const square = (value, column, row) => {
    const shade = Math.round(Math.min(1, Math.abs(value)) * SHADES) * Math.sign(value);
    const path = `M${(left + column * cell).toFixed(1)} ${(1.5 * rem + row * cell).toFixed(1)}h${(cell - 1).toFixed(1)}v${(cell - 1).toFixed(1)}h-${(cell - 1).toFixed(1)}z`;
    paths.set(shade, (paths.get(shade) ?? "") + path);
  };
  names.forEach((name, row) => {
    const middle = 1.5 * rem + (row + 0.5) * cell + size * 0.35;
    svg.append(shape("text", { x: 1.4 * rem, y: middle, "text-anchor": "end", "font-size": size }, row + 1));
    svg.append(titled(shape("text", { class: "ink", x: 1.8 * rem, y: middle, "font-size": size }, short(name, fits)), name));
    if (names.length <= 12 || row % 5 === 4 || row === 0) svg.append(shape("text", { x: left + (row + 0.5) * cell, y: 1.1 * rem, "text-anchor": "middle", "font-size": size }, row + 1));
    correlation.matrix[row].forEach((value, column) => square(value, column, row));
    square(correlation.label[row], names.length + 0.4, row);
  });
  svg.append(shape("path", { class: "none", d: [...paths.values()].join("") }));
  for (const [shade, d] of paths) svg.append(shape("path", { class: shade < 0 ? "minus" : "plus", opacity: Math.abs(shade) / SHADES, d }));
  const title = shape("title", {});
  svg.append(title);
  // Which two features a cell is of, for the pointer.
  svg.onpointermove = ({ offsetX, offsetY }) => {
    const scale = width / svg.clientWidth;
    const row = Math.floor((offsetY * scale - 1.5 * rem) / cell), column = Math.floor((offsetX * scale - left) / cell);
    const other = column < names.length ? names[column] : state.label;
    const value = column < names.length ? correlation.matrix[row]?.[column] : correlation.label[row];
    title.textContent = column < 0 || value === undefined ? "" : `${names[row]} and ${other}: ${number(value)}`;
  };
  svg.append(shape("text", { x: left + (names.length + 0.9) * cell, y: 1.1 * rem, "text-anchor": "middle", "font-size": size }, "label"));
}

/** Features that are listed at first of those that were not chosen. */
const LISTED = 12;

/** The features that no method chose, those first that have most to do with the label. */
export function drawOthers(place, features, chosen, found, all) {
  const wanted = features.filter((feature) => !chosen.has(feature.name) && feature.name.toLowerCase().includes(found.toLowerCase()));
  wanted.sort((a, b) => state.forbidden.includes(b.name) - state.forbidden.includes(a.name) || Math.abs(b.correlation) - Math.abs(a.correlation));
  const shown = wanted.slice(0, all ? wanted.length : LISTED);
  const row = (feature) => {
    const facts = [feature.never, feature.values ? `${whole(feature.values)} values` : "", feature.missing ? `${whole(feature.missing)} NULL` : ""];
    return make("tr", {}, nameCell(feature.name), make("td", { className: "number" }, number(feature.correlation)), make("td", { className: "why" }, facts.filter(Boolean).join(", ")), make("td", { className: "tickbox" }, tick("force", feature.name)), make("td", { className: "tickbox" }, tick("forbid", feature.name)));
  };
  const head = heading(["feature"], ["with label", "number"], [""], ["force", "tickbox"], ["forbid", "tickbox"]);
  const more = wanted.length - shown.length;
  const parts = [make("table", {}, make("thead", {}, head), make("tbody", {}, ...shown.map(row)))];
  if (more > 0) parts.push(make("button", { type: "button", className: "more-rows", id: "all-others" }, `${whole(more)} more`));
  if (!wanted.length) parts[0] = make("p", { className: "hint" }, found ? "No such feature." : "All are chosen.");
  place.replaceChildren(...parts);
}

/** A feature in detail: what is like it, and what would come in its place. */
export function drawDetail(detail, rows) {
  $("#detail-title").textContent = detail.feature;
  const rank = rows.find((row) => row.feature === detail.feature)?.rank;
  const facts = [rank ? `rank ${rank}` : "not chosen", `correlation with ${state.label}: ${number(detail.correlation)}`];
  if (detail.mean !== null) facts.push(`mean ${number(detail.mean)}`, `standard deviation ${number(detail.deviation)}`);
  $("#detail-facts").textContent = facts.join(" · ");
  const most = (entry) => {
    const rail = make("div", { className: "rail" }, make("div"));
    rail.firstChild.style.width = `${100 * Math.abs(entry.correlation)}%`;
    return make("tr", {}, nameCell(entry.feature), make("td", { className: "bar" }, rail), make("td", { className: "number" }, number(entry.correlation)));
  };
  $("#alike").replaceChildren(make("table", {}, make("thead", {}, heading(["feature"], ["", "bar"], ["correlation", "number"])), make("tbody", {}, ...detail.alike.map(most))));
  const place = $("#without");
  if (!detail.without) return place.replaceChildren(make("p", { className: "hint" }, "This method reads the rows: forbid the feature and run it again to see."));
  const before = new Set(rows.map((row) => row.feature)), after = new Set(detail.without.map((row) => row.feature));
  const comes = detail.without.filter((row) => !before.has(row.feature)).map((row) => row.feature);
  const goes = [...before].filter((feature) => feature !== detail.feature && !after.has(feature));
  const [with_, without] = [rows.at(-1)?.train_score, detail.without.at(-1)?.train_score];
  const lines = [];
  if (!rank) lines.push("It is not chosen: without it nothing changes.");
  else if (comes.length) lines.push(`In its place: ${comes.join(", ")}.`);
  else lines.push("Nothing takes its place.");
  if (goes.length) lines.push(`Gone with it: ${goes.join(", ")}.`);
  if (rank && with_ !== undefined && without !== undefined) lines.push(`Explained: ${number(with_)} with it, ${number(without)} without.`);
  const list = detail.without.map((row) => make("tr", {}, make("td", { className: "rank number" }, row.rank), nameCell(row.feature), make("td", { className: "number" }, number(row.train_score))));
  place.replaceChildren(...lines.map((line) => make("p", {}, line)), make("table", {}, make("thead", {}, heading(["#", "number"], ["feature"], ["explained", "number"])), make("tbody", {}, ...list.slice(0, 12))));
}
