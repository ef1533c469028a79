// Every picture as Vega-Lite: valid by its schema, and drawn by Vega without a warning.

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const Ajv = require("ajv");
const vega = require("vega");
const vegaLite = require("vega-lite");

// What is drawn, and what must be read off the drawing.
const pictures = {
  ranking: [["SELECT * FROM omp('sample.diabetes', 'label', 5)"], ["bmi", "score"]],
  two: [["SELECT * FROM omp('sample.diabetes', 'label', 4) UNION ALL SELECT * FROM correlation('sample.diabetes', 'label', 4)"], ["correlation", "omp"]],
  curve: [["SELECT * FROM omp(sample.diabetes, label => label, k => 8, folds => 5)", "--kind", "curve"], ["valid_score", "rank"]],
  path: [["SELECT * FROM selection_path(sample.diabetes, label => label, selector => 'lasso')"], ["coefficient", "bmi"]],
  stability: [["SELECT * FROM stability_selection(sample.diabetes, label => label, selector => 'omp', k => 4)"], ["frequency"]],
  time: [["SELECT * FROM compare_selectors(sample.diabetes, label => label, selectors => ['omp', 'correlation', 'boosting'], k => 3)"], ["seconds", "boosting"]],
  overlap: [["SELECT * FROM compare_selectors(sample.diabetes, label => label, selectors => ['omp', 'correlation'], k => 3)", "--kind", "grid"], ["omp", "bmi"]],
  correlation: [["SELECT * FROM correlation_matrix(sample.diabetes)"], ["s5"]],
  datum_wise: [["SELECT * FROM datum_wise_curve(sample.iris, label => label, lambda => [0.01, 0.1, 0.3])"], ["accuracy", "mean_features"]],
  pixels: [["SELECT * FROM omp('sample.digits', 'label', 12)", "--image", "8x8"], ["score"]],
};

(async () => {
  const schema = require.resolve("vega-lite").replace(/build.*/, "build/vega-lite-schema.json");
  const ajv = new Ajv({ strict: false, formats: { "color-hex": true, uri: true, "uri-reference": true, email: true } });
  const isValid = ajv.compile(JSON.parse(fs.readFileSync(schema, "utf8")));
  for (const [name, [[sql, ...options], words]] of Object.entries(pictures)) {
    const file = path.join("target", "browser", `${name}.vl.json`);
    execFileSync(process.env.PURSUIT, ["plot", "-q", "-c", sql, ...options, "-o", file]);
    const spec = JSON.parse(fs.readFileSync(file, "utf8"));
    assert.ok(isValid(spec), `${name}: ${ajv.errorsText(isValid.errors)}`);
    const warnings = [];
    const logger = vega.logger(vega.Warn, "warn", (_, level, message) => warnings.push(`${level}: ${[...message].join(" ")}`));
    const view = new vega.View(vega.parse(vegaLite.compile(spec, { logger }).spec), { renderer: "none", logger });
    const svg = await view.toSVG();
    assert.deepEqual(warnings, [], name);
    for (const word of words) assert.ok(svg.includes(`>${word}<`), `${name}: ${word} is not in the drawing`);
    fs.writeFileSync(file.replace(".vl.json", ".vega.svg"), svg);
    console.log(`ok: Vega-Lite draws ${name}`);
  }
})();
