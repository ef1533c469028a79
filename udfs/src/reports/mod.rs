pub mod evaluate;
