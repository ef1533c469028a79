#!/usr/bin/env bash
# Drives the page of `pursuit ui` in a real browser, and draws pictures with Vega. Installs what it needs: headless Chromium from Debian, the rest from npm.
# With `bench` it measures how long a change takes to be seen, with `pictures` it makes those of the documents.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v chromium > /dev/null || ! command -v npm > /dev/null; then
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core nodejs npm > /dev/null; }; then
        echo 'no browser can be installed here: the page was not driven' >&2
        exit 0
    fi
fi
tools=target/browser
npm install --silent --no-audit --no-fund --prefix "$tools" playwright-core@1.65.1 vega@5.33.0 vega-lite@5.23.0 ajv@8.17.1 > /dev/null

PURSUIT=${PURSUIT:-target/debug/pursuit}
[ -n "${PURSUIT_BUILT:-}" ] || cargo build --quiet
export PURSUIT NODE_PATH="$PWD/$tools/node_modules" CHROMIUM="$(command -v chromium)"
if [ $# = 0 ]; then set -- page; node tests/browser/specs.cjs; fi
node "tests/browser/$1.cjs" "${@:2}"
