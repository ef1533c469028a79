// The question: what the controls say, and what is forced and forbidden.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/** An element with attributes and children; texts are texts, never markup. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list" && key !== "form") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export const state = {
  about: null, label: "", k: 5, count: "exactly", validate: false, levels: 50,
  weights: "", by: "", groups: null, task: "auto", nulls: "mean",
  panes: [{ selector: "", options: {} }, { selector: "", options: {} }],
  forced: [], forbidden: [],
};

/** Levels that are told apart if nobody says. */
const LEVELS = 50;

const isNumber = (kind) => kind === "number" || kind === "whole number";
const words = (allowed) => [...allowed.matchAll(/'([^']*)'/g)].map((match) => match[1]);
const plain = (value) => value.replace(/^'(.*)'$/, "$1");
export const selectorOf = (pane) => state.about.selectors.find((other) => other.name === state.panes[pane].selector);

/** What is asked of a pane's method, as the server and SQL have it. */
export function question(pane, judged = state.validate) {
  const { selector, options } = state.panes[pane];
  const settings = { k: state.count === "exactly" ? state.k : state.count, ...options };
  if (state.forced.length) settings.must_include = state.forced;
  if (state.forbidden.length) settings.exclude = state.forbidden;
  if (judged) settings.folds = state.about.folds;
  if (state.levels !== LEVELS && hasTexts()) settings.max_levels = state.levels;
  for (const [name, usual] of [["weights", ""], ["task", "auto"], ["nulls", "mean"]]) {
    if (state[name] !== usual) settings[name] = state[name];
  }
  const split = state.by ? { by: state.by, groups: state.groups } : null;
  return { label: state.label, selector, settings, split };
}

export const hasTexts = () => state.about.columns.some((column) => column.kind === "text" && column.name !== state.label);

/** Forces or forbids a feature, or leaves it to the method. */
export function mark(feature, list, isOn) {
  for (const name of ["forced", "forbidden"]) state[name] = state[name].filter((other) => other !== feature);
  if (isOn) state[list].push(feature);
}

function fill(select, entries, value) {
  select.replaceChildren(...entries.map(([key, text]) => make("option", { value: key }, text)));
  select.value = value;
}

function fillSelectors(select, isOptional, value) {
  const group = (label, wanted) => {
    const found = state.about.selectors.filter((selector) => selector.at_once === wanted);
    return make("optgroup", { label }, ...found.map((selector) => make("option", { value: selector.name }, selector.name)));
  };
  const none = isOptional ? [make("option", { value: "" }, "nothing")] : [];
  select.replaceChildren(...none, group("answer at once", true), group("read the rows, in the background", false));
  select.value = value;
}

/** One option of a method: a menu of words, a tick box, or a field. */
function option(spec, pane, changed) {
  const own = state.panes[pane].options;
  const set = (value) => {
    if (value === undefined || String(value) === plain(spec.default)) delete own[spec.name];
    else own[spec.name] = value;
    changed();
  };
  const about = { title: spec.description, "aria-label": spec.name };
  let input;
  if (spec.kind === "boolean") {
    input = make("input", { type: "checkbox", checked: spec.default === "true", onchange: () => set(input.checked), ...about });
  } else if (spec.kind === "text" && words(spec.allowed).length) {
    input = make("select", { onchange: () => set(input.value), ...about });
    fill(input, words(spec.allowed).map((word) => [word, word]), plain(spec.default));
  } else {
    const placeholder = spec.default === "NULL" ? "none" : spec.default;
    input = make("input", { type: "number", step: spec.kind === "whole number" ? "1" : "any", placeholder, ...about });
    input.addEventListener("change", () => set(input.value === "" ? undefined : Number(input.value)));
  }
  return make("label", { className: "option" }, make("span", {}, spec.name), input);
}

function showOptions(fieldset, pane, changed) {
  const spec = selectorOf(pane);
  const [first, more] = [$(":scope > .options", fieldset), $("details .options", fieldset)];
  const usable = (spec?.options ?? []).filter((one) => isNumber(one.kind) || one.kind === "boolean" || (one.kind === "text" && words(one.allowed).length));
  const isWord = (one) => one.kind === "text";
  first.replaceChildren(...usable.filter(isWord).slice(0, 2).map((one) => option(one, pane, changed)));
  const rest = usable.filter((one) => !usable.filter(isWord).slice(0, 2).includes(one));
  more.replaceChildren(...rest.map((one) => option(one, pane, changed)));
  $("details", fieldset).hidden = rest.length === 0;
  $(".summary", fieldset).textContent = spec ? spec.summary : "";
}

/** Fills the controls with what the table and the methods are, and calls `changed` whenever the question does. */
export function build(about, changed) {
  state.about = about;
  state.label = about.label;
  const features = about.columns.length - 1;
  state.k = Math.min(5, Math.max(1, features));
  const usable = about.columns.filter((column) => column.kind !== "other");
  fill($("#label"), usable.map((column) => [column.name, column.name]), about.label);
  const allowed = (name) => words(about.common.find((one) => one.name === name).allowed).map((word) => [word, word]);
  fill($("#task"), allowed("task"), "auto");
  fill($("#nulls"), allowed("nulls").filter(([word]) => word !== "error"), "mean");
  $("#folds").textContent = `(${about.folds} folds)`;
  showColumns();

  const first = about.selectors.find((selector) => selector.at_once) ?? about.selectors[0];
  state.panes[0].selector = first.name;
  for (const fieldset of $$("fieldset.pane")) {
    const pane = Number(fieldset.dataset.pane);
    const select = $(".selector", fieldset);
    fillSelectors(select, pane > 0, state.panes[pane].selector);
    showOptions(fieldset, pane, changed);
    select.addEventListener("change", () => {
      state.panes[pane] = { selector: select.value, options: {} };
      showOptions(fieldset, pane, changed);
      changed();
    });
  }

  const setK = (value) => {
    state.k = Math.min(Math.max(1, Math.round(value) || 1), Number($("#k-exact").max));
    [$("#k").value, $("#k-exact").value] = [state.k, state.k];
  };
  setMost(features);
  setK(state.k);
  $("#k").addEventListener("input", (event) => { setK(Number(event.target.value)); changed(event); });
  $("#k-exact").addEventListener("input", (event) => { if (event.target.value !== "") { setK(Number(event.target.value)); changed(event); } });
  $("#levels").addEventListener("input", (event) => {
    state.levels = Number(event.target.value);
    $("#levels-value").textContent = state.levels;
    changed(event);
  });
  $("#count").addEventListener("change", (event) => {
    state.count = event.target.value;
    if (state.count === "one_se") $("#validate").checked = state.validate = true;
    $("#validate").disabled = state.count === "one_se";
    $("#k").disabled = $("#k-exact").disabled = state.count !== "exactly";
    changed();
  });
  $("#validate").addEventListener("change", (event) => { state.validate = event.target.checked; changed(); });
  for (const name of ["task", "nulls", "weights"]) {
    $(`#${name}`).addEventListener("change", (event) => { state[name] = event.target.value; changed(); });
  }
  $("#by").addEventListener("change", (event) => { [state.by, state.groups] = [event.target.value, null]; showGroups([], changed); changed(); });
  $("#label").addEventListener("change", (event) => {
    Object.assign(state, { label: event.target.value, forced: [], forbidden: [], by: "", groups: null, weights: "" });
    showColumns();
    showGroups([], changed);
    changed();
  });
  $("#reset").addEventListener("click", () => { [state.forced, state.forbidden] = [[], []]; changed(); });
  $("#controls").addEventListener("submit", (event) => event.preventDefault());
}

/** The columns that may have the weights, or that rows may be grouped by. */
function showColumns() {
  const others = state.about.columns.filter((column) => column.name !== state.label);
  const named = (found) => [["", "none"], ...found.map((column) => [column.name, column.name])];
  fill($("#weights"), named(others.filter((column) => column.kind === "number" || column.kind === "integer")), state.weights);
  fill($("#by"), [["", "all rows"], ...named(others.filter((column) => ["text", "integer", "boolean"].includes(column.kind))).slice(1)], state.by);
  $("#levels-field").hidden = !hasTexts();
}

/** The most features that there are to choose from. */
export function setMost(features) {
  const most = Math.max(1, features);
  $("#k").max = Math.min(most, 100);
  $("#k-exact").max = most;
  if (state.k > most) state.k = $("#k").value = $("#k-exact").value = most;
}

/** The groups that rows come in, each with a tick box. */
export function showGroups(groups, changed) {
  const ticks = $("#groups");
  const shown = $$("input", ticks);
  if (groups.length && shown.length === groups.length && groups.every((group, at) => shown[at].value === group.literal)) {
    groups.forEach((group, at) => { $("span", shown[at].parentElement).textContent = group.rows.toLocaleString("en"); });
    return;
  }
  ticks.replaceChildren(...(state.by ? groups : []).map((group) => {
    const input = make("input", { type: "checkbox", checked: !state.groups || state.groups.includes(group.literal), value: group.literal });
    input.addEventListener("change", () => {
      const ticked = $$("input:checked", ticks).map((other) => other.value);
      state.groups = ticked.length === groups.length ? null : ticked;
      changed();
    });
    return make("label", { className: "tick" }, input, plain(group.literal), make("span", {}, group.rows.toLocaleString("en")));
  }));
}
