// Pictures of the page: for the documents, and to be looked at on small and on large screens, light and dark.

const path = require("node:path");
const { launch, open, read, start } = require("./browser.cjs");

(async () => {
  const [folder = "target/browser"] = process.argv.slice(2);
  const program = await start("sample.diabetes");
  const browser = await launch();
  const shoot = async (name, options, prepare = async () => {}, whole = true) => {
    const { page } = await open(browser, program.address, options);
    await read(page);
    await prepare(page);
    await page.mouse.move(0, 0);
    await page.waitForTimeout(400);
    await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: whole });
    await page.context().close();
  };
  const compare = async (page) => {
    const methods = await page.$$eval('fieldset[data-pane="1"] optgroup:first-of-type option', (all) => all.map((one) => one.value));
    await page.selectOption('fieldset[data-pane="1"] .selector', methods.find((one) => one === "correlation") ?? methods.at(-1));
    await page.check("#validate");
    await page.waitForSelector("#curve path.held");
    await page.waitForTimeout(300);
  };
  const detail = async (page) => {
    await page.click('.side[data-pane="0"] tbody tr td.name button');
    await page.waitForSelector("#detail[open]");
  };
  try {
    if (process.argv[3] === "document") {
      await shoot("page", { viewport: { width: 1280, height: 860 } }, compare, false);
    } else {
      for (const colorScheme of ["light", "dark"]) {
        await shoot(`360-${colorScheme}`, { viewport: { width: 360, height: 740 }, colorScheme });
        await shoot(`1280-${colorScheme}`, { viewport: { width: 1280, height: 900 }, colorScheme }, compare);
        await shoot(`2160-${colorScheme}`, { viewport: { width: 3840, height: 2160 }, colorScheme }, compare);
        await shoot(`detail-${colorScheme}`, { viewport: { width: 1280, height: 900 }, colorScheme }, detail, false);
      }
    }
  } finally {
    await browser.close();
    program.stop();
  }
})();
