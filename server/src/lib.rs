//! Pursuit for more than one person and more than one machine: a server that speaks PostgreSQL's protocol and Flight SQL, and a cluster.

pub mod allowed;
pub mod cluster;
pub mod errors;
pub mod flight;
pub mod limits;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod postgres;
pub mod scram;
pub mod serve;
pub mod server;
pub mod statement;
pub mod tables;
pub mod tls;
pub mod users;
