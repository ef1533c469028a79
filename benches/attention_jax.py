"""Sequential attention with the schedule of udfs/src/selectors/sequential_attention/forward.rs, compiled by XLA: one scan for each round.

    attention_jax.py TRAIN.parquet K EPOCHS      prints the seconds of a warm selection
"""

import sys
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq

HIDDEN, BATCH, RATE, ATTENTION_RATE, WARMUP = 67, 128, 1e-3, 3e-2, 0.1


def read(path):
    table = pq.read_table(path)
    x = np.column_stack([table[c].to_numpy().astype(np.float32) for c in table.column_names if c != "label"])
    deviation = x.std(0)
    return ((x - x.mean(0)) / np.where(deviation > 1e-8, deviation, 1)).astype(np.float32), table["label"].to_numpy().astype(np.int32)


def start(key, inputs, classes):
    glorot = jax.nn.initializers.glorot_uniform()
    one, two = jax.random.split(key)
    return [glorot(one, (inputs, HIDDEN)), jnp.zeros(HIDDEN), glorot(two, (HIDDEN, classes)), jnp.zeros(classes)]


def loss(weights, logits, chosen, x, y, warm):
    mask = 1.0 if warm else jnp.where(chosen, 1.0, jax.nn.softmax(jnp.where(chosen, -jnp.inf, logits)))[:, None]
    w1, b1, w2, b2 = weights
    odds = jax.nn.relu(x @ (w1 * mask) + b1) @ w2 + b2
    return jnp.mean(jax.nn.logsumexp(odds, 1) - jnp.take_along_axis(odds, y[:, None], 1)[:, 0])


def adam(values, gradient, first, second, step, rate):
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    size = rate * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    return jax.tree.map(lambda w, m, v: w - size * m / (jnp.sqrt(v) + 1e-7), values, first, second), first, second


@partial(jax.jit, static_argnames="warm")
def train(network, chosen, x, y, batches, warm):
    def step(state, rows):
        weights, first, second, count, logits, lfirst, lsecond, lcount = state
        by_weights, by_logits = jax.grad(loss, (0, 1))(weights, logits, chosen, x[rows], y[rows], warm)
        count, lcount = count + 1, lcount + 1
        weights, first, second = adam(weights, by_weights, first, second, count, RATE)
        if not warm:
            logits, lfirst, lsecond = adam(logits, by_logits, lfirst, lsecond, lcount, ATTENTION_RATE)
        return (weights, first, second, count, logits, lfirst, lsecond, lcount), None

    zeros = jnp.zeros(x.shape[1])
    state, _ = jax.lax.scan(step, (*network, zeros, zeros, zeros, 0.0), batches)
    return state[:4], state[4]


def select(x, y, k, epochs, seed):
    rows, inputs = x.shape
    random = np.random.default_rng(seed)
    batches = np.concatenate([random.permutation(rows)[: rows // BATCH * BATCH].reshape(-1, BATCH) for _ in range(epochs)])
    warm = int(WARMUP * len(batches))
    length = (len(batches) - warm) // k
    weights = start(jax.random.key(seed), inputs, int(y.max()) + 1)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    chosen = jnp.zeros(inputs, bool)
    network, _ = train((weights, zeros, zeros, 0.0), chosen, x, y, jnp.array(batches[:warm]), True)
    order = []
    for at in range(k):
        part = batches[warm + at * length : warm + (at + 1) * length]
        network, logits = train(network, chosen, x, y, jnp.array(part), False)
        order.append(int(jnp.argmax(jnp.where(chosen, -jnp.inf, logits))))
        chosen = chosen.at[order[-1]].set(True)
    return order


if __name__ == "__main__":
    x, y = read(sys.argv[1])
    k, epochs = int(sys.argv[2]), int(sys.argv[3])
    x, y = jnp.array(x), jnp.array(y)
    select(x, y, k, epochs, 0)
    begin = time.perf_counter()
    select(x, y, k, epochs, 1)
    print(time.perf_counter() - begin)
