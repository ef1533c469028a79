// Starts the program and a browser that shows its page.

const { spawn } = require("node:child_process");
const { chromium } = require("playwright-core");

/** The program on a table; its address is the first line that it prints. */
async function start(...args) {
  const program = spawn(process.env.PURSUIT, ["ui", ...args, "--no-open", "-q"], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise((resolve, reject) => {
    let text = "";
    program.stdout.on("data", (data) => {
      text += data;
      if (text.includes("\n")) resolve(text.split("\n")[0]);
    });
    program.on("exit", (code) => reject(new Error(`pursuit ended with ${code}`)));
  });
  return { address, stop: () => program.kill() };
}

const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });

/** A page that has its first ranking. What goes wrong in it, and whatever it asks of others, ends up in `problems`. */
async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !url.startsWith("blob:") && !url.startsWith("data:")) problems.push(`asked ${url}`);
  });
  await page.goto(address);
  await page.waitForSelector('.side[data-pane="0"] tbody tr', { timeout: 60_000 });
  return { page, problems };
}

/** Waits until the table has been read. */
const read = (page) => page.waitForFunction(() => document.querySelector("#status").textContent.includes("read in"), null, { timeout: 600_000 });

module.exports = { start, launch, open, read };
