"""The CUDA kernels compute what the CPU does; skipped where there is no GPU."""

import pytest
import torch

from dvfl.parties.learner import Adam, Learner

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")


def test_adam_on_a_gpu_equals_the_one_on_the_cpu_and_leaves_the_dead_alone():
    start = torch.randn(5, 3000)
    rule = Adam(2e-3, weight_decay=1e-5)
    cpu, gpu = Learner(start.clone(), rule), Learner(start.cuda(), rule)
    for _ in range(20):
        gradient, alive = torch.randn(5, 3000), torch.rand(5) < 0.6
        alive[4] = False
        for learner in (cpu, gpu):
            learner.gradient.copy_(gradient)
            learner.update(2e-3, alive.to(learner.gradient.device))
    assert torch.allclose(gpu.parameters.cpu(), cpu.parameters, rtol=1e-5, atol=1e-6)
    assert torch.equal(gpu.steps.cpu(), cpu.steps)
    assert torch.equal(gpu.parameters[4].cpu(), start[4])
