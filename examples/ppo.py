# SPDX-License-Identifier: Apache-2.0
"""What Stable-Baselines3's PPO trains with its MLP policy: an actor and a critic of two hidden
layers of 64 units each, without shared layers. docs/warnings.md asks whether it wants a GPU.

    ./run --network=examples/ppo.py:make --input=17 --loss-function=mse --optimizer=adam \
        --batch=64 --scale=1,4,16 --mode=eager --threads=1
"""

import torch
from torch import nn

OBSERVATIONS, ACTIONS = 17, 6  # of HalfCheetah


def mlp(width: int, outputs: int) -> nn.Module:
    hidden = nn.Linear(OBSERVATIONS, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
    return nn.Sequential(*hidden, nn.Linear(width, outputs))


class ActorCritic(nn.Module):
    """The mean and the deviation of each action, and the value of the observation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.actor, self.critic = mlp(width, ACTIONS), mlp(width, 1)
        self.log_deviation = nn.Parameter(torch.zeros(ACTIONS))

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean = self.actor(observations)
        return mean, self.log_deviation.exp().expand_as(mean), self.critic(observations)


def make(width: int = 64) -> nn.Module:
    return ActorCritic(width)
