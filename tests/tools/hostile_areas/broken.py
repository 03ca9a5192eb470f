from pathlib import Path
from unittest.mock import patch

from gpu.base.errors import InputError
from gpu.files import arrays
from tests.attacks.arrays import attack as attack_arrays


def attack(random, folder: Path):
    """Read arrays with a reader that forgets what NumPy's may raise."""

    def careless(file):
        import numpy as np

        try:
            np.lib.format.read_magic(file)
            return np.lib.format.read_array_header_1_0(file)
        except ValueError as error:
            raise InputError(f"{error}.") from None

    with patch.object(arrays, "_read_npy_header", careless), patch.object(arrays, "Exception", InputError, create=True):
        attack_arrays(random, folder)
