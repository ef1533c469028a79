// Asks the program that was started on this machine, and draws what it answers. Nobody else is asked.

import { $, $$, build, make, mark, question, selectorOf, setMost, showGroups, state } from "./controls.js";
import { drawCoefficients, drawCorrelation, drawCurve, drawDetail, drawOthers, drawRanking, number, whole } from "./draw.js";
import { offer } from "./export.js";

/** What is on the screen: for each pane an answer, and the features of the table. */
const screen = { answers: [null, null], sql: ["", ""], runs: [null, null], features: [], featuresOf: "", found: "", all: false };

async function ask(path, body) {
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  const answer = await response.json();
  if (answer?.error && !("reading" in answer) && !("is_over" in answer)) throw new Error(answer.error);
  return answer;
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const panes = () => [0, 1].filter((pane) => state.panes[pane].selector);

/** While one question is under way only the latest of those that follow is kept. */
let [isAsking, isStale, since] = [false, false, null];

function changed(event) {
  since ??= event?.timeStamp ?? performance.now();
  isStale = true;
  if (!isAsking) void go();
}

async function go() {
  isAsking = true;
  try {
    while (isStale) {
      isStale = false;
      const begun = since;
      since = null;
      // Folds take several times as long: the ranking moves first, and they follow when the hand rests.
      const isQuick = state.validate && state.count === "exactly";
      let isReading = await round(!isQuick && state.validate);
      if (begun !== null) drawn(begun);
      if (isQuick) {
        await pause(60);
        if (!isStale) isReading = await round(true);
      }
      if (isReading && !isStale) {
        await pause(250);
        isStale = true;
      }
    }
    say("");
  } catch (error) {
    say(error.message.includes("fetch") ? "The program has ended: start pursuit ui again." : error.message);
  }
  isAsking = false;
  // What came in while the mistake was told.
  if (isStale) void go();
}

/** Kept for whoever measures how long a change takes to be seen. */
function drawn(begun) {
  requestAnimationFrame(() => setTimeout(() => performance.measure("change to drawn", { start: begun, end: performance.now() })));
}

/** Asks for every pane and draws; whether the table is still being read. */
async function round(judged) {
  const asked = panes();
  const answers = await Promise.all(asked.map((pane) => ask("ask", question(pane, judged))));
  let problem = "";
  asked.forEach((pane, at) => {
    const { answer, sql, at_once, error } = answers[at];
    screen.sql[pane] = sql;
    problem ||= error ?? answers[at].reading.error ?? "";
    if (!at_once) return;
    screen.runs[pane] = null;
    // Of a table that is not read yet nothing is known: what was there is of another question.
    screen.answers[pane] = answer ?? { rows: [], correlation: null };
  });
  if (!state.panes[1].selector) screen.answers[1] = screen.runs[1] = null;
  const [{ reading, of_rows }] = answers;
  showReading(reading, of_rows, answers[0].answer?.milliseconds);
  draw(answers.map((answer) => answer.at_once));
  say(problem);
  const of = JSON.stringify([state.label, state.weights, state.by, state.groups, state.levels, state.nulls, state.task, of_rows]);
  if (of_rows && of !== screen.featuresOf) {
    screen.featuresOf = of;
    void listFeatures();
  }
  return !reading.is_complete && !reading.error;
}

async function listFeatures() {
  const known = await ask("features", question(0, false)).catch(() => null);
  if (!known) return;
  screen.features = known.features;
  showGroups(known.groups, changed);
  const before = state.k;
  setMost(open());
  if (state.k !== before) changed();
  drawOthersNow();
}

/** How many features there are to choose from. */
const open = () => screen.features.filter((feature) => !feature.never && !state.forbidden.includes(feature.name)).length;

function showReading(reading, ofRows, milliseconds) {
  const bar = $("#reading");
  bar.hidden = reading.is_complete;
  if (reading.total) [bar.max, bar.value] = [reading.total, reading.rows];
  else bar.removeAttribute("value");
  const of = reading.total && !reading.is_complete ? ` of ${whole(reading.total)}` : "";
  const how = reading.is_complete ? `read in ${number(reading.seconds)} s` : `reading; the answer is of the first ${whole(ofRows)}`;
  const answered = milliseconds === undefined || !reading.is_complete ? "" : ` · answered in ${number(milliseconds)} ms`;
  $("#status").textContent = `${whole(reading.rows)}${of} rows, ${whole(state.about.columns.length)} columns · ${how}${answered}`;
}

function say(problem) {
  const place = $("#problem");
  place.hidden = !problem;
  if (place.textContent !== problem) place.textContent = problem;
}

const rowsOf = (pane) => screen.answers[pane]?.rows.filter((row) => row.rank !== undefined) ?? [];

function draw(atOnce) {
  const series = panes().map((pane) => ({ pane, rows: rowsOf(pane) }));
  const sets = series.map(({ rows }) => new Set(rows.map((row) => row.feature)));
  const isPair = series.length > 1;
  for (const pane of [0, 1]) {
    const place = $(`.side[data-pane="${pane}"]`);
    place.hidden = !state.panes[pane].selector;
    $(`.query[data-pane="${pane}"]`).hidden = place.hidden;
    if (place.hidden) continue;
    $(`.query[data-pane="${pane}"] pre`).textContent = screen.sql[pane];
    showTitle(place, pane, isPair);
    showRun(place, pane, atOnce[series.findIndex((one) => one.pane === pane)]);
    drawRanking(place, pane, rowsOf(pane), isPair ? sets[1 - pane] : null);
  }
  const both = isPair ? [...sets[0]].filter((feature) => sets[1].has(feature)).length : 0;
  $("#common").textContent = isPair && sets[0].size && sets[1].size ? `${both} of ${Math.max(sets[0].size, sets[1].size)} in common` : "";
  $("#sql-note").textContent = state.validate && state.forbidden.length ? "with exclude, SQL draws other folds: what is held out differs a little" : "";
  const held = series.some(({ rows }) => rows.some((row) => row.valid_score !== undefined));
  const entry = (dot, text) => make("span", {}, make("i", { className: `dot ${dot}` }), text);
  $("#legend").replaceChildren(...(isPair ? series.map(({ pane }) => entry(pane ? "two" : "", state.panes[pane].selector)) : []), ...(held ? [make("span", {}, "dashed: rows held out, ± standard error")] : []));
  drawCurve($("#curve"), series);
  drawCoefficients($("#coefficients"), series);
  announce(series.filter(({ rows }) => rows.length));
  // The rest may follow a moment after the ranking is on the screen.
  cancelAnimationFrame(rest);
  rest = requestAnimationFrame(() => setTimeout(() => {
    drawCorrelation($("#correlation"), (screen.answers[0] ?? screen.answers[1])?.correlation);
    drawOthersNow();
  }));
}

let rest;

/** Says in words what was drawn, once the hand rests. */
let speech;
function announce(series) {
  const of = ({ pane, rows }) => `${state.panes[pane].selector}: ${rows.length} features explain ${number(rows.at(-1).train_score)} of the variance, the first is ${rows[0].feature}`;
  const text = series.map(of).join("; ");
  $("#curve").setAttribute("aria-label", text);
  clearTimeout(speech);
  speech = setTimeout(() => { if ($("#said").textContent !== text) $("#said").textContent = text; }, 700);
}

function drawOthersNow() {
  // Whoever is typing there keeps the focus, and whoever ticked a box finds it again.
  const focused = document.activeElement?.closest?.("#others") && document.activeElement.getAttribute("aria-label");
  const chosen = new Set(panes().flatMap((pane) => rowsOf(pane).map((row) => row.feature)));
  drawOthers($("#others"), screen.features, chosen, screen.found, screen.all);
  if (focused) $$("#others input").find((box) => box.getAttribute("aria-label") === focused)?.focus();
}

function showTitle(place, pane, isShown) {
  let title = $("h3", place);
  if (!title) place.prepend(title = make("h3", {}, make("i", { className: pane ? "dot two" : "dot" }), make("span")));
  title.hidden = !isShown;
  $("span", title).textContent = state.panes[pane].selector;
}

/** A method that reads the rows is begun by hand, shows how far it is, and can be cancelled. */
function showRun(place, pane, isAtOnce) {
  let box = $(".run", place);
  if (isAtOnce) {
    box?.remove();
    return;
  }
  if (!box) {
    box = make("div", { className: "run" }, make("p"), make("progress", { hidden: true, "aria-label": "Progress" }), make("button", { type: "button", className: "main" }));
    place.insertBefore(box, $("table", place));
    screen.answers[pane] = null;
    $("button", box).addEventListener("click", () => (screen.runs[pane]?.is_over === false ? cancel(pane) : start(pane)));
  }
  const run = screen.runs[pane];
  const [text, bar, button] = [$("p", box), $("progress", box), $("button", box)];
  const isRunning = run?.is_over === false;
  bar.hidden = !isRunning;
  if (run?.share) bar.value = run.share;
  else bar.removeAttribute("value");
  button.textContent = isRunning ? "Cancel" : run ? "Run again" : `Run ${state.panes[pane].selector}`;
  const isSame = run && run.sql === screen.sql[pane];
  if (!run) text.textContent = `${selectorOf(pane).name} reads the rows themselves, which takes longer.`;
  else if (isRunning) text.textContent = `${run.line ?? "begins"} (${number(run.seconds)} s)`;
  else if (run.is_cancelled) text.textContent = `cancelled after ${number(run.seconds)} s`;
  else if (run.error) text.textContent = run.error;
  else text.textContent = `took ${number(run.seconds)} s${isSame ? "" : "; the question has changed since"}`;
}

async function start(pane) {
  const run = screen.runs[pane] = await ask("run", question(pane)).catch((error) => { say(error.message); return null; });
  screen.answers[pane] = null;
  while (run && screen.runs[pane]?.id === run.id) {
    changed();
    if (screen.runs[pane].is_over) break;
    await pause(200);
    const next = await ask("state", { id: run.id }).catch(() => null);
    if (!next || screen.runs[pane]?.id !== run.id) break;
    screen.runs[pane] = next;
    if (next.rows) screen.answers[pane] = (await ask("complete", { rows: next.rows, question: question(pane, false) }).catch(() => null)) ?? { rows: next.rows, correlation: null };
  }
}

async function cancel(pane) {
  screen.runs[pane] = await ask("cancel", { id: screen.runs[pane].id }).catch(() => null);
  changed();
}

async function showDetail(feature) {
  const pane = panes()[0];
  const detail = await ask("feature", { feature, question: question(pane, false) }).catch((error) => { say(error.message); return null; });
  if (!detail) return;
  if (!selectorOf(pane).at_once) detail.without = null;
  drawDetail(detail, rowsOf(pane));
  if (!$("#detail").open) $("#detail").showModal();
}

function listen() {
  document.addEventListener("change", ({ target, timeStamp }) => {
    const { force, forbid } = target.dataset ?? {};
    if (force === undefined && forbid === undefined) return;
    mark(force ?? forbid, force === undefined ? "forbidden" : "forced", target.checked);
    if (state.forced.length > state.k) state.k = $("#k").value = $("#k-exact").value = state.forced.length;
    setMost(open());
    changed({ timeStamp });
  });
  document.addEventListener("click", ({ target }) => {
    const { feature, copy, export: kind, of } = target.dataset ?? {};
    if (feature !== undefined) void showDetail(feature);
    if (copy !== undefined) void offer("copy", { text: screen.sql[copy], button: target });
    if (kind !== undefined) void offer(kind, { svg: of && $(`#${of}`), name: of, rows: panes().flatMap((pane) => screen.answers[pane]?.rows ?? []), sql: panes().map((pane) => screen.sql[pane]) });
    if (target.id === "all-others") { screen.all = true; drawOthersNow(); }
  });
  // The same feature stands out wherever it is.
  document.addEventListener("pointerover", ({ target }) => {
    const feature = target.closest?.("tr")?.dataset.feature;
    for (const row of $$("#results tr[data-feature]")) row.classList.toggle("here", feature !== undefined && row.dataset.feature === feature);
  });
  $("#search").addEventListener("input", (event) => { screen.found = event.target.value; drawOthersNow(); });
  $("#theme").addEventListener("click", () => {
    const isDark = document.documentElement.classList.contains("dark") || (!document.documentElement.classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.classList.toggle("dark", !isDark);
    document.documentElement.classList.toggle("light", isDark);
  });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; changed(); } });
}

const about = await (await fetch("about")).json();
$("#title").textContent = about.title;
document.title = `${about.title} · Pursuit`;
build(about, changed);
listen();
changed();
