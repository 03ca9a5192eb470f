"""Build the conda package from package/conda/recipe.yaml with rattler-build, and run the recipe's tests.

    python -m tools.installation.conda_package [--channel URL] DIST

pip downloads rattler-build; the dependencies are conda-forge's, or those of another channel.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path

from gpu.base.paths import ROOT
from tools.installation.wheel_check import CheckError, create_folder, find_program, remove, run

RECIPE = ROOT / "package" / "conda" / "recipe.yaml"
_RATTLER_BUILD = "py-rattler-build==0.73.0"
_BUILD = """\
import sys
from rattler_build import Stage0Recipe, ToolConfiguration
from rattler_build.progress import SimpleProgressCallback

recipe, channel, folder = sys.argv[1:]
Stage0Recipe.from_file(recipe).run_build(
    tool_config=ToolConfiguration(test_strategy="native"),
    output_dir=folder,
    channels=[channel],
    progress_callback=SimpleProgressCallback(),
)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build and test the package; return 0 if all steps succeed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.installation.conda_package", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--channel", metavar="URL", default="conda-forge", help="channel of the dependencies")
    parser.add_argument("dist", metavar="DIST", type=Path, help="folder of the package")
    options = parser.parse_args(arguments)
    folder = create_folder("lockstep-conda-")
    try:
        start = time.monotonic()
        venv.create(folder / "builder", with_pip=True)
        python = find_program(folder / "builder", "python")
        run("the installation of rattler-build", [python, "-m", "pip", "install", "--quiet", _RATTLER_BUILD])
        run("the build", [python, "-c", _BUILD, RECIPE, options.channel, folder / "built"])
        package = next((folder / "built" / "noarch").glob("lockstep-gpu-*.conda"))
        options.dist.mkdir(parents=True, exist_ok=True)
        size = Path(shutil.copy(package, options.dist)).stat().st_size
    except CheckError as error:
        print(f"lockstep: {error}", file=sys.stderr)
        return 1
    finally:
        remove(folder)
    print(f"{package.name}: {size:,} bytes, built and tested in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
