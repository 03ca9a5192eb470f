"""Build the conda package from package/conda/recipe.yaml with rattler-build, and run the recipe's tests.

    python -m tools.installation.conda_package [--channel URL] DIST

pip downloads rattler-build; the dependencies are conda-forge's, or those of another channel.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from gpu.base.paths import ROOT
from tools.installation.wheel_check import find_program, run, run_steps

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

    def build_and_check(folder: Path) -> None:
        venv.create(folder / "builder", with_pip=True)
        python = find_program(folder / "builder", "python")
        run("the installation of rattler-build", [python, "-m", "pip", "install", "--quiet", _RATTLER_BUILD])
        run("the build", [python, "-c", _BUILD, RECIPE, options.channel, folder / "built"])
        package = next((folder / "built" / "noarch").glob("lockstep-gpu-*.conda"))
        options.dist.mkdir(parents=True, exist_ok=True)
        print(f"{package.name}: {Path(shutil.copy(package, options.dist)).stat().st_size:,} bytes", flush=True)

    return run_steps("conda package", build_and_check)


if __name__ == "__main__":
    sys.exit(main())
