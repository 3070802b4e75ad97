"""A training loop of one's own learns what the trainer learns."""

from __future__ import annotations

from pathlib import Path

import torch

import modgraph
from modgraph.data import Arrays
from modgraph.data.batches import RandomOrder
from tests.api.digits import SPEC, tensors

ROUTED = """
model routed {
  input  image: float[1, 8, 8]
  target label: class[10]
  pool   expert[3] = linear(8)
  router gate = cosine(2)
  logits = image -> flatten -> expert by gate -> linear(10)
  output logits
  loss cross_entropy(logits, label)
  loss balance = 0.1 * importance(gate)
}
"""


def test_an_own_loop_gives_the_weights_of_the_trainer_to_the_bit(tmp_path: Path) -> None:
    images, labels = tensors()
    recipe = {"train": {"epochs": 2, "batch": 50, "optimizer": {"name": "adam", "lr": 0.01}}}
    run = modgraph.train(
        modgraph.loads(SPEC), recipe, data={"train": {"image": images, "label": labels}}, out=tmp_path / "run"
    )
    order = RandomOrder(Arrays({"image": images.numpy(), "label": labels.numpy()}), batch=50)

    model = modgraph.loads(SPEC).build(seed=0).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    for epoch in range(2):
        for rows in order.draw(0, epoch):
            optimizer.zero_grad()
            computed = model.compute({"image": images[rows], "label": labels[rows]})
            computed.loss.backward()
            optimizer.step()

    trained = run.model().state_dict()
    unequal = [name for name, value in model.state_dict().items() if not torch.equal(value, trained[name])]
    assert unequal == [], "the same order, the same weights"


def test_a_batch_gives_outputs_losses_and_what_routers_record() -> None:
    images, labels = tensors()
    model = modgraph.loads(ROUTED).build()
    computed = model.compute({"image": images[:4], "label": labels[:4]}, routing=True)
    assert computed.outputs["logits"].shape == (4, 10)
    assert [*computed.losses] == ["loss.cross_entropy", "loss.balance"]
    assert torch.equal(computed.loss, torch.stack([*computed.losses.values()]).sum()), "the total is their sum"
    assert computed.routing["expert.gates"].shape == (4, 1, 3), "[batch, tokens, modules]"
    assert "\n" not in repr(computed)
    assert len(repr(computed)) < 300, repr(computed)
