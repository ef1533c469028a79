#!/usr/bin/env bash
# A scheduler and some executors on this machine, until Ctrl-C: server/cluster.sh [executors] [port].
set -euo pipefail
cd "$(dirname "$0")"
executors=${1:-3}
port=${2:-50050}
pursuit=${PURSUIT:-target/release/pursuit}
trap 'kill $(jobs -p) 2> /dev/null' EXIT
"$pursuit" scheduler --listen "127.0.0.1:$port" &
sleep 1
for _ in $(seq "$executors"); do
    "$pursuit" executor --scheduler "127.0.0.1:$port" --tasks 2 &
done
echo "pursuit --cluster df://127.0.0.1:$port -c \"SELECT …\""
wait
