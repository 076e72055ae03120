// All that a run holds is untrusted: it reaches the page as text nodes alone, and its control characters are spelled out.

const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888"]; // as in agents.runs.plots
const FIRST = /^(reward$|eval)/;
const SHOWN =
  /^(reward|(eval|eval_best|problems)\/[^/]+|parts\/[^/]+\/reward|frac_.*|entropy|kl|grad_norm|.*mean_length|tokens_per_s)$/;
const COLUMNS = { advantage: "token_advantages", "log-probability": "log_probabilities", reward: "token_scores" };
const MOST_CHARACTERS = 20000, MOST_TOKENS = 20000, PAGE = 50, EVERY_MS = 2000, SVG = "http://www.w3.org/2000/svg";
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const view = { seen: "", runs: [], colors: [], first: 0, color: "advantage", chosen: new Map() };
const find = (id) => document.getElementById(id);
const escaped = (one) => `⟨U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
const visible = (text) => String(text).replace(CONTROLS, escaped);
const indented = (value) => JSON.stringify(value, null, JSON.stringify(value ?? null).length < 100 ? 0 : 1) ?? "";
const asText = (value) => (typeof value === "string" ? value : indented(value));
const isNumber = (value) => typeof value === "number";
const number = (value) => {
  if (!isNumber(value)) return visible(value ?? "–");
  return value && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) ? value.toExponential(2) : `${+value.toPrecision(4)}`;
};

function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children.map((child) => (child instanceof Node ? child : visible(child))));
  return node;
}
const span = (className, text, title = "") => element("span", { className, title: visible(title) }, text);
const tableRow = (...cells) => element("tr", {}, ...cells.map((cell) => element("td", {}, ...[cell].flat())));

function shape(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

async function ask(name, query = []) {
  const answer = await fetch(`${name}?${new URLSearchParams(query)}`);
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

// A long text is cut until somebody asks for all of it.
function prose(value) {
  const text = asText(value), shown = element("pre", {}, text.slice(0, MOST_CHARACTERS));
  if (text.length <= MOST_CHARACTERS) return shown;
  const more = element("button", {}, `show all ${text.length} characters`);
  more.onclick = () => { shown.replaceChildren(visible(text)); more.remove(); };
  return element("div", {}, shown, more);
}

function drawRuns() {
  find("runs").replaceChildren(...view.runs.map((run, index) => {
    const swatch = span("swatch", "");
    swatch.style.background = COLORS[view.colors[index] % COLORS.length];
    const step = run.training ? `step ${run.step} of ${run.steps ?? "?"}` : `evaluation, score ${number(run.score)}`;
    const written = run.written ? `written ${new Date(run.written * 1000).toLocaleString()}` : "nothing written yet";
    const damaged = run.damaged ? `${run.damaged} lines can't be read` : "";
    const errored = run.errored ? `, ${run.errored} without a score` : "";
    return tableRow([swatch, run.folder], step, written, `${run.completions} completions${errored}`, damaged);
  }));
  const named = (run, text) => element("li", {}, view.runs.length > 1 ? `${run.folder}: ${text}` : text);
  find("warnings").replaceChildren(...view.runs.flatMap((run) => run.warnings.reverse().map((text) => named(run, text))));
  if (!find("run").length) find("run").append(...view.runs.map((run, value) => element("option", { value }, run.folder)));
}

async function drawCurves() {
  const isShown = (metric) => view.chosen.get(metric) ?? SHOWN.test(metric);
  const wanted = (names) => ask("curves", [["smooth", find("smooth").value], ...names.map((name) => ["metric", name])]);
  const { metrics, colors } = await wanted([]);
  const names = metrics.filter(isShown).sort((one, other) => FIRST.test(other) - FIRST.test(one));
  const { panels } = await wanted(names);
  view.colors = colors;
  find("curves").replaceChildren(...names.filter((name) => panels[name].length).map((name) => chart(name, panels[name])));
  if (!metrics.length) find("curves").append("No training step is finished.");
  find("metrics").replaceChildren(...metrics.map((name) => {
    const onchange = ({ target }) => { view.chosen.set(name, target.checked); guarded(drawCurves); };
    return element("label", {}, element("input", { type: "checkbox", checked: isShown(name), onchange }), ` ${name}`);
  }));
}

function ticks(low, high) {
  const unit = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit * 4.01 >= high - low);
  return Array.from({ length: 6 }, (_, index) => (Math.ceil(low / step) + index) * step).filter((tick) => tick <= high);
}

function range(values) {
  const known = values.filter(isNumber), middle = known[0] ?? 0;
  const widened = ([least, most], value) => [Math.min(least, value), Math.max(most, value)];
  const [low, high] = known.reduce(widened, [middle, middle]);
  return low < high ? [low, high] : [low - (Math.abs(low) || 1) / 10, low + (Math.abs(low) || 1) / 10];
}

function chart(metric, bands) {
  const [width, height, left, right, top, bottom] = [360, 170, 44, 354, 6, 148];
  const [low, high] = range(bands.flatMap((band) => [...band.mean, ...band.low, ...band.high, ...band.raw]));
  const [begin, end] = range(bands.flatMap((band) => band.steps));
  const x = (step) => (left + ((step - begin) / (end - begin)) * (right - left)).toFixed(1);
  const y = (value) => (top + ((high - value) / (high - low)) * (bottom - top)).toFixed(1);
  const point = (column) => (step, at) => (isNumber(column[at]) ? [`${x(step)},${y(column[at])}`] : []);
  const points = (band, column) => band.steps.flatMap(point(column));
  const picture = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  for (const tick of ticks(low, high)) {
    picture.append(shape("line", { stroke: "#8884", x1: left, x2: width, y1: y(tick), y2: y(tick) }));
    picture.append(shape("text", { x: left - 4, y: y(tick), "text-anchor": "end" }, number(tick)));
  }
  for (const tick of ticks(begin, end).filter(Number.isInteger))
    picture.append(shape("text", { x: x(tick), y: height - 3, "text-anchor": "middle" }, `${tick}`));
  for (const band of bands) {
    const color = COLORS[band.color % COLORS.length], mean = points(band, band.mean);
    const drawn = (name, at, more) => picture.append(shape(name, { points: at.join(" "), fill: "none", ...more }));
    const edges = [...points(band, band.high), ...points(band, band.low).reverse()];
    drawn("polygon", edges, { class: "band", fill: color, opacity: 0.2 });
    drawn("polyline", points(band, band.raw), { stroke: color, opacity: 0.3 });
    drawn("polyline", mean, { class: "curve", stroke: color, "stroke-width": 1.8 });
    for (const [cx, cy] of mean.length < 30 ? mean.map((one) => one.split(",")) : [])
      picture.append(shape("circle", { cx, cy, r: 2, fill: color }));
  }
  const value = span("value", "");
  const say = (step) => { value.textContent = visible(bands.map((band) => reading(band, step, bands.length > 1)).join("; ")); };
  const stepAt = (position) => begin + ((position * width - left) / (right - left)) * (end - begin);
  picture.onmousemove = ({ offsetX }) => say(stepAt(offsetX / picture.clientWidth));
  picture.onmouseleave = () => say(end);
  say(end);
  return element("figure", {}, element("figcaption", {}, span("", metric), value), picture);
}

// What a curve is at the step that is nearest to one.
function reading(band, wanted, named) {
  const distance = (at) => Math.abs(band.steps[at] - wanted);
  const at = band.steps.reduce((best, _, other) => (distance(other) < distance(best) ? other : best), 0);
  const interval = isNumber(band.low[at]) ? ` [${number(band.low[at])}, ${number(band.high[at])}]` : "";
  return `${named ? `${band.label} ` : ""}${number(band.mean[at])}${interval} at ${band.steps[at]}`;
}

async function drawGroups() {
  const run = find("run").value || 0, filter = find("filter");
  const list = await ask("groups", [["run", run], ["show", filter.value || "all"], ["first", view.first]]);
  if (!filter.length) filter.append(...list.filters.map((name) => element("option", {}, name)));
  const last = view.first + list.groups.length;
  find("range").textContent = list.count ? `${view.first + 1} to ${last} of ${list.count}` : "none";
  find("newer").disabled = !view.first;
  find("older").disabled = last >= list.count;
  find("groups").replaceChildren(...list.groups.map((group) => {
    const [step, longest] = [group.key[0], Math.max(...group.samples.map((sample) => sample[2]))];
    const chips = group.samples.map(([score, outcome]) => chip(score, outcome));
    const row = tableRow(step ? `step ${step}` : "", group.problem.slice(0, 80), chips, `${longest} tokens at most`);
    row.onclick = () => guarded(() => openGroup(run, group.key));
    return row;
  }));
  const hint = view.runs[run].training ? ": rlvr train writes some of each step with --log-rollouts" : " yet";
  if (!view.runs[run].completions) find("groups").append(tableRow(`This run has recorded no completions${hint}.`));
}
const chip = (score, outcome) =>
  span(`chip ${/^\w+$/.test(outcome) ? outcome : ""}`, number(score), outcome ?? "not judged");

async function openGroup(run, key) {
  const rows = await ask("completions", [["run", run], ["step", key[0]], ["group", key[1]]]), first = rows[0];
  const choice = (name) => element("option", { selected: name === view.color }, name);
  const colors = element("select", {}, ...Object.keys(COLUMNS).map(choice)), cards = element("div", { className: "cards" });
  const draw = () => cards.replaceChildren(...rows.map((row) => card(row, rows)));
  colors.onchange = () => { view.color = colors.value; draw(); };
  draw();
  const prompt = Array.isArray(first.prompt) ? first.prompt.map(said) : [prose(first.prompt ?? "not recorded")];
  const title = element("h2", {}, `${first.problem_id}${first.step === undefined ? "" : `, step ${first.step}`}`);
  const [asked, reference] = [element("h3", {}, "prompt"), element("h3", {}, "reference")];
  const legend = element("label", {}, "tokens colored by ", colors);
  find("group").replaceChildren(title, asked, ...prompt, reference, prose(first.reference), legend, cards);
}
const said = ({ role, name, content }) =>
  element("div", { className: "turn" }, span("role", name ? `${role} ${name}` : role), prose(content));

function card(row, rows) {
  const advantage = isNumber(row.advantage) ? `advantage ${number(row.advantage)}` : "";
  const facts = [row.outcome ?? "not judged", `${row.tokens} tokens`, row.truncated ? "truncated" : "", advantage];
  const turns = Array.isArray(row.dialogue) ? [...row.dialogue.map(said), element("h3", {}, "tokens of the policy")] : [];
  const verdict = Object.entries({ answer: row.answer, "decided by": row.applied, detail: row.detail, error: row.error })
    .filter(([, value]) => !["", "null", "{}"].includes(asText(value)));
  const title = element("h3", {}, chip(row.score, row.outcome), ` ${facts.filter(Boolean).join(", ")}`);
  const lines = verdict.flatMap(([name, value]) => [span(name === "error" ? "role wrong" : "role", name), prose(value)]);
  return element("article", { className: "card" }, title, ...turns, colored(row, rows), ...lines);
}

// The tokens, if they are recorded, on backgrounds from red over none to green, relative to the largest value in the group.
function colored(row, rows) {
  const column = COLUMNS[view.color], values = row[column], texts = row.token_texts;
  if (!Array.isArray(texts) || !Array.isArray(values) || texts.length > MOST_TOKENS) return prose(row.completion);
  const sizes = rows.flatMap((one) => one[column] ?? []).map((value) => Math.abs(value) || 0);
  const largest = sizes.reduce((one, other) => Math.max(one, other), 0) || 1;
  const share = (value) => (view.color === "log-probability" ? Math.exp(Math.min(value, 0)) - 1 : value / largest);
  return element("pre", {}, ...texts.map((text, index) => {
    const part = share(Number(values[index])), token = span("token", text, `${view.color} ${number(values[index])}`);
    const [name, strength] = [part > 0 ? "--good" : "--bad", Math.min(Math.abs(part), 1) * 0.6];
    if (strength > 0.01) token.style.background = `rgba(var(${name}), ${strength})`;
    return token;
  }));
}

async function guarded(work) {
  const note = await work().then(() => "", (error) => `${error.message} (does rlvr watch still run?)`);
  find("note").textContent = visible(note);
}

async function poll() {
  await guarded(async () => {
    view.runs = await ask("state");
    const version = JSON.stringify(view.runs.map((run) => run.version));
    if (version === view.seen) return;
    await drawCurves();
    drawRuns();
    await drawGroups();
    view.seen = version;
  });
  setTimeout(poll, EVERY_MS);
}

const turnTo = (first) => { view.first = Math.max(first, 0); guarded(drawGroups); };
find("smooth").onchange = () => guarded(drawCurves);
for (const id of ["run", "filter"]) find(id).onchange = () => turnTo(0);
for (const [id, by] of [["newer", -PAGE], ["older", PAGE]]) find(id).onclick = () => turnTo(view.first + by);
poll();
