#!/bin/sh
# Writes docs/tour.md: what a newcomer types in the first ten minutes, in a terminal of 160 columns, and what comes back.
# `docs/tour.sh --check` writes nothing and fails where the page would be another, times aside.
set -eu
cd "$(dirname "$0")/.."
cargo build -q
page=docs/tour.md
[ "${1:-}" = "--check" ] && page=$(mktemp)
. tests/terminal/tmux.sh

# Types lines, and puts what the terminal then shows onto the page.
prompt='$'
typed() {
    wipe
    for line in "$@"; do line "$line"; done
    printf '```console\n' >> "$page"
    screen | sed -e "1s/^/$prompt /" -e 's/[[:space:]]*$//' -e 's/; [0-9.]* s)/; … s)/' -e 's/stopped after [0-9.]* s/stopped after … s/' |
        sed -e '${/^\(pursuit>\|\$\)$/d}' | awk 'NF {blank=0; print; next} {if (!blank++) print}' | sed -e '${/^$/d}' -e '${/^pursuit>$/d}' >> "$page"
    printf '```\n' >> "$page"
    prompt='pursuit>'
}

say() {
    printf '\n%s\n\n' "$1" >> "$page"
}

printf '# The first ten minutes\n\nMade by `docs/tour.sh`, which types all of this into a terminal of 160 columns. Times are left out.\n' > "$page"
settled
say '**Begin.** `cargo run` opens the shell; the sample tables are there.'
typed "target/debug/pursuit" "SELECT * FROM omp('sample.diabetes', 'label', 5);"
say 'Columns of the answer that are empty are not shown, floats have six digits; `\pset` changes both, and csv and json have all of it. See it:'
typed '\plot'
say '**Ask what there is.** `\h` lists the functions, `\h name` prints the manual of one, `\which` says which selector is for what.'
typed '\h'
typed '\h lasso'
say '**Make mistakes.** Each is one line that names the fix, and the prompt is fresh again.'
typed "SELECT * FROM random_forrest('sample.wine', 'label', 3);" "SELECT * FROM omp('diabetes', 'label', 3);" \
    "SELECT * FROM omp(sample.wine, label => label, n_features => 5);" "SELECT * FROM omp(sample.wine, target => label, k => 5);" \
    "SELECT omp('sample.wine', 'label', 3);" "SELEC 1;"
say '**How many features?** Five folds judge each number of them by rows that the selection has not seen.'
typed "SELECT rank, feature, valid_score, valid_error FROM omp(sample.diabetes, label => label, k => 10, folds => 5);" '\plot curve'
say '**What is in a table, and what is odd about it?**'
typed "SELECT feature, distinct, median, association, flags FROM describe_features(sample.wine, label => label) LIMIT 5;"
say '**Pictures for others.** The ending says how it is written: `.svg`, `.html`, `.vl.json` for Vega-Lite, and `.png` in a build with `--features png`.'
typed "SELECT * FROM correlation_matrix(sample.diabetes) LIMIT 3;" "\\plot $folder/matrix.svg" 'quit'
say 'Where to go from here: [the guide](guide.md), [which selector when](which.md).'
sed -i -e "s#$folder/#/tmp/#" "$page"
if [ "${1:-}" = "--check" ]; then
    diff docs/tour.md "$page" && rm "$page"
fi
