# SPDX-License-Identifier: Apache-2.0
"""The callbacks of docs/howto/module-in-hand.md watch a training of each framework's trainer."""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch.optim import optimizer as of_torch  # noqa: E402

import crossover_bench  # noqa: E402
from crossover_bench.place import ROOT  # noqa: E402

GUIDE = ROOT / "docs" / "howto" / "module-in-hand.md"
STEPS = 30


def watch_of(framework: str):
    """The module, and an instance of the guide's class."""
    module = pytest.importorskip(framework, reason=f"{framework} is not installed here")
    (block,) = re.findall(
        rf"```python\n(class Watch\({framework}\..*?)```", GUIDE.read_text(), re.S
    )
    names = {framework: module, "crossover_bench": crossover_bench}
    exec(block, names)
    return module, names["Watch"]()


def rows() -> torch.utils.data.Dataset:
    return torch.utils.data.TensorDataset(torch.rand(4 * STEPS, 8))


def in_lightning(lightning, watch, folder) -> None:
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(8, 1)

        def training_step(self, batch, _):
            return self.a(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    options = {"max_epochs": 1, "accelerator": "cpu", "default_root_dir": folder}
    trainer = lightning.Trainer(callbacks=[watch], **options, **dict.fromkeys(quiet, False))
    trainer.fit(Net(), torch.utils.data.DataLoader(rows(), batch_size=4))


def in_transformers(transformers, watch, folder) -> None:
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(8, 1)

        def forward(self, x):
            return {"loss": self.a(x).square().mean()}

    options = {"per_device_train_batch_size": 4, "num_train_epochs": 1, "save_strategy": "no"}
    options |= {"use_cpu": True, "disable_tqdm": True, "report_to": [], "output_dir": str(folder)}
    transformers.Trainer(
        Net(),
        transformers.TrainingArguments(**options),
        data_collator=lambda parts: {"x": torch.stack([x for (x,) in parts])},
        train_dataset=rows(),
        callbacks=[watch],
    ).train()


@pytest.mark.parametrize(
    ("framework", "train"), [("lightning", in_lightning), ("transformers", in_transformers)]
)
def test_the_guides_callback_watches(framework, train, tmp_path, capsys):
    """Takes seconds, as the framework is loaded."""
    module, watch = watch_of(framework)
    train(module, watch, tmp_path)
    shown = capsys.readouterr().err
    assert shown.count("A step takes") == 1 and "(10" in shown and "the loader" in shown
    assert not of_torch._global_optimizer_post_hooks
