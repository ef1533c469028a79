//! The benchmarks are in kernels.rs and peers.sh.
