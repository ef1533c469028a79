#!/usr/bin/env bash
# From a change on the page of `pursuit ui` to the new ranking on the screen, in a headless browser: 200 and 1,000 columns. Needs `cargo build --release`.
set -euo pipefail
cd "$(dirname "$0")/.."
PURSUIT=${PURSUIT:-target/release/pursuit} PURSUIT_BUILT=yes tests/browser/test.sh bench
