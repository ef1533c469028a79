// How long a change takes to be seen: from the press of a key on a slider, or a click on a tick box, to the new ranking on the screen. And of a long table, how long
// until there is a first ranking, from some of its rows, and until all of it is read.

const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { launch, open, read, start } = require("./browser.cjs");

/** A table of so many columns, of which ten tell something. */
function table(columns, rows) {
  const file = path.join("target", "browser", `x${columns}_${rows}.parquet`);
  if (fs.existsSync(file)) return file;
  const names = Array.from({ length: columns }, (_, at) => `x${String(at).padStart(4, "0")}`);
  const values = names.map((name, at) => `sin(i * ${(1.1 + at * 0.7310585).toFixed(6)}) AS ${name}`);
  const label = names.filter((_, at) => at % Math.ceil(columns / 10) === 3).map((name, at) => `${at + 1} * ${name}`);
  const sql = `COPY (SELECT *, ${label.join(" + ")} + 5 * sin(n * n * 0.37) AS label FROM (SELECT CAST(i AS DOUBLE) AS n, ${values.join(", ")} FROM (SELECT value AS i FROM generate_series(1, ${rows})))) TO '${file}' STORED AS PARQUET`;
  execFileSync(process.env.PURSUIT, ["-q", "-c", sql]);
  return file;
}

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

async function measure(browser, columns, limit, changes) {
  const program = await start(table(columns, 4000));
  const { page, problems } = await open(browser, program.address);
  await read(page);
  await page.waitForTimeout(500);
  const seen = () => page.evaluate(() => performance.getEntriesByName("change to drawn").length);
  const wait = (count) => page.waitForFunction((count) => performance.getEntriesByName("change to drawn").length > count, count, { timeout: 20_000, polling: 5 });
  const after = async (act) => { const count = await seen(); await act(); await wait(count); };
  await page.evaluate(() => performance.clearMeasures());
  await page.focus("#k");
  for (let at = 0; at < changes; at += 1) {
    await after(() => page.keyboard.press(Math.floor(at / 25) % 2 ? "ArrowLeft" : "ArrowRight"));
  }
  for (let at = 0; at < 10; at += 1) await after(() => page.click('.side[data-pane="0"] tbody tr >> nth=1 >> input[data-forbid]'));
  const times = (await page.evaluate(() => performance.getEntriesByName("change to drawn").map((one) => one.duration))).sort((a, b) => a - b);
  await page.context().close();
  program.stop();
  const [half, most] = [quantile(times, 0.5), quantile(times, 0.95)];
  console.log(`${columns} columns: median ${half.toFixed(1)} ms, 95 % within ${most.toFixed(1)} ms (${times.length} changes; at most ${limit} ms wanted)`);
  if (problems.length) throw new Error(problems.join("\n"));
  return most <= limit;
}

async function measureLong(browser, columns, rows) {
  const program = await start(table(columns, rows));
  const begun = Date.now();
  const { page, problems } = await open(browser, program.address);
  const first = Date.now() - begun;
  await read(page);
  const all = Date.now() - begun;
  await page.context().close();
  program.stop();
  console.log(`${rows.toLocaleString("en")} rows of ${columns} columns: first ranking after ${first / 1000} s, all read after ${all / 1000} s`);
  if (problems.length) throw new Error(problems.join("\n"));
}

(async () => {
  const browser = await launch();
  let isFast = true;
  try {
    for (const [columns, limit] of [[200, 50], [1000, 300]]) isFast = (await measure(browser, columns, limit, 100)) && isFast;
    await measureLong(browser, 10, 10_000_000);
  } finally {
    await browser.close();
  }
  process.exit(isFast ? 0 : 1);
})();
