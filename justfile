# What CI checks besides the tests.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# All tests, as in the README.
test:
    cargo test --workspace

# The selectors alone: no DataFusion, seconds.
test-fast:
    cargo test -p pursuit-udfs

# One file of tests/slt: `just slt omp`.
slt NAME:
    PURSUIT_SLT={{NAME}} cargo test --test main every_query

# Write today's answers into tests/slt, to be read before they are committed.
accept NAME:
    PURSUIT_SLT={{NAME}} PURSUIT_SLT_ACCEPT=1 cargo test --test main every_query

# The page of `pursuit ui` in a browser, and pictures of it to be looked at.
test-page:
    tests/browser/test.sh
    tests/browser/test.sh pictures

# The picture of the page in docs/.
picture-page:
    tests/browser/test.sh pictures docs/pictures document

# The kernels against other libraries, on one core.
bench-kernels:
    cargo bench --manifest-path benches/Cargo.toml

# Whole queries against scikit-learn and against a plain scan, in one run. Makes its own virtual environment.
bench-peers *ARGS:
    cargo build --release
    benches/peers.sh {{ARGS}}
