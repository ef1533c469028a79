// What a person does on the page, in a real browser.

const assert = require("node:assert/strict");
const fs = require("node:fs");
const { launch, open, read, start } = require("./browser.cjs");

const names = (page, pane = 0) => page.$$eval(`.side[data-pane="${pane}"] tbody tr`, (rows) => rows.map((row) => row.dataset.feature));
const sql = (page, pane = 0) => page.textContent(`.query[data-pane="${pane}"] pre`);
const settled = (page, test, ...args) => page.waitForFunction(test, ...args, { timeout: 20_000 });
const rows = (page, count, pane = 0) =>
  settled(page, ([pane, count]) => document.querySelectorAll(`.side[data-pane="${pane}"] tbody tr`).length === count, [pane, count]);

/** Sets a slider as a hand does, step by step. */
async function drag(page, slider, to) {
  await page.focus(slider);
  for (let at = Number(await page.inputValue(slider)); at !== to; at += Math.sign(to - at)) {
    await page.keyboard.press(at < to ? "ArrowRight" : "ArrowLeft");
  }
}

async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return { name: download.suggestedFilename(), text: fs.readFileSync(await download.path(), "utf8") };
}

const steps = {
  async "opens with a ranking and its query"({ page }) {
    assert.equal((await names(page)).length, 5);
    assert.match(await page.textContent("#status"), /442 rows, 11 columns/);
    assert.match(await sql(page), /FROM \w+\(sample\.diabetes,\n {2}label => 'label',\n {2}k => 5\)/);
    assert.equal(await page.$$eval("#curve circle", (all) => all.length), 5);
    await page.waitForSelector("#correlation path.plus");
    const cells = await page.$eval("#correlation path.none", (path) => path.getAttribute("d").split("M").length - 1);
    assert.equal(cells, 30);
  },

  async "moves with k"({ page }) {
    const before = await names(page);
    await drag(page, "#k", 8);
    await rows(page, 8);
    assert.deepEqual((await names(page)).slice(0, 5), before);
    assert.match(await sql(page), /k => 8/);
    await drag(page, "#k", 4);
    await rows(page, 4);
  },

  async "forbids a column, and forces another"({ page }) {
    const [first] = await names(page);
    await page.check(`input[aria-label="forbid ${first}"]`);
    await settled(page, (first) => ![...document.querySelectorAll('.side[data-pane="0"] tbody tr')].some((row) => row.dataset.feature === first), first);
    assert.match(await sql(page), new RegExp(`exclude => \\['${first}'\\]`));
    const other = await page.$eval('#others input[data-force]:not(:checked)', (box) => box.dataset.force);
    const free = other === first ? "age" : other;
    await page.check(`#others input[aria-label="force ${free}"]`);
    await settled(page, (free) => document.querySelector('.side[data-pane="0"] tbody tr').dataset.feature === free, free);
    assert.match(await sql(page), new RegExp(`must_include => \\['${free}'\\]`));
    await page.click("#reset");
    await settled(page, (first) => document.querySelector('.side[data-pane="0"] tbody tr').dataset.feature === first, first);
  },

  async "judges by rows held out"({ page }) {
    await page.check("#validate");
    await page.waitForSelector("#curve path.held");
    assert.match(await sql(page), /folds => 5/);
    await page.selectOption("#count", "one_se");
    await settled(page, () => document.querySelector('.query pre').textContent.includes("'one_se'"));
    assert.ok((await names(page)).length > 0);
    await page.selectOption("#count", "exactly");
    await page.uncheck("#validate");
    await settled(page, () => !document.querySelector('.query pre').textContent.includes("folds"));
  },

  async "says what a feature is redundant with, and what would replace it"({ page }) {
    await page.click('.side[data-pane="0"] tbody tr td.name button');
    await page.waitForSelector("#detail[open]");
    assert.ok((await page.$$("#alike tbody tr")).length >= 5);
    assert.match(await page.textContent("#without"), /In its place: \w+\.|Nothing takes its place/);
    assert.match(await page.textContent("#without"), /Explained: 0\.\d+ with it, 0\.\d+ without/);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#detail:not([open])", { state: "attached" });
  },

  async "compares two methods"({ page }) {
    const methods = await page.$$eval('fieldset[data-pane="1"] optgroup:first-of-type option', (all) => all.map((one) => one.value));
    await page.selectOption('fieldset[data-pane="1"] .selector', methods.at(-1));
    await rows(page, 4, 1);
    assert.match(await page.textContent("#common"), /\d of 4 in common/);
    assert.match(await sql(page, 1), new RegExp(`FROM ${methods.at(-1)}\\(`));
    assert.equal(await page.$$eval("#curve path.path", (all) => all.length), 2);
    // Every method of the menu that answers at once does so.
    for (const method of methods) {
      await page.selectOption('fieldset[data-pane="1"] .selector', method);
      await settled(page, (method) => document.querySelector('.query[data-pane="1"] pre').textContent.includes(`FROM ${method}(`), method);
      assert.equal(await page.isVisible("#problem"), false, `${method}: ${await page.textContent("#problem")}`);
    }
  },

  async "runs what reads the rows in the background, and cancels it"({ page }) {
    const slow = await page.$$eval('fieldset[data-pane="1"] optgroup:last-of-type option', (all) => all.map((one) => one.value));
    const method = slow.find((one) => one.includes("attention")) ?? slow[0];
    await page.selectOption('fieldset[data-pane="1"] .selector', method);
    await page.click('.side[data-pane="1"] .run button.main');
    await page.waitForSelector('.side[data-pane="1"] .run button:has-text("Cancel")');
    await page.click('.side[data-pane="1"] .run button:has-text("Cancel")');
    await settled(page, () => document.querySelector('.side[data-pane="1"] .run p').textContent.startsWith("cancelled"));
    // A second one is left alone, and the first pane goes on moving meanwhile.
    await page.click('.side[data-pane="1"] .run button.main');
    await drag(page, "#k", 3);
    await rows(page, 3);
    await page.waitForFunction(() => /took/.test(document.querySelector('.side[data-pane="1"] .run p')?.textContent), null, { timeout: 180_000 });
    assert.equal((await names(page, 1)).length, 4);
    assert.match(await page.textContent('.side[data-pane="1"] .run p'), /the question has changed since/);
    await page.selectOption('fieldset[data-pane="1"] .selector', "");
    await settled(page, () => document.querySelector('.side[data-pane="1"]').hidden);
  },

  async "exports"({ page }) {
    const csv = await saved(page, 'button[data-export="csv"]');
    assert.equal(csv.name, "ranking.csv");
    assert.deepEqual(csv.text.trim().split("\n").slice(1).map((line) => line.split(",")[0]), ["1", "2", "3"]);
    assert.ok(csv.text.startsWith("rank,feature,score,"), csv.text);
    const svg = await saved(page, 'button[data-of="curve"]');
    assert.ok(svg.text.startsWith("<svg") && svg.text.includes('fill="rgb(') && !svg.text.includes("var("), svg.text.slice(0, 300));
    const query = await saved(page, 'button[data-export="sql"]');
    assert.equal(query.text.trim(), `${await sql(page)};`);
    await page.click('button[data-copy="0"]');
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await sql(page));
  },

  async "takes another label, and only some rows"({ page }) {
    await page.click("#rows summary");
    await page.selectOption("#by", "sex");
    await settled(page, () => document.querySelectorAll("#groups input").length === 2);
    assert.match(await sql(page), /exclude => \['sex'\]/);
    await page.uncheck("#groups input >> nth=0");
    await settled(page, () => document.querySelector(".query pre").textContent.includes('WHERE "sex" ='));
    await page.selectOption("#label", "bmi");
    await settled(page, () => document.querySelector(".query pre").textContent.includes("label => 'bmi'"));
    await rows(page, 3);
    assert.ok(!(await names(page)).includes("bmi"));
  },

  async "is usable with the keyboard alone"({ page }) {
    await page.keyboard.press("Home");
    await page.evaluate(() => document.activeElement.blur());
    const seen = new Set();
    for (let at = 0; at < 60; at += 1) {
      await page.keyboard.press("Tab");
      seen.add(await page.evaluate(() => document.activeElement.id || document.activeElement.dataset.feature || document.activeElement.className));
    }
    for (const id of ["label", "k", "count", "validate", "selector"]) assert.ok(seen.has(id), `${id} is not reached: ${[...seen]}`);
    const unnamed = await page.$$eval("button, input, select", (all) =>
      all.filter((one) => one.checkVisibility() && !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length || one.title)).map((one) => one.outerHTML));
    assert.deepEqual(unnamed, []);
  },

  async "fits a phone"({ page }) {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
  },
};

/** So many rows that nobody waits for the last: the page answers from those that have been read, and moves on with them. */
async function whileReading(browser) {
  const program = await start("SELECT *, 3 * a + 2 * b + sin(i * i) AS label FROM (SELECT i, sin(i * 1.7) AS a, sin(i * 2.9) AS b, sin(i * 0.37) AS c FROM (SELECT value AS i FROM generate_series(1, 10000000000)))", "--label", "label");
  try {
    const { page, problems } = await open(browser, program.address);
    assert.equal((await names(page))[0], "a");
    const before = await page.textContent("#status");
    assert.match(before, /reading; the answer is of the first \d/);
    await drag(page, "#k", 2);
    await rows(page, 2);
    assert.deepEqual(await names(page), ["a", "b"]);
    await settled(page, (before) => document.querySelector("#status").textContent.split(" rows")[0] !== before, before.split(" rows")[0]);
    assert.doesNotMatch(await page.textContent("#status"), /read in/);
    assert.deepEqual(problems, []);
  } finally {
    program.stop();
  }
}

(async () => {
  const program = await start("sample.diabetes");
  const browser = await launch();
  let failed = 0;
  try {
    const opened = await open(browser, program.address, { permissions: ["clipboard-read", "clipboard-write"] });
    await read(opened.page);
    for (const [name, step] of Object.entries(steps)) {
      try {
        await step(opened);
        assert.deepEqual(opened.problems, []);
        console.log(`ok: the page ${name}`);
      } catch (error) {
        failed += 1;
        console.error(`failed: the page ${name}\n${error.stack}`);
        break;
      }
    }
    if (!failed) {
      await whileReading(browser);
      console.log("ok: the page answers while a long table is read");
    }
  } catch (error) {
    failed += 1;
    console.error(`failed: the page answers while a long table is read\n${error.stack}`);
  } finally {
    await browser.close();
    program.stop();
  }
  process.exit(failed ? 1 : 0);
})();
