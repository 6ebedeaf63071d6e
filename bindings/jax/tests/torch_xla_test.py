"""PyTorch/XLA trains the digit classifier on Kiln, as PyTorch itself does. Needs KILN_PJRT_LIBRARY. Exit
code 77 without torch_xla (tried with 2.9)."""

import os
import pathlib
import sys
import unittest

os.environ['XLA_STABLEHLO_COMPILE'] = '1'  # programs as StableHLO, not as protocol buffers of HLO
try:
    import numpy as np
    import torch
    import torch_xla
    from torch_xla.experimental import plugins
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

DIGITS = pathlib.Path(__file__).resolve().parents[3] / 'docs' / 'examples' / 'digits'
IMAGES, STEPS = 512, 40


class Kiln(plugins.DevicePlugin):
    def library_path(self):
        return os.environ['KILN_PJRT_LIBRARY']


def digits():
    """Images as rows of numbers from 0 to 1, and their labels, from files in MNIST's format."""
    images = np.fromfile(DIGITS / 'train-images-idx3-ubyte', np.uint8)[16:]
    labels = np.fromfile(DIGITS / 'train-labels-idx1-ubyte', np.uint8)[8:]
    images = images.reshape(len(labels), -1)[:IMAGES].astype(np.float32) / 255
    return torch.from_numpy(images), torch.from_numpy(labels[:IMAGES].astype(np.int64))


def train(device):
    """Losses of all steps, and how many images are recognised then."""
    torch.manual_seed(0)
    images, labels = digits()
    model = torch.nn.Sequential(torch.nn.Linear(images.shape[1], 64), torch.nn.ReLU(),
                                torch.nn.Linear(64, 10)).to(device)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images, labels = images.to(device), labels.to(device)
    losses = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
        if device.type == 'xla':
            torch_xla.sync()
        losses.append(loss.item())
    return losses, int((model(images).argmax(1) == labels).sum())


class DigitsTest(unittest.TestCase):
    def test_training(self):
        plugins.register_plugin('KILN', Kiln())
        os.environ['PJRT_DEVICE'] = 'KILN'
        device = torch_xla.device()
        self.assertEqual(torch_xla.core.xla_model.xla_device_hw(device), 'KILN')
        losses, recognised = train(device)
        expected, count = train(torch.device('cpu'))
        np.testing.assert_allclose(losses, expected, rtol=1e-3)
        self.assertLessEqual(abs(recognised - count), 1)
        self.assertGreater(recognised, IMAGES * 0.9)


if __name__ == '__main__':
    unittest.main()
