"""Write deeplift.json next to this file: what captum's DeepLift says of small networks.

pip install numpy==2.4.6 captum==0.9.0 torch==2.15.0
python deep_lift.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import torch
from captum.attr import DeepLift

HERE = Path(__file__).resolve().parent


def cases():
    """Random networks, rows and references; weights have a row for each input, as ours."""
    torch.manual_seed(0)
    for widths in [[4, 1], [4, 6, 1], [5, 7, 4, 3], [3, 6, 5, 4, 2]]:
        layers = [torch.nn.Linear(*pair).double() for pair in zip(widths, widths[1:])]
        between = [part for layer in layers for part in (layer, torch.nn.ReLU())]
        network = torch.nn.Sequential(*between[:-1])
        x, reference = torch.randn(1, widths[0], dtype=torch.float64), torch.randn(1, widths[0], dtype=torch.float64)
        found = [DeepLift(network).attribute(x, reference, target=output)[0].tolist() for output in range(widths[-1])]
        kept = [{"weights": layer.weight.T.flatten().tolist(), "bias": layer.bias.tolist()} for layer in layers]
        yield {"layers": kept, "x": x[0].tolist(), "reference": reference[0].tolist(), "contributions": found}


content = {
    "versions": {name: version(name) for name in ["captum", "torch"]},
    "networks": list(cases()),
}
lines = [f"{json.dumps(key)}: " + (json.dumps(value) if isinstance(value, dict) else "[\n " + ",\n ".join(map(json.dumps, value)) + "]") for key, value in content.items()]
(HERE / "deeplift.json").write_text("{" + ",\n".join(lines) + "}\n")
