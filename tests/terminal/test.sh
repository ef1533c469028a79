#!/bin/sh
# What only a real terminal shows: what Tab offers, prompts, the history, questions of scripts, the line of progress, Ctrl-C.
set -eu
cd "$(dirname "$0")/../.."
cargo build -q
. tests/terminal/tmux.sh
pursuit=$PWD/target/debug/pursuit

failed() {
    printf 'failed: the terminal %s\n' "$1" >&2
    screen >&2
    exit 1
}

# Waits until the screen shows a text.
shows() {
    for _ in $(seq 1 300); do
        if screen | grep -qF -- "$1"; then return 0; fi
        sleep 0.1
    done
    failed "does not show: $1"
}

hides() {
    if screen | grep -qF -- "$1"; then failed "shows: $1"; fi
}

# A text, Tab as often as it is needed for a list, and what must be on the screen then.
tab() {
    wipe
    keys "$1"
    $terminal send-keys Tab
    sleep 0.4
    $terminal send-keys Tab
    shows "$2"
    $terminal send-keys C-c
    settled
}

ok() {
    printf 'ok: the terminal %s\n' "$1"
}

# In a folder with one file, which is what is left in it in the end. The history is where the user's data are.
mkdir "$folder/empty" "$folder/data"
printf 'a,b\n1,2\n' > "$folder/empty/measured.csv"
settled
line "cd $folder/empty; unset PURSUIT_HISTORY; export XDG_DATA_HOME=$folder/data"
line "$pursuit"

tab 'SELE' 'pursuit> SELECT'
tab 'SELECT * FROM sequential_l' 'sequential_lasso('
tab 'SELECT * FROM omp(sample.diab' 'omp(sample.diabetes'
tab 'SELECT * FROM omp(sample.diabetes, must' 'must_include =>'
tab 'SELECT * FROM omp(sample.diabetes, label => lab' 'label => label'
tab 'SELECT * FROM sample.diabetes WHERE bm' 'WHERE bmi'
tab "SELECT * FROM omp('meas" "omp('measured.csv"
tab '\h sequential_l' '\h sequential_lasso'
tab 'SELECT * FROM omp(sample.wine, ' 'partition_by'
ok 'offers functions, options, tables, columns, keywords and files'

wipe
keys 'SELECT 40'
$terminal send-keys Enter
shows '    ...>'
keys "+ 2 AS sum, 'it"
$terminal send-keys Enter
shows "    ..'>"
line "is' AS text;"
shows '| 42  |'
keys 'SELECT 1 +'
$terminal send-keys Enter
shows '    ...>'
$terminal send-keys C-c
settled
wipe
line 'SELEC 1;'
shows 'syntax error: Expected'
line 'SELECT 7 AS seven;'
shows '| 7     |'
ok 'has a prompt for the lines that follow, and a fresh one after a mistake'

wipe
line 'SELECT * FROM selectors();'
shows '| omp '
if screen | awk 'length($0) > 159 { exit 1 }'; then ok 'fits the list of selectors'; else failed 'is too narrow for selectors()'; fi

wipe
keys "SELECT * FROM sequential_attention(sample.digits, label => label, k => 60, epochs => 100000);"
$terminal send-keys Enter
shows 'Ctrl-C stops)'
shows '[--'
$terminal send-keys C-c
shows 'stopped after'
settled
hides 'Ctrl-C stops)'
ok 'shows how far a selection is, and stops it'

line 'quit'
wipe
line "$pursuit"
$terminal send-keys Up Up
shows 'pursuit> SELECT * FROM sequential_attention(sample.digits'
$terminal send-keys C-c
settled
line 'exit'
[ -s "$folder/data/pursuit/history" ] || failed 'has no history in the folder of the user'
[ "$(ls -A "$folder/empty")" = measured.csv ] || failed 'leaves files behind'
ok 'remembers what was typed, in the folder of the user'

wipe
printf -- '-- How many wines are there?\nSELECT count(*) AS wines FROM sample.wine;\n' > "$folder/data/wines.sql"
line "$pursuit -f $folder/data/wines.sql"
shows '-- How many wines are there?'
shows '| 178   |'
wipe
line "$pursuit -q -f $folder/data/wines.sql"
shows '| 178   |'
hides 'How many'
hides 'row'
wipe
line "$pursuit -q -c \"SELECT count(*) AS n FROM sequential_attention(sample.digits, label => label, k => 60, epochs => 100000, time_limit => 4)\""
shows 'time_limit'
hides 'Ctrl-C stops)'
ok 'asks the question of a script before its answer, and is silent with -q'
