# A terminal of 160 columns that a script types into: sourced by tests/terminal/test.sh and docs/tour.sh. Installs tmux from Debian where it is missing.
if ! command -v tmux > /dev/null; then
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tmux > /dev/null; }; then
        echo 'no tmux can be installed here: nothing was typed into a terminal' >&2
        exit 0
    fi
fi
folder=$(mktemp -d)
terminal="tmux -u -L pursuit_$$ -f /dev/null"
trap '$terminal kill-server 2>/dev/null || true; rm -rf "$folder"' EXIT
# The history of whoever runs this is none of ours, and letters beyond ASCII are letters on every machine.
export PURSUIT_HISTORY="$folder/history" LC_ALL=C.UTF-8
$terminal new-session -d -x 160 -y 60 "env PS1='$ ' NO_COLOR=1 sh"
$terminal set-option -g history-limit 5000

# All that the terminal shows, and has shown since it was wiped.
screen() {
    $terminal capture-pane -p -S -
}

wipe() {
    $terminal send-keys -R
    $terminal clear-history
}

# Types a text, without the Enter after it.
keys() {
    # For tmux a semicolon at the end is the end of its own command.
    case $1 in *\;) set -- "${1%?}\\;" ;; esac
    $terminal send-keys -l "$1"
    sleep 0.1
}

# Waits until the screen stands still with a prompt on its last line.
settled() {
    before=
    for _ in $(seq 1 600); do
        sleep 0.2
        now=$(screen)
        if [ "$now" = "$before" ]; then
            case $(printf '%s\n' "$now" | grep -v '^ *$' | tail -1) in 'pursuit>' | 'pursuit> ' | '$' | '$ ') return 0 ;; esac
        fi
        before=$now
    done
    echo "the screen never came to rest" >&2
    exit 1
}

# Types a line and waits until it is answered.
line() {
    keys "$1"
    $terminal send-keys Enter
    settled
}
