# make run    installs missing packages and opens the window
# make test   runs the tests, without a display      make sweep   runs the exhaustive tier, nightly or before a release
# The rest: setup, lint, format, wheel, oldest, gpu-test, sanitize, mutants, lesson_mutants, lessons, flaky, fuzz, kills,
# barriers, pycuda_check, program_check, tour, bench, docs, clean.
# ARGS="..." goes to the program or to pytest.

SETUP = @python=$$(sh tools/find_python.sh) && "$$python" -m tools.setup
VENV := .venv/bin
KERNELS := $(shell find kernels assets/lessons gpu tools -name '*.cu' -o -name '*.cuh' -o -name '*.h')

.PHONY: wheel oldest run setup test sweep lint format gpu-test sanitize mutants lesson_mutants lessons flaky fuzz kills barriers pycuda_check program_check tour bench docs clean packages

run setup test sweep tour bench packages:
	$(SETUP) $@ $(ARGS)

# Build the package, install it in a new environment and use it there; ARGS="--keep dist" keeps it for a release.
wheel:
	@python=$$(sh tools/find_python.sh) && "$$python" -m tools.installation.wheel_check $(ARGS)

# The tests with the oldest packages that the requirements allow, in an environment of their own.
oldest:
	@python=$$(sh tools/find_python.sh) && "$$python" -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet uv==0.13.9
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct -r requirements.txt
	QT_QPA_PLATFORM=offscreen .venv-oldest/bin/python -m pytest $(ARGS)

gpu-test:
	$(SETUP) test -m gpu --require-gpu $(ARGS)

# Checks of the tests and checkers; CONTRIBUTING.md lists when to run which. `sanitize` needs an NVIDIA GPU.
mutants lesson_mutants flaky fuzz kills barriers sanitize pycuda_check program_check: packages
	$(VENV)/python -m tools.$@ $(ARGS)

# Check every lesson: moments, answers, solutions and common mistakes.
lessons: packages
	$(VENV)/python main.py lessons check $(ARGS)

# The handbook as a site, in site/. Once its packages are installed, this needs no network.
docs: packages
	$(VENV)/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --strict $(ARGS)

lint: packages
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy
	$(VENV)/lint-imports --no-logo
	@$(if $(KERNELS),$(VENV)/clang-format --dry-run -Werror $(KERNELS))
	$(if $(shell command -v actionlint),actionlint,@echo "actionlint is not installed: CI checks the workflows")

format: packages
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .
	$(if $(KERNELS),$(VENV)/clang-format -i $(KERNELS))

# Remove the output of tests and tools; to start over, remove .venv too.
clean:
	rm -rf tour site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
